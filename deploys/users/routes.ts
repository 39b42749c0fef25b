import { Elysia } from 'elysia';
import { formFrom } from '../console/routing/form-body.ts';
import { isSameOrigin } from '../console/same-origin.ts';
import { secured } from '../console/security-headers.ts';
import type { AddressOf } from './client-address.ts';
import type { Content, PersonPage } from './pages/asked.ts';
import { loginPages } from './pages/login.tsx';
import { providerPages } from './pages/provider.tsx';
import { secondFactorPages } from './pages/second-factor.tsx';
import { settingsPages } from './pages/settings.tsx';
import { signUpPages } from './pages/sign-up.tsx';
import type { People } from './people.ts';

export type PersonRoutesDeps = Readonly<{
  people: People;
  addressOf: AddressOf;
  /** Puts content into the console's document. */
  show(content: Content): Response;
  /** Hears why an identity provider could not be used. */
  noteUnavailable(reason: string): void;
}>;

/** Every page of the login and the settings. */
export function personPages(deps: Omit<PersonRoutesDeps, 'show'>): readonly PersonPage[] {
  const { people, addressOf, noteUnavailable } = deps;
  return [
    ...loginPages(people, addressOf),
    ...providerPages(people, addressOf, noteUnavailable),
    ...signUpPages(people, addressOf),
    ...settingsPages(people),
    ...secondFactorPages(people),
  ];
}

/** The pages as routes. A change counts only from a form of the console's own pages; nothing of it is kept by caches. */
export function createPersonRoutes(deps: PersonRoutesDeps) {
  const { origin } = deps.people.config.publicUrl;
  const hidden = { detail: { hide: true }, parse: 'none' as const };
  const app = new Elysia();
  for (const page of personPages(deps)) {
    const answer = async ({ request }: { request: Request }) =>
      secured(await answerOf(page, request, origin, deps.show));
    // Elysia derives no HEAD.
    app.get(page.path, answer, hidden).head(page.path, answer, hidden).all(page.path, answer, hidden);
  }
  return app;
}

async function answerOf(
  { get, post }: PersonPage,
  request: Request,
  origin: string,
  show: (content: Content) => Response,
): Promise<Response> {
  const asked = { request, url: new URL(request.url), show };
  if (request.method === 'GET' || request.method === 'HEAD') {
    if (get !== undefined) return get(asked);
  } else if (request.method === 'POST' && post !== undefined) {
    if (!isSameOrigin(request, origin))
      return show({
        title: 'Refused',
        status: 403,
        body: 'This form did not come from the console. Nothing was changed.',
      });
    const form = await formFrom(request);
    if (form !== undefined) return post({ ...asked, form });
    return show({
      title: 'Refused',
      status: 415,
      body: 'This address takes forms only. Nothing was changed.',
    });
  }
  const allow = [get && 'GET, HEAD', post && 'POST'].filter(Boolean).join(', ');
  const response = show({ title: 'That cannot be done here', status: 405, body: `It takes ${allow}.` });
  response.headers.set('allow', allow);
  return response;
}
