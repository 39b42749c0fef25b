import type { Brand } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';
import { type Actor, actorOf, type Audit } from '../accounts/audit.ts';

/** A to Z in lower case. Other letters stay: some have an ASCII letter as their lower case, and would make one address of two. */
export type Email = Brand<string, 'Email'>;

export const EMAIL_CHARACTERS_MAX = 254;
/** One @ with something before it and a dotted name after it; whether mail arrives there, no pattern can tell. */
const EMAIL = /^[^\s@\p{C}"<>]+@[^\s@.\p{C}"<>]+(?:\.[^\s@.\p{C}"<>]+)+$/u;

/** The address in `text`, or `undefined` when it is none. */
export function readEmail(text: string): Email | undefined {
  const email = text.trim().replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  // The brand is this function's to give: the text was checked here.
  return email.length <= EMAIL_CHARACTERS_MAX && EMAIL.test(email) ? (email as Email) : undefined;
}

/**
 * Who may log in to the console, and their sessions. Instants are Unix milliseconds. A to Z of `email` are in lower case.
 * `password_hash` is argon2id, and null for who logs in through an identity provider alone (`subject`: issuer and
 * subject, with a space between). `totp_secret` is sealed; `totp_step` is the last time step whose code was taken, so that
 * no code counts twice; `totp_pending` is a sealed secret that no code has confirmed yet. Tokens and codes are kept as hashes.
 * `email_verified` is 1 where an operator or the identity provider says whose `email` is; 0: it was typed at a sign-up.
 * `known_networks` are where users have logged in from, as MACs.
 * `first_operator` has at most one row: the link that makes the first operator.
 */
export const USERS_MIGRATIONS: Migrations = {
  'users-1': `
    CREATE TABLE users (
      id TEXT PRIMARY KEY,
      email TEXT NOT NULL UNIQUE,
      role TEXT NOT NULL CHECK (role IN ('operator', 'customer')),
      account_id INTEGER REFERENCES accounts (id),
      password_hash TEXT,
      subject TEXT UNIQUE,
      totp_secret BLOB,
      totp_step INTEGER NOT NULL DEFAULT 0,
      totp_pending BLOB,
      created_at_ms INTEGER NOT NULL,
      CHECK (role = 'operator' OR account_id IS NOT NULL)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX users_of_account ON users (account_id);
    CREATE TABLE sessions (
      token_hash BLOB PRIMARY KEY,
      user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
      created_at_ms INTEGER NOT NULL,
      used_at_ms INTEGER NOT NULL,
      user_agent TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_of_user ON sessions (user_id, used_at_ms);
    CREATE INDEX sessions_by_use ON sessions (used_at_ms);
    CREATE TABLE backup_codes (
      user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
      hash BLOB NOT NULL,
      PRIMARY KEY (user_id, hash)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE first_operator (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      token_hash BLOB NOT NULL,
      expires_at_ms INTEGER NOT NULL
    ) STRICT;
  `,
  'users-operators-1': `
    CREATE INDEX users_operators ON users (created_at_ms, id) WHERE role = 'operator';
    DROP INDEX users_of_account;
    CREATE INDEX users_of_account ON users (account_id, created_at_ms, id);
  `,
  'users-verified-1': `
    ALTER TABLE users ADD COLUMN email_verified INTEGER NOT NULL DEFAULT 0;
    UPDATE users SET email_verified = 1 WHERE subject IS NOT NULL OR EXISTS (
      SELECT 1 FROM audit WHERE action = 'user.create' AND subject = users.id AND actor_id IS NOT users.id);
  `,
  'users-networks-1': `
    CREATE TABLE known_networks (
      user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
      network BLOB NOT NULL,
      used_at_ms INTEGER NOT NULL,
      PRIMARY KEY (user_id, network)
    ) STRICT, WITHOUT ROWID;
  `,
};

/** An operator sees every account and may belong to none; a customer belongs to one. */
export type Membership =
  | { readonly role: 'operator'; readonly accountId: number | undefined }
  | { readonly role: 'customer'; readonly accountId: number };

export type User = Membership &
  Readonly<{
    id: string;
    email: Email;
    /** Argon2id; `undefined`: through the identity provider alone. */
    passwordHash: string | undefined;
    hasSecondFactor: boolean;
    /** An identity provider's name for the user: issuer and subject, with a space between. */
    subject: string | undefined;
    /** `false`: the e-mail was typed at a sign-up, and may be another person's. */
    isEmailVerified: boolean;
    createdAtMs: number;
  }>;

type NewUser = Readonly<{
  /** One of `newId`, for what must name the user before it is made. */
  id?: string;
  email: Email;
  membership: Membership;
  passwordHash: string | undefined;
  subject?: string;
}>;

type UserRow = Readonly<
  Pick<User, 'id' | 'email' | 'role' | 'createdAtMs'> &
    Record<'passwordHash' | 'subject', string | null> &
    Record<'hasSecondFactor' | 'isEmailVerified', number> & { accountId: number | null }
>;

/** Users on one page: more than a team has. */
const USERS_SHOWN_MAX = 500;
const ID_BYTES = 12;
const SELECT = `
  SELECT id, email, role, account_id AS accountId, password_hash AS passwordHash, subject, created_at_ms AS createdAtMs,
    totp_secret IS NOT NULL AS hasSecondFactor, email_verified AS isEmailVerified FROM users`;

export function createUsers(
  store: Store,
  { note, clock, random }: Readonly<{ note: Audit['note']; clock: Clock; random(bytes: number): Uint8Array }>,
) {
  const [byEmail, byId, bySubject] = [userWhere('email'), userWhere('id'), userWhere('subject')];
  const insert = store.prepare(`
    INSERT INTO users (id, email, role, account_id, password_hash, subject, email_verified, created_at_ms)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const update = store.prepare('UPDATE users SET password_hash = ? WHERE id = ?');
  const link = store.prepare(`
    UPDATE users SET subject = ?, email_verified = 1 WHERE id = ? AND subject IS NULL`);
  const dropLink = store.prepare('UPDATE users SET subject = NULL WHERE id = ?');
  const endOthers = store.prepare('DELETE FROM sessions WHERE user_id = ? AND token_hash IS NOT ?');
  const forget = store.prepare('DELETE FROM users WHERE id = ?');

  function userWhere(column: 'email' | 'id' | 'subject') {
    const one = store.prepare<UserRow, [string]>(`${SELECT} WHERE ${column} = ?`);
    return (value: string): User | undefined => {
      const row = one.get(value);
      return row === null ? undefined : userFrom(row);
    };
  }

  /** In order of their making; with a condition, at most `USERS_SHOWN_MAX`. */
  function list(where = '', ...values: number[]): readonly User[] {
    const sql = `${SELECT} ${where} ORDER BY created_at_ms, id LIMIT ${where === '' ? -1 : USERS_SHOWN_MAX}`;
    const users = store.query<UserRow, number[]>(sql);
    return users.all(...values).map(userFrom);
  }

  const newId = () => Buffer.from(random(ID_BYTES)).toString('hex');

  function noteChange(action: `user.${string}`, user: User, actor: Actor, detail = {}) {
    note({ atMs: clock.now(), actor, action, accountId: user.accountId, subject: user.id, detail });
  }

  const create = store.transaction((given: NewUser, actor?: Actor) => {
    const { id = newId(), email, membership, passwordHash, subject } = given;
    if (byEmail(email) !== undefined) return { kind: 'email-taken' } as const;
    const [account, hash, link] = [membership.accountId ?? null, passwordHash ?? null, subject ?? null];
    const isVerified = actor !== undefined || subject !== undefined ? 1 : 0;
    insert.run(id, email, membership.role, account, hash, link, isVerified, clock.now());
    const user = byId(id);
    if (user === undefined) throw new Error('a user vanished inside its own transaction');
    noteChange('user.create', user, actor ?? actorOf(id, membership.role), { email, role: membership.role });
    return { kind: 'created', user } as const;
  });

  const setSubject = store.transaction((user: User, subject: string) => {
    if (link.run(subject, user.id).changes === 0) return false;
    noteChange('user.link', user, actorOf(user.id, user.role));
    return true;
  });

  const change = store.transaction(
    (action: `user.${string}`, user: User, actor: Actor, act: () => unknown, detail = {}): void => {
      act();
      noteChange(action, user, actor, detail);
    },
  ).immediate;

  return {
    newId,
    /** `actor` is absent when the new user is the one who does it: the e-mail is verified by a `subject` alone then. */
    create: create.immediate,
    find: (email: Email) => byEmail(email),
    byId,
    bySubject,
    list: () => list(),
    ofAccount: (accountId: number) => list('WHERE account_id = ?', accountId),
    operators: () => list("WHERE role = 'operator'"),
    /** Every session of the user ends but the one whose token's hash is kept. */
    setPassword: (user: User, hash: string, actor: Actor, kept?: Uint8Array): void =>
      change('user.set-password', user, actor, () => {
        update.run(hash, user.id);
        endOthers.run(user.id, kept ?? null);
      }),
    /** Ends every session of the user but the one whose token's hash is kept. */
    signOut: (user: User, actor: Actor, kept?: Uint8Array): void =>
      change('user.sign-out', user, actor, () => endOthers.run(user.id, kept ?? null)),
    /** For a subject whose e-mail is the user's. `false`: the user has a subject already, which stays. */
    setSubject: setSubject.immediate,
    unlink: (user: User, actor: Actor): void =>
      change('user.unlink', user, actor, () => dropLink.run(user.id)),
    /** With all sessions: the user is out at once. */
    remove: (user: User, actor: Actor): void =>
      change('user.remove', user, actor, () => forget.run(user.id), { email: user.email }),
  };
}

export type Users = ReturnType<typeof createUsers>;

/** Only `readEmail` makes what is written as an e-mail. */
function userFrom({ role, accountId, ...row }: UserRow): User {
  return {
    ...row,
    ...membershipFrom(role, accountId),
    passwordHash: row.passwordHash ?? undefined,
    hasSecondFactor: row.hasSecondFactor === 1,
    subject: row.subject ?? undefined,
    isEmailVerified: row.isEmailVerified === 1,
  };
}

export function membershipFrom(role: 'operator' | 'customer', accountId: number | null): Membership {
  if (role === 'operator') return { role, accountId: accountId ?? undefined };
  if (accountId === null) throw new Error('a customer without an account: the table refuses that');
  return { role, accountId };
}
