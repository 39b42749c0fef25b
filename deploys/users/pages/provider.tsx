/** @jsxImportSource preact */
import { unreachable } from '../../../shared/brand.ts';
import type { AddressOf } from '../client-address.ts';
import { type CookieName, cookieOf, setCookie } from '../cookie.ts';
import { AT_PROVIDER_MS } from '../oidc/login.ts';
import { type People, PROVIDER_RETURN_PATH } from '../people.ts';
import type { PersonPage } from './asked.ts';
import { showLogin } from './login.tsx';
import { moveIn, moveTo, moveToSecondStep, nextOf, PROVIDER_PATH } from './moves.ts';
import { notTried } from './refusals.ts';

const PROVIDER_COOKIE: CookieName = '__Host-sluice-provider';

const REFUSALS = {
  unavailable: {
    sentence: 'The identity provider cannot be reached. Try again, or sign in with a password.',
    status: 503,
  },
  over: { sentence: 'That took too long, or was begun in another window. Try again.', status: 400 },
  unknown: { sentence: 'There is no login here for this person. Ask an operator for one.', status: 403 },
  unverified: {
    sentence:
      'Somebody signed up with this e-mail and a password, and nobody verified that it is theirs. If that was you, sign in with the password and link the identity provider under Settings; if not, ask an operator to remove that login.',
    status: 403,
  },
  'linked-elsewhere': {
    sentence:
      'The login of this e-mail belongs to another identity at the provider. Ask an operator to unlink it.',
    status: 403,
  },
} as const;

/** The way to the identity provider and back; none where no provider is configured. `noteUnavailable` hears why one failed. */
export function providerPages(
  people: People,
  addressOf: AddressOf,
  noteUnavailable: (reason: string) => void,
): readonly PersonPage[] {
  const { providerLogin, login } = people;
  if (providerLogin === undefined) return [];
  return [
    {
      path: PROVIDER_PATH,
      // A link, not a form: `form-action` of the policy would refuse the way to another origin.
      get: async (asked) => {
        const next = nextOf(asked.url.searchParams.get('next'));
        const begun = await providerLogin.begin(next);
        if (begun.kind === 'unavailable') {
          noteUnavailable(begun.reason);
          return showLogin(people, asked, next, '', REFUSALS.unavailable);
        }
        return moveTo(begun.url.href, [setCookie(PROVIDER_COOKIE, begun.ticket, AT_PROVIDER_MS)]);
      },
    },
    {
      path: PROVIDER_RETURN_PATH,
      get: async (asked) => {
        const { request, url } = asked;
        const ticket = cookieOf(request.headers, PROVIDER_COOKIE);
        const back = { address: addressOf(request), signedInAs: people.sessionOf(request)?.userId };
        const result = await providerLogin.finish(ticket, url.searchParams, back);
        switch (result.kind) {
          case 'right': {
            const next = nextOf(result.next);
            const { user } = result;
            const moved = user.hasSecondFactor
              ? moveToSecondStep(login.ticketFor(user), next)
              : moveIn(people, request, user, next, back);
            moved.headers.append('set-cookie', setCookie(PROVIDER_COOKIE, '', 0));
            return moved;
          }
          case 'unavailable':
            noteUnavailable(result.reason);
            return showLogin(people, asked, '/', '', REFUSALS.unavailable);
          case 'over':
          case 'unknown':
          case 'unverified':
          case 'linked-elsewhere':
            return showLogin(people, asked, '/', '', REFUSALS[result.kind]);
          case 'too-many':
            return showLogin(people, asked, '/', '', notTried(result));
          default:
            return unreachable(result);
        }
      },
    },
  ];
}
