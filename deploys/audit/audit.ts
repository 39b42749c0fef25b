import type { Store } from '../../shared/store/open.ts';
import { type Actor, actorId } from './actor.ts';
import { AUDIT_KEPT_MS } from './schema.ts';

/** What may be written beside an action. A secret, which is an object, is none of it; nor are whole URLs: they may hold one. */
export type Detail = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** A noun and a verb. */
export type Action = `${string}.${string}`;

/** `accountId` is absent for what belongs to no account. `subject` is the id of what was changed. */
export type Note = Readonly<{
  atMs: number;
  actor: Actor;
  action: Action;
  accountId?: number | undefined;
  subject: string;
  detail?: Detail;
}>;

/** An entry as a page shows it. A smaller `id` is older. */
export type Entry = Readonly<{
  id: number;
  atMs: number;
  actorKind: Actor['kind'];
  actorId: string | null;
  action: string;
  accountId: number | null;
  subject: string;
  detail: Detail;
}>;

/** `before` is the `id` of the last entry of the page before; `limit` is 1 to 100. */
export type EntryPage = Readonly<{ accountId?: number; before?: number; limit: number }>;

export type Audit = Readonly<{
  /** To be called in the transaction of the change itself, so that there is never one without the other. */
  note(note: Note): void;
  /** Newest first; of one account, or of all. */
  list(page: EntryPage): Entry[];
  /** Forgets entries older than `AUDIT_KEPT_MS`, 500 at a time; `true` while there may be more. */
  prune(): boolean;
}>;

const LIMIT_MAX = 100;
const ROWS_MAX = 500;

type Row = Omit<Entry, 'detail'> & Readonly<{ detailJson: string }>;

const SELECT = `
  SELECT id, at_ms AS atMs, actor_kind AS actorKind, actor_id AS actorId, action, account_id AS accountId, subject,
    detail_json AS detailJson FROM audit`;

/** The log of who changed what, in `store`. */
export function createAudit(store: Store): Audit {
  const add = store.prepare<
    unknown,
    [number, Actor['kind'], string | null, Action, number | null, string, string]
  >(`
    INSERT INTO audit (at_ms, actor_kind, actor_id, action, account_id, subject, detail_json)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const all = store.prepare<Row, [number, number]>(`${SELECT} WHERE id < ?1 ORDER BY id DESC LIMIT ?2`);
  const ofAccount = store.prepare<Row, [number, number, number]>(
    `${SELECT} WHERE account_id = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2`,
  );
  const forget = store.prepare(`
    DELETE FROM audit WHERE id IN (SELECT id FROM audit
      WHERE at_ms <= (SELECT max(at_ms) FROM audit) - ${AUDIT_KEPT_MS} ORDER BY at_ms LIMIT ${ROWS_MAX})`);

  return {
    note: ({ atMs, actor, action, accountId, subject, detail = {} }) => {
      const id = actorId(actor) ?? null;
      add.run(atMs, actor.kind, id, action, accountId ?? null, subject, JSON.stringify(detail));
    },
    list: ({ accountId, before = Number.MAX_SAFE_INTEGER, limit }) => {
      const most = Math.max(1, Math.min(limit, LIMIT_MAX));
      const rows = accountId === undefined ? all.all(before, most) : ofAccount.all(before, most, accountId);
      return rows.map(({ detailJson, ...row }) => ({ ...row, detail: JSON.parse(detailJson) }));
    },
    prune: () => forget.run().changes > 0,
  };
}
