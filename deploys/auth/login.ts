import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { type Attempt, createAttempts } from './attempts.ts';
import { type ConsoleKeys, createTickets } from './console-keys.ts';
import type { Busy, Hashing, Waiter } from './passwords.ts';
import type { SecondFactor } from './second-factor.ts';
import { EMAIL_CHARACTERS_MAX, readEmail, type User, type Users } from './users.ts';

/** `address` is the client's IP where it is known; `signedInAs` is the user of the session that the browser has. */
export type From = Readonly<{ address: string | undefined; signedInAs?: string | undefined }>;

export type TooMany = Extract<Attempt, { kind: 'too-many' }>;

type LoginResult =
  | { readonly kind: 'right'; readonly user: User }
  /** The password was right; `ticket` is what the browser brings back with the code. */
  | { readonly kind: 'code-wanted'; readonly ticket: string }
  /** The same for an unknown e-mail, a wrong password and a user without one. */
  | { readonly kind: 'wrong' }
  | TooMany
  | Busy;

/** Whether a password or a code is the user's. */
type PasswordResult = Readonly<{ kind: 'right' } | { kind: 'wrong' }>;

type CodeResult =
  | { readonly kind: 'right'; readonly user: User }
  | { readonly kind: 'wrong' }
  /** The first step is too long ago, or the password was changed since. */
  | { readonly kind: 'over' }
  | TooMany;

/** Ten guesses at one account, then one every 90 seconds; each place where its user was has as many of its own. */
export const PER_ACCOUNT = { burst: 10, refillMs: 90_000 } as const;
/** Fifty from one address, then one every ten seconds: an office shares an address. */
export const PER_ADDRESS = { burst: 50, refillMs: 10_000 } as const;
/** A code has a million values; three count at a time. */
export const PER_CODE = { burst: 5, refillMs: 300_000 } as const;

const STEP_MS = 5 * 60_000;

type LoginDeps = Readonly<{
  store: Store;
  users: Users;
  hashing: Hashing;
  secondFactor: SecondFactor;
  keys: ConsoleKeys;
  clock: Clock;
  random(bytes: number): Uint8Array;
}>;

/** Recognises users. An attempt counts before its work begins, so that many at once are not more than many in a row; a good one is given back. */
export function createLogin({ store, users, hashing, secondFactor, keys, clock, random }: LoginDeps) {
  const perAccount = createAttempts(PER_ACCOUNT, random);
  const perAddress = createAttempts(PER_ADDRESS, random);
  const perCode = createAttempts(PER_CODE, random);
  const tickets = createTickets(keys, 'second step', STEP_MS);
  const known = createKnownNetworks(store, keys);

  function ticketFor(user: User): string {
    return tickets.make({ user: user.id, state: stateOf(user) }, clock.now());
  }

  /** Under which name attempts at a login are counted, and whether they come from where its user was before. */
  function countedAs(user: User | undefined, typed: string, from: From): readonly [string, Waiter] {
    if (user !== undefined && user.id === from.signedInAs) return [`${user.id} session`, 'known'];
    if (user !== undefined && known.has(user.id, from.address, clock.now()))
      return [`${user.id} ${network(from.address)}`, 'known'];
    return [user?.email ?? typed.slice(0, EMAIL_CHARACTERS_MAX), 'stranger'];
  }

  function confirmCode(user: User, code: string): PasswordResult | TooMany {
    const attempt = perCode.take(user.id, clock.now());
    if (attempt.kind === 'too-many') return attempt;
    if (!secondFactor.isRight(user, code)) return { kind: 'wrong' };
    perCode.giveBack(user.id);
    return { kind: 'right' };
  }

  /** An attempt that is right, or was not made, gives back what it took. */
  async function attemptPassword(
    user: User | undefined,
    password: string,
    [name, by]: readonly [string, Waiter],
  ): Promise<PasswordResult | TooMany | Busy> {
    const attempt = perAccount.take(name, clock.now());
    if (attempt.kind === 'too-many') return attempt;
    const verified = await hashing.verify(password, user?.passwordHash, by);
    if (verified.kind !== 'wrong') perAccount.giveBack(name);
    return verified;
  }

  return {
    /** The first step. Never rejects for what was typed. */
    async withPassword(typed: string, password: string, from: From): Promise<LoginResult> {
      const email = readEmail(typed);
      const user = email && users.find(email);
      const address = network(from.address);
      const byAddress = perAddress.take(address, clock.now());
      if (byAddress.kind === 'too-many') return byAddress;
      const result = await attemptPassword(user, password, countedAs(user, email ?? typed, from));
      if (result.kind === 'right' || result.kind === 'busy') perAddress.giveBack(address);
      if (result.kind !== 'right') return result;
      if (user === undefined) return { kind: 'wrong' };
      return user.hasSecondFactor
        ? { kind: 'code-wanted', ticket: ticketFor(user) }
        : { kind: 'right', user };
    },
    withCode(ticket: string | undefined, code: string): CodeResult {
      const { user: id = '', state } = tickets.read(ticket, clock.now()) ?? NOTHING;
      const user = users.byId(id);
      if (user === undefined || state !== stateOf(user)) return { kind: 'over' };
      const result = confirmCode(user, code);
      return result.kind === 'right' ? { kind: 'right', user } : result;
    },
    /** The ticket of a second step for a user who was recognised otherwise. */
    ticketFor,
    /** Whether `code` is the user's; for changes that ask for one. */
    confirmCode,
    /** Remembers the address of a login that came to its end: guesses from elsewhere do not keep its user out there. */
    remember: (user: User, { address }: From): void => known.add(user.id, address, clock.now()),
    /** Whether `password` is the user's; for changes that ask for it again. */
    confirm: (user: User, password: string) =>
      attemptPassword(user, password, countedAs(user, '', { address: undefined, signedInAs: user.id })),
  };
}

