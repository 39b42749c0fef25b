import { unreachable } from '../../../../shared/brand.ts';
import type { PageContext } from '../../context.ts';
import type { LoginServices } from '../../page-services.ts';
import { type FormRefusal, notTried } from './login-form.tsx';
import { showLogin } from './login.tsx';
import { beginSession, fromOf, nextOf, toSecondStep } from './session.ts';
import { paths } from '../../paths.ts';
import { redirectAway } from '../../redirect.ts';
import { AT_PROVIDER_MS } from '../../../auth/provider.ts';
import { type CookieName, cookieOf, setCookie } from '../../../auth/sessions.ts';

const PROVIDER_COOKIE: CookieName = '__Host-sluice-provider';

const REFUSALS = {
  unavailable: refusal(503, 'The identity provider is unavailable. Try again, or sign in with a password.'),
  over: refusal(400, 'The sign-in expired or was started in another window. Please try again.'),
  unknown: refusal(403, 'There is no user for this identity. Ask an operator to add you.'),
  unverified: refusal(
    403,
    'A user with this email signed up with a password, and the email was never verified. If this is you, sign in with the password and link the identity provider in Settings. Otherwise ask an operator to remove that user.',
  ),
  'linked-elsewhere': refusal(
    403,
    'The user with this email is linked to another identity at the provider. Ask an operator to unlink it.',
  ),
} as const;

function refusal(status: number, form: string): FormRefusal {
  return { errors: { form }, status };
}

/** Sends to the identity provider. */
export async function providerPage(
  { auth, noteUnavailable }: LoginServices,
  context: PageContext,
): Promise<Response> {
  if (auth.providerLogin === undefined) return context.notFound();
  const next = nextOf(context.url.searchParams);
  const begun = await auth.providerLogin.begin(next);
  if (begun.kind === 'unavailable') {
    noteUnavailable(begun.reason);
    return showLogin(auth, context, next, REFUSALS.unavailable);
  }
  return redirectAway(begun.url, [setCookie(PROVIDER_COOKIE, begun.ticket, AT_PROVIDER_MS)]);
}

/** Signs in a user who returns from the identity provider. */
export async function providerReturnPage(services: LoginServices, context: PageContext): Promise<Response> {
  const { auth, noteUnavailable } = services;
  if (auth.providerLogin === undefined) return context.notFound();
  const { request, url } = context;
  const ticket = cookieOf(request.headers, PROVIDER_COOKIE);
  const from = fromOf(services, context);
  const result = await auth.providerLogin.finish(ticket, url.searchParams, from);
  switch (result.kind) {
    case 'right': {
      const { user } = result;
      const next = nextOf(new URLSearchParams({ next: result.next }));
      const moved = user.hasSecondFactor
        ? toSecondStep(auth.login.ticketFor(user), next)
        : beginSession(auth, context, user, next, from);
      moved.headers.append('set-cookie', setCookie(PROVIDER_COOKIE, '', 0));
      return moved;
    }
    case 'unavailable':
      noteUnavailable(result.reason);
      return showLogin(auth, context, paths.start, REFUSALS.unavailable);
    case 'over':
    case 'unknown':
    case 'unverified':
    case 'linked-elsewhere':
      return showLogin(auth, context, paths.start, REFUSALS[result.kind]);
    case 'too-many':
      return showLogin(auth, context, paths.start, notTried(result));
    default:
      return unreachable(result);
  }
}
