import { createHash } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { Store } from '../../shared/store/open.ts';
import { type Membership, membershipFrom } from './users.ts';

/** `__Host-`: browsers refuse it from a subdomain, from another path and over plain http except on this machine. */
export type CookieName = `__Host-${string}`;

export const SESSION_COOKIE: CookieName = '__Host-sluice';

/** The value of a request's cookie; `undefined` when there is none, or more than one. */
export function cookieOf(headers: Headers, name: CookieName): string | undefined {
  const pairs = (headers.get('cookie') ?? '').split(';').map((pair) => pair.trim());
  const values = pairs.filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]?.slice(name.length + 1) : undefined;
}

/** The `Set-Cookie` of a value of base64url and dots; `lastMs` 0 ends it. Lax, so that a link from elsewhere finds its reader logged in. */
export function setCookie(name: CookieName, value: string, lastMs: number): string {
  return `${name}=${value}; Path=/; Max-Age=${Math.floor(lastMs / 1_000)}; HttpOnly; Secure; SameSite=Lax`;
}

const HOUR_MS = 3_600_000;
/** How long a session lasts without use, and how long at most. */
export const SESSION_MS = { idle: 12 * HOUR_MS, absolute: 30 * 24 * HOUR_MS } as const;
/** A use is written down at most this often. */
const TOUCH_MS = 60_000;
/** Beyond these the one that was used longest ago ends. */
const SESSIONS_PER_USER_MAX = 20;
const USER_AGENT_CHARACTERS_MAX = 200;
const TOKEN_BYTES = 32;

/** A session that goes on, with its user as the user is now. */
export type Session = Membership &
  Readonly<{ userId: string; email: string; hasSecondFactor: boolean; tokenHash: Uint8Array }>;

/** A session as its user sees it in a list. `userAgent` is what the browser said of itself. */
export type SessionRow = Readonly<{
  userAgent: string;
  createdAtMs: number;
  usedAtMs: number;
  isThis: boolean;
}>;

type StoredSessionRow = Omit<Session, 'accountId' | 'hasSecondFactor'> &
  Record<'hasSecondFactor' | 'usedAtMs', number> & { accountId: number | null };

/** The sessions of `store`. Only hashes of tokens are kept: who reads the database gets no session from it. */
export function createSessions(
  store: Store,
  { clock, random }: Readonly<{ clock: Clock; random(bytes: number): Uint8Array }>,
) {
  const live = 'used_at_ms > ?2 AND created_at_ms > ?3';
  const select = store.prepare<StoredSessionRow, [Uint8Array, number, number]>(`
    SELECT user_id AS userId, email, role, account_id AS accountId, totp_secret IS NOT NULL AS hasSecondFactor,
      used_at_ms AS usedAtMs, token_hash AS tokenHash FROM sessions JOIN users ON users.id = user_id
    WHERE token_hash = ?1 AND used_at_ms > ?2 AND sessions.created_at_ms > ?3`);
  const touch = store.prepare('UPDATE sessions SET used_at_ms = ? WHERE token_hash = ?');
  const insert = store.prepare('INSERT INTO sessions VALUES (?1, ?2, ?3, ?3, ?4)');
  const drop = store.prepare('DELETE FROM sessions WHERE token_hash = ?');
  const dropOver = store.prepare(`DELETE FROM sessions WHERE user_id = ?1 AND NOT (${live})`);
  const dropMany = store.prepare(`
    DELETE FROM sessions WHERE token_hash IN (SELECT token_hash FROM sessions WHERE user_id = ?1
      ORDER BY used_at_ms DESC LIMIT -1 OFFSET ${SESSIONS_PER_USER_MAX})`);
  type Listed = Omit<SessionRow, 'isThis'> & { tokenHash: Uint8Array };
  const ofUser = store.prepare<Listed, [string, number, number]>(`
    SELECT user_agent AS userAgent, created_at_ms AS createdAtMs, used_at_ms AS usedAtMs, token_hash AS tokenHash
    FROM sessions WHERE user_id = ?1 AND ${live} ORDER BY used_at_ms DESC`);
  const bounds = (): [number, number] => [clock.now() - SESSION_MS.idle, clock.now() - SESSION_MS.absolute];

  const begin = store.transaction((userId: string, userAgent: string | null, former: string | undefined) => {
    const token = Buffer.from(random(TOKEN_BYTES)).toString('base64url');
    if (former !== undefined) drop.run(hashOf(former));
    store.run('DELETE FROM sessions WHERE used_at_ms <= ?', [bounds()[0]]);
    dropOver.run(userId, ...bounds());
    insert.run(hashOf(token), userId, clock.now(), (userAgent ?? '').slice(0, USER_AGENT_CHARACTERS_MAX));
    dropMany.run(userId);
    return token;
  });

  return {
    /** Gives the new session's token; `former` is what the browser had before, which ends. */
    begin: begin.immediate,
    /** The session of a token, which is thereby used unless `isUse` says no; `undefined`: there is none, or it is over. */
    find(token: string, isUse = true): Session | undefined {
      const row = select.get(hashOf(token), ...bounds());
      if (row === null) return undefined;
      const { role, accountId, usedAtMs, ...session } = row;
      if (isUse && clock.now() - usedAtMs >= TOUCH_MS) touch.run(clock.now(), session.tokenHash);
      return { ...session, ...membershipFrom(role, accountId), hasSecondFactor: row.hasSecondFactor === 1 };
    },
    end: (token: string) => void drop.run(hashOf(token)),
    /** Used last first. */
    list: (userId: string, current: Uint8Array): readonly SessionRow[] =>
      ofUser.all(userId, ...bounds()).map(({ tokenHash, ...row }) => ({
        ...row,
        isThis: Buffer.compare(tokenHash, current) === 0,
      })),
  };
}

/** Tokens of 256 bits need no slow hash. */
export function hashOf(token: string): Uint8Array {
  return createHash('sha256').update(token).digest();
}