/** An address is forgotten this long after the last login from it, and when its user has had so many others. */
const KNOWN_MS = 90 * 24 * 3_600_000;
const NETWORKS_PER_USER_MAX = 20;

/** Where users have logged in from; kept as a MAC, since the table need not tell it. */
function createKnownNetworks(store: Store, keys: ConsoleKeys) {
  const select = store.prepare<object, [string, Uint8Array, number]>(`
    SELECT 1 FROM known_networks WHERE user_id = ? AND network = ? AND used_at_ms > ?`);
  const put = store.prepare(`
    INSERT INTO known_networks VALUES (?, ?, ?)
    ON CONFLICT (user_id, network) DO UPDATE SET used_at_ms = excluded.used_at_ms`);
  const dropMany = store.prepare(`
    DELETE FROM known_networks WHERE user_id = ?1 AND network NOT IN (
      SELECT network FROM known_networks WHERE user_id = ?1
      ORDER BY used_at_ms DESC LIMIT ${NETWORKS_PER_USER_MAX})`);
  const macOf = (userId: string, address: string) =>
    keys.sign('known network', `${userId} ${network(address)}`);
  const add = store.transaction((userId: string, address: string, nowMs: number) => {
    put.run(userId, macOf(userId, address), nowMs);
    dropMany.run(userId);
  });
  return {
    has: (userId: string, address: string | undefined, nowMs: number) =>
      address !== undefined && select.get(userId, macOf(userId, address), nowMs - KNOWN_MS) !== null,
    add: (userId: string, address: string | undefined, nowMs: number) => {
      if (address !== undefined) add.immediate(userId, address, nowMs);
    },
  };
}

const NOTHING: Readonly<Record<string, string>> = {};

/** The state that a ticket is bound to: it ends with another password or another second factor. */
function stateOf({ passwordHash, hasSecondFactor }: User): string {
  return createHash('sha256').update(`${hasSecondFactor} ${passwordHash}`).digest('base64url');
}

/** Whoever has one IPv6 address has the 64 bits below it. */
export function network(address: string | undefined): string {
  if (!address?.includes(':')) return address ?? 'unknown';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: Math.max(0, 8 - left.length - right.length) }, () => '0');
  const groups = [...left, ...(tail === undefined ? [] : zeros), ...right];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
}
