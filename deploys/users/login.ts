import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import { type Attempt, createAttempts } from './attempts.ts';
import type { ConsoleKeys } from './console-keys.ts';
import { readEmail } from './email.ts';
import type { Busy, Hashing } from './hashing.ts';
import type { SecondFactor } from './second-factor.ts';
import { createTickets } from './ticket.ts';
import type { User, Users } from './users.ts';

/** Where an attempt comes from; `address` is the client's IP, or `undefined` where it cannot be known. */
export type From = Readonly<{ address: string | undefined }>;

export type TooMany = Extract<Attempt, { kind: 'too-many' }>;

export type LoginResult =
  | { readonly kind: 'right'; readonly user: User }
  /** The password was right; `ticket` is what the browser brings back with the code. */
  | { readonly kind: 'code-wanted'; readonly ticket: string }
  /** The same for an unknown e-mail, a wrong password and a user without one. */
  | { readonly kind: 'wrong' }
  | TooMany
  | Busy;

export type CodeResult =
  | { readonly kind: 'right'; readonly user: User }
  | { readonly kind: 'wrong' }
  /** The first step is too long ago, or the password was changed since. */
  | { readonly kind: 'over' }
  | TooMany;

export type Login = Readonly<{
  /** The first step. Never rejects for what was typed. */
  withPassword(email: string, password: string, from: From): Promise<LoginResult>;
  /** The second step. */
  withCode(ticket: string | undefined, code: string): CodeResult;
  /** The ticket of a second step for a user who was recognised otherwise. */
  ticketFor(user: User): string;
  /** Whether `code` is the user's; for changes that ask for one. */
  confirmCode(user: User, code: string): { readonly kind: 'right' | 'wrong' } | TooMany;
  /** Whether `password` is the user's; for changes that ask for it again. */
  confirm(user: User, password: string): Promise<{ readonly kind: 'right' | 'wrong' } | TooMany | Busy>;
}>;

/** Ten guesses at one account, then one every 90 seconds, wherever they come from. */
export const PER_ACCOUNT = { burst: 10, refillMs: 90_000 } as const;
/** Fifty from one address, then one every ten seconds: an office shares an address. */
export const PER_ADDRESS = { burst: 50, refillMs: 10_000 } as const;
/** A code has a million values; three count at a time. */
export const PER_CODE = { burst: 5, refillMs: 300_000 } as const;

const STEP_MS = 5 * 60_000;

type Deps = Readonly<{
  users: Users;
  hashing: Hashing;
  secondFactor: SecondFactor;
  keys: ConsoleKeys;
  clock: Clock;
  random(bytes: number): Uint8Array;
}>;

/** Recognises users. An attempt counts before its work begins, so that many at once are not more than many in a row; a good one is given back. */
export function createLogin({ users, hashing, secondFactor, keys, clock, random }: Deps): Login {
  const perAccount = createAttempts(PER_ACCOUNT, random);
  const perAddress = createAttempts(PER_ADDRESS, random);
  const perCode = createAttempts(PER_CODE, random);
  const tickets = createTickets(keys, 'second step', STEP_MS);

  function ticketFor(user: User): string {
    return tickets.make({ user: user.id, state: stateOf(user) }, clock.now());
  }

  function confirmCode(user: User, code: string): { readonly kind: 'right' | 'wrong' } | TooMany {
    const attempt = perCode.take([user.id], clock.now());
    if (attempt.kind === 'too-many') return attempt;
    if (!secondFactor.isRight(user, code)) return { kind: 'wrong' };
    perCode.giveBack([user.id]);
    return { kind: 'right' };
  }

  return {
    async withPassword(typed, password, { address }) {
      const nowMs = clock.now();
      const email = readEmail(typed);
      const [account, addresses] = [[email ?? typed.slice(0, 254)], [network(address)]];
      const byAddress = perAddress.take(addresses, nowMs);
      if (byAddress.kind === 'too-many') return byAddress;
      const byAccount = perAccount.take(account, nowMs);
      if (byAccount.kind === 'too-many') return byAccount;
      const user = email && users.find(email);
      const verified = await hashing.verify(password, user?.passwordHash);
      if (verified.kind === 'busy' || verified.isRight) {
        perAccount.giveBack(account);
        perAddress.giveBack(addresses);
      }
      if (verified.kind === 'busy') return verified;
      if (!verified.isRight || user === undefined) return { kind: 'wrong' };
      return user.hasSecondFactor
        ? { kind: 'code-wanted', ticket: ticketFor(user) }
        : { kind: 'right', user };
    },
    withCode(ticket, code) {
      const { user: id = '', state } = tickets.read(ticket, clock.now()) ?? NOTHING;
      const user = users.byId(id);
      if (user === undefined || state !== stateOf(user)) return { kind: 'over' };
      const result = confirmCode(user, code);
      if (result.kind === 'too-many') return result;
      return result.kind === 'right' ? { kind: 'right', user } : { kind: 'wrong' };
    },
    ticketFor,
    confirmCode,
    async confirm(user, password) {
      const attempt = perAccount.take([user.email], clock.now());
      if (attempt.kind === 'too-many') return attempt;
      const verified = await hashing.verify(password, user.passwordHash);
      if (verified.kind === 'busy' || verified.isRight) perAccount.giveBack([user.email]);
      if (verified.kind === 'busy') return verified;
      return { kind: verified.isRight ? 'right' : 'wrong' };
    },
  };
}

const NOTHING: Readonly<Record<string, string>> = {};

/** What a ticket ends with: another password or another second factor. */
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
