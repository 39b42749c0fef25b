import type { Clock } from '../../../shared/clock.ts';
import type { ConsoleKeys } from '../console-keys.ts';
import { readEmail, type User, type Users } from '../users.ts';
import type { From, TooMany } from '../login.ts';
import type { SignUp } from '../sign-up.ts';
import { createTickets } from '../cookies.ts';
import type { Claims, Provider, Unavailable } from './provider.ts';

export type ProviderResult =
  | { readonly kind: 'right'; readonly user: User; readonly next: string }
  /** The browser came back without the ticket it left with, with another login's answer, or too late. */
  | { readonly kind: 'over' }
  /** The provider knows them, and nobody here does. */
  | { readonly kind: 'unknown' }
  /** Who signed up with this e-mail never showed that it is theirs: nobody is let in to what they made. */
  | { readonly kind: 'unverified' }
  /** The login of this e-mail is another person's at the provider. */
  | { readonly kind: 'linked-elsewhere' }
  | Unavailable
  | TooMany;

type Recognised =
  | { readonly kind: 'user'; readonly user: User }
  | Exclude<ProviderResult, { kind: 'right' | 'over' } | Unavailable>;

/** How long a login at the provider may take. */
export const AT_PROVIDER_MS = 10 * 60_000;

const RANDOM_BYTES = 32;

type Deps = Readonly<{
  provider: Provider;
  users: Users;
  /** Absent, only who is a user already is let in. */
  signUp: SignUp | undefined;
  keys: ConsoleKeys;
  clock: Clock;
  random(bytes: number): Uint8Array;
}>;

/** Login through an identity provider. What the browser must bring back is in a ticket of its own cookie. */
export function createProviderLogin({ provider, users, signUp, keys, clock, random }: Deps) {
  const tickets = createTickets(keys, 'provider', AT_PROVIDER_MS);
  const text = () => Buffer.from(random(RANDOM_BYTES)).toString('base64url');

  /**
   * The user of a subject; one who has the same e-mail is linked to it for good. Whoever signed up with a password may have
   * typed the e-mail of another, who must not come to use what the first has keys of: such a login is linked only from a
   * browser that is signed in to it.
   */
  function userOf({ subject, email: text }: Claims, from: From): Recognised {
    const linked = users.bySubject(subject);
    if (linked !== undefined) return { kind: 'user', user: linked };
    const email = text === undefined ? undefined : readEmail(text);
    if (email === undefined) return { kind: 'unknown' };
    const user = users.find(email);
    if (user !== undefined) {
      if (user.subject !== undefined) return { kind: 'linked-elsewhere' };
      if (!user.isEmailVerified && user.id !== from.signedInAs) return { kind: 'unverified' };
      return users.setSubject(user, subject) ? { kind: 'user', user } : { kind: 'linked-elsewhere' };
    }
    const made = signUp?.recognised(email, subject, from);
    if (made?.kind === 'too-many') return made;
    return made?.kind === 'created' ? { kind: 'user', user: made.user } : { kind: 'unknown' };
  }

  return {
    /** Where to send the browser, and the ticket it keeps meanwhile; `next` is where it wants to go after. */
    async begin(next: string) {
      const proof = { state: text(), verifier: text(), nonce: text() };
      const begun = await provider.begin(proof);
      if (begun.kind === 'unavailable') return begun;
      return { ...begun, ticket: tickets.make({ ...proof, next }, clock.now()) };
    },
    /** Who came back; `query` is that of the address the provider sent them to. */
    async finish(ticket: string | undefined, query: URLSearchParams, from: From): Promise<ProviderResult> {
      const kept = tickets.read(ticket, clock.now());
      const { state = '', verifier = '', nonce = '', next = '/' } = kept ?? {};
      if (kept === undefined || query.get('state') !== state || !query.has('code')) return { kind: 'over' };
      const finished = await provider.finish(query, { state, verifier, nonce });
      if (finished.kind === 'unavailable') return finished;
      const recognised = userOf(finished, from);
      return recognised.kind === 'user' ? { kind: 'right', user: recognised.user, next } : recognised;
    },
  };
}
