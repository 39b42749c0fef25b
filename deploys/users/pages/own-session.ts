import type { People } from '../people.ts';
import type { Session } from '../sessions.ts';
import type { User } from '../users.ts';
import type { Asked, Filled, PersonPage } from './asked.ts';
import { LOGIN_PATH, moveTo, withNext } from './moves.ts';

/** Whoever is signed in, as this request shows. */
export type Self = Readonly<{ session: Session; user: User }>;

type Answer = Response | Promise<Response>;

/** A page for whoever is signed in, an operator who must set up a second factor among them; others are sent to sign in. */
export function ownPage(
  people: People,
  path: string,
  answers: Readonly<{ get?(asked: Asked, self: Self): Answer; post?(asked: Filled, self: Self): Answer }>,
): PersonPage {
  function selfOf(request: Request): Self | undefined {
    const session = people.sessionOf(request);
    const user = session && people.users.byId(session.userId);
    return session && user && { session, user };
  }
  const { get, post } = answers;
  return {
    path,
    ...(get && {
      get: (asked: Asked) => {
        const self = selfOf(asked.request);
        const { pathname, search } = asked.url;
        return self ? get(asked, self) : moveTo(withNext(LOGIN_PATH, `${pathname}${search}`));
      },
    }),
    ...(post && {
      post: (asked: Filled) => {
        const self = selfOf(asked.request);
        return self ? post(asked, self) : moveTo(LOGIN_PATH);
      },
    }),
  };
}
