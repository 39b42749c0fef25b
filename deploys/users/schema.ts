import type { Migrations } from '../../shared/store/open.ts';

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
