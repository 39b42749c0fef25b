import { rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Accounts } from '../accounts/accounts.ts';
import { createAttempts } from './attempts.ts';
import { type From, network, type TooMany } from './login.ts';
import { type Busy, type Hashing, passwordComplaint } from './passwords.ts';
import { hashOf } from './sessions.ts';
import { type Email, readEmail, type User, type Users } from './users.ts';

type Application = Readonly<{ email: string; password: string }>;

type SignUpResult =
  | { readonly kind: 'created'; readonly user: User }
  /** `sentence` says what is wrong with what was typed as `of`. */
  | ReturnType<typeof unfit>
  /** The link of the first operator was used, is over, or was never made. */
  | { readonly kind: 'no-invitation' }
  | TooMany
  | Busy;

/** The plan of a new customer. */
const PLAN = 'trial';

/** Five from one address, then one every ten minutes; and fifty from everywhere, then one a minute. */
const PER_ADDRESS = { burst: 5, refillMs: 600_000 } as const;
const IN_ALL = { burst: 50, refillMs: 60_000 } as const;

type SignUpDeps = Readonly<{
  store: Store;
  users: Users;
  hashing: Hashing;
  accounts: Pick<Accounts, 'create'>;
  clock: Clock;
  random(bytes: number): Uint8Array;
}>;

export type SignUp = ReturnType<typeof createSignUp>;

/** How a person becomes a user at the console: the first operator by a link, a customer where signing up is allowed. */
export function createSignUp({ store, users, hashing, accounts, clock, random }: SignUpDeps) {
  const perAddress = createAttempts(PER_ADDRESS, random);
  const inAll = createAttempts(IN_ALL, random);

  async function checked({ email: typed, password }: Application) {
    const email = readEmail(typed);
    if (email === undefined) return unfit('email', 'Enter a valid email address.');
    const complaint = passwordComplaint(password, email);
    if (complaint !== undefined) return unfit('password', complaint);
    const hashed = await hashing.hash(password, 'stranger');
    return hashed.kind === 'busy' ? hashed : ({ kind: 'hashed', email, hash: hashed.hash } as const);
  }

  const makeOperator = store.transaction(
    (token: string, email: Email, passwordHash: string): SignUpResult => {
      if (!isInvited({ store, clock }, token)) return { kind: 'no-invitation' };
      const membership = { role: 'operator', accountId: undefined } as const;
      const created = users.create({ email, membership, passwordHash });
      if (created.kind === 'email-taken') return TAKEN;
      store.run('DELETE FROM first_operator');
      return created;
    },
  );

  const makeCustomer = store.transaction(
    (account: string, email: Email, passwordHash: string | undefined, subject?: string): SignUpResult => {
      if (users.find(email) !== undefined) return TAKEN;
      const id = users.newId();
      const opened = accounts.create(account, PLAN, { kind: 'user', userId: id });
      if (opened.kind !== 'account') {
        const sentence = NAME_PROBLEMS[opened.kind];
        if (sentence === undefined) throw new Error(`no account on plan ${PLAN}: ${opened.kind}`);
        return unfit('account', sentence);
      }
      const membership = { role: 'customer', accountId: opened.account.id } as const;
      const created = users.create({ id, email, membership, passwordHash, ...(subject && { subject }) });
      if (created.kind === 'email-taken') throw new Error('the e-mail was free inside this transaction');
      return created;
    },
  );

  function admitted({ address }: From): TooMany | undefined {
    const byAddress = perAddress.take(network(address), clock.now());
    if (byAddress.kind === 'too-many') return byAddress;
    const all = inAll.take('all', clock.now());
    return all.kind === 'too-many' ? all : undefined;
  }

  return {
    async firstOperator(token: string, application: Application): Promise<SignUpResult> {
      if (!isInvited({ store, clock }, token)) return { kind: 'no-invitation' };
      const fit = await checked(application);
      return fit.kind === 'hashed' ? makeOperator.immediate(token, fit.email, fit.hash) : fit;
    },
    async customer(account: string, application: Application, from: From): Promise<SignUpResult> {
      const tooMany = admitted(from);
      if (tooMany !== undefined) return tooMany;
      const fit = await checked(application);
      return fit.kind === 'hashed' ? makeCustomer.immediate(account, fit.email, fit.hash) : fit;
    },
    /** A new customer whom an identity provider vouches for, with an account named like the e-mail. */
    recognised(email: Email, subject: string, from: From): SignUpResult {
      return admitted(from) ?? makeCustomer.immediate(email.slice(0, 64), email, undefined, subject);
    },
  };
}

const unfit = (of: 'account' | 'email' | 'password', sentence: string) =>
  ({ kind: 'unfit', of, sentence }) as const;
const TAKEN = unfit('email', 'This email address is already registered.');
const NAME_TAKEN = 'An account with this name already exists. Choose another name.';
const NAME_PROBLEMS: Readonly<Record<string, string>> = {
  'bad-name': 'An account name must have 1 to 64 printable characters.',
  'name-taken': NAME_TAKEN,
  'reserved-name': NAME_TAKEN,
};

/** In the data directory. */
const LINK_FILE = 'first-operator-link';
const TOKEN_BYTES = 32;
const LAST_MS = 24 * 3_600_000;

type InvitationDeps = Readonly<{ store: Store; clock: Clock; random(bytes: number): Uint8Array }>;

/** The token of a new link for the first operator, good for 24 hours and one use; `undefined`: there is an operator. */
export function inviteFirstOperator({ store, clock, random }: InvitationDeps): string | undefined {
  const token = Buffer.from(random(TOKEN_BYTES)).toString('base64url');
  const invite = store.transaction(() => {
    store.run('DELETE FROM first_operator');
    if (store.query("SELECT 1 FROM users WHERE role = 'operator' LIMIT 1").get() !== null) return undefined;
    store.run('INSERT INTO first_operator VALUES (1, ?, ?)', [hashOf(token), clock.now() + LAST_MS]);
    return token;
  });
  return invite.immediate();
}

/** Whether a link is good: its time is not over, and there is no operator yet. */
function isInvited({ store, clock }: Pick<InvitationDeps, 'store' | 'clock'>, token: string): boolean {
  const invitation = store.query<object, [Uint8Array, number]>(`
    SELECT 1 FROM first_operator WHERE token_hash = ? AND expires_at_ms > ?
      AND NOT EXISTS (SELECT 1 FROM users WHERE role = 'operator')`);
  return invitation.get(hashOf(token), clock.now()) !== null;
}

/** Where a person finds the link: on their terminal, or in a file of the service's user. */
type ShownLink =
  { readonly kind: 'terminal'; readonly url: string } | { readonly kind: 'file'; readonly path: string };

/** Prints a link to a terminal, or keeps it in a file: other output is often stored and sent on, and a link that makes an operator must be neither. */
export function showLink(url: string, dataDir: string, isTerminal: boolean): ShownLink {
  const path = resolve(dataDir, LINK_FILE);
  rmSync(path, { force: true }); // the link of an earlier start, or a file with rights of its own
  if (isTerminal) return { kind: 'terminal', url };
  writeFileSync(path, `${url}\n`, { mode: 0o600, flag: 'wx' });
  return { kind: 'file', path };
}

/** Where the console is reached: the configured address, or the listener's own where that was to be any free port. */
export function consoleUrlOf(publicUrl: URL, listenUrl: URL): URL {
  return publicUrl.port === '0' ? listenUrl : publicUrl;
}
