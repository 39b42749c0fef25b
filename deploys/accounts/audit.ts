import type { KeyId } from '../../shared/keys/api-key.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';

/** How long an entry stays at least: 400 days, so that a year can be compared with the one before. */
export const AUDIT_KEPT_MS = 400 * 86_400_000;

/**
 * Who changed what. `at_ms` is Unix milliseconds; `action` is a noun and a verb, `webhook.rotate`; `subject` is the id of
 * what was changed; `account_id` is null for what belongs to no account. The table itself refuses changes, and the
 * deletion of what is not `AUDIT_KEPT_MS` older than its newest entry.
 */
export const AUDIT_MIGRATIONS: Migrations = {
  'audit-1': `
    CREATE TABLE audit (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      at_ms INTEGER NOT NULL,
      actor_kind TEXT NOT NULL CHECK (actor_kind IN ('key', 'user', 'operator', 'command-line')),
      actor_id TEXT,
      action TEXT NOT NULL,
      account_id INTEGER,
      subject TEXT NOT NULL,
      detail_json TEXT NOT NULL CHECK (json_type(detail_json) = 'object'),
      CHECK ((actor_id IS NULL) = (actor_kind = 'command-line'))
    ) STRICT;
    CREATE INDEX audit_of_account ON audit (account_id, id);
    CREATE INDEX audit_at ON audit (at_ms);
    CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
      BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
    CREATE TRIGGER audit_is_kept BEFORE DELETE ON audit
      WHEN old.at_ms > (SELECT max(at_ms) FROM audit) - ${AUDIT_KEPT_MS}
      BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END;
  `,
  'audit-2': `
    CREATE INDEX audit_of_actor ON audit (actor_id, id);
    CREATE INDEX audit_of_action ON audit (action, id);
  `,
};

/** Who changes something: a key, a user of the account, an operator, or the command line. None of the members is secret. */
export type Actor =
  | { readonly kind: 'key'; readonly keyId: KeyId }
  | { readonly kind: 'user' | 'operator'; readonly userId: string }
  | { readonly kind: 'command-line' };

/** A change's account and who makes it, which are two things: an operator changes what is another's. */
export type By = Readonly<{ accountId: number; actor: Actor }>;

/** A person at the console as the one who acts. */
export function actorOf(userId: string, role: 'operator' | 'customer'): Actor {
  return { kind: role === 'operator' ? 'operator' : 'user', userId };
}

/** The id that goes with the kind: a key's, a person's, or none. */
function actorId(actor: Actor): string | null {
  if (actor.kind === 'command-line') return null;
  return actor.kind === 'key' ? actor.keyId : actor.userId;
}

/** Details that may be written beside an action. A secret, which is an object, is none of it; nor are whole URLs: they may hold one. */
export type Detail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** A noun and a verb. */
export type Action = `${string}.${string}`;

/** `accountId` is absent for what belongs to no account. `subject` is the id of what was changed. */
type Note = Readonly<{
  atMs: number;
  actor: Actor;
  action: Action;
  accountId?: number | undefined;
  subject: string;
  detail?: Detail;
}>;

/** An entry as a page shows it. A smaller `id` is older. */
export type AuditEntry = Readonly<{
  id: number;
  atMs: number;
  actorKind: Actor['kind'];
  actorId: string | null;
  action: string;
  accountId: number | null;
  subject: string;
  detail: Detail;
}>;

/** Entries for which all that is given holds. `actorId: null`: the command line; `before`: the last `id` of the page before. */
type EntryPage = Readonly<{
  accountId?: number | undefined;
  actorId?: string | null | undefined;
  action?: string | undefined;
  before?: number | undefined;
  limit: number;
}>;

const LIMIT_MAX = 100;
const ROWS_MAX = 500;

type AuditRow = Omit<AuditEntry, 'detail'> & Readonly<{ detailJson: string }>;

const CONDITIONS = [
  ['accountId', 'account_id = $accountId'],
  ['actorId', 'actor_id IS $actorId'],
  ['action', 'action = $action'],
] as const;

/** Hops from one action to the next by the index, however many entries each has. */
const DISTINCT_ACTIONS = `
  WITH RECURSIVE found (action) AS (
    SELECT min(action) FROM audit
    UNION ALL SELECT (SELECT min(action) FROM audit WHERE action > found.action) FROM found
      WHERE found.action IS NOT NULL
  ) SELECT action FROM found WHERE action IS NOT NULL`;

const SELECT = `
  SELECT id, at_ms AS atMs, actor_kind AS actorKind, actor_id AS actorId, action, account_id AS accountId, subject,
    detail_json AS detailJson FROM audit`;

export function createAudit(store: Store) {
  const add = store.prepare<
    unknown,
    [number, Actor['kind'], string | null, Action, number | null, string, string]
  >(`
    INSERT INTO audit (at_ms, actor_kind, actor_id, action, account_id, subject, detail_json)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const actions = store.prepare<{ action: string }, []>(DISTINCT_ACTIONS);
  const forget = store.prepare(`
    DELETE FROM audit WHERE id IN (SELECT id FROM audit
      WHERE at_ms <= (SELECT max(at_ms) FROM audit) - ${AUDIT_KEPT_MS} ORDER BY at_ms LIMIT ${ROWS_MAX})`);

  return {
    /** To be called in the transaction of the change itself: when it throws, the change did not happen. */
    note: ({ atMs, actor, action, accountId, subject, detail = {} }: Note): void => {
      add.run(atMs, actor.kind, actorId(actor), action, accountId ?? null, subject, JSON.stringify(detail));
    },
    /** Newest first. */
    list: (page: EntryPage): AuditEntry[] => {
      const { accountId = null, actorId = null, action = null, before = Number.MAX_SAFE_INTEGER } = page;
      const limit = Math.max(1, Math.min(page.limit, LIMIT_MAX));
      const wanted = CONDITIONS.filter(([name]) => page[name] !== undefined);
      const where = [...wanted.map(([, condition]) => condition), 'id < $before'].join(' AND ');
      const entries = store.query<AuditRow, Record<string, string | number | null>>(`
        ${SELECT} WHERE ${where} ORDER BY id DESC LIMIT $limit`);
      const rows = entries.all({ accountId, actorId, action, before, limit });
      return rows.map(({ detailJson, ...row }) => ({ ...row, detail: JSON.parse(detailJson) }));
    },
    /** The actions that were ever noted, by name. */
    actions: (): string[] => actions.all().map(({ action }) => action),
    /** Forgets entries older than `AUDIT_KEPT_MS`, 500 at a time; `true` while there may be more. */
    prune: (): boolean => forget.run().changes > 0,
  };
}

export type Audit = ReturnType<typeof createAudit>;
