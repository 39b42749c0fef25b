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

/**
 * Entries for which all that is given holds. `actorId` is a key's or a person's id; `null`: the command line. `before`
 * is the `id` of the last entry of the page before; `limit` is 1 to 100.
 */
export type EntryPage = Readonly<{
  accountId?: number | undefined;
  actorId?: string | null | undefined;
  action?: string | undefined;
  before?: number | undefined;
  limit: number;
}>;

export type Audit = Readonly<{
  /** To be called in the transaction of the change itself, so that there is never one without the other. */
  note(note: Note): void;
  /** Newest first. */
  list(page: EntryPage): Entry[];
  /** The actions that were ever noted, by name. */
  actions(): string[];
  /** Forgets entries older than `AUDIT_KEPT_MS`, 500 at a time; `true` while there may be more. */
  prune(): boolean;
}>;

const LIMIT_MAX = 100;
const ROWS_MAX = 500;

type Row = Omit<Entry, 'detail'> & Readonly<{ detailJson: string }>;

type Wanted = Record<string, string | number | null>;

const CONDITIONS = ['accountId', 'actorId', 'action'] as const;
const CONDITION = {
  accountId: 'account_id = $accountId',
  actorId: 'actor_id IS $actorId',
  action: 'action = $action',
} as const;

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

/** The log of who changed what, in `store`. */
export function createAudit(store: Store): Audit {
  const add = store.prepare<
    unknown,
    [number, Actor['kind'], string | null, Action, number | null, string, string]
  >(`
    INSERT INTO audit (at_ms, actor_kind, actor_id, action, account_id, subject, detail_json)
    VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const lists = new Map(
    everySetOf(CONDITIONS).map((conditions) => {
      const where = [...conditions.map((name) => CONDITION[name]), 'id < $before'].join(' AND ');
      return [
        conditions.join(),
        store.prepare<Row, Wanted>(`${SELECT} WHERE ${where} ORDER BY id DESC LIMIT $limit`),
      ];
    }),
  );
  const actions = store.prepare<{ action: string }, []>(DISTINCT_ACTIONS);
  const forget = store.prepare(`
    DELETE FROM audit WHERE id IN (SELECT id FROM audit
      WHERE at_ms <= (SELECT max(at_ms) FROM audit) - ${AUDIT_KEPT_MS} ORDER BY at_ms LIMIT ${ROWS_MAX})`);

  return {
    note: ({ atMs, actor, action, accountId, subject, detail = {} }) => {
      const id = actorId(actor) ?? null;
      add.run(atMs, actor.kind, id, action, accountId ?? null, subject, JSON.stringify(detail));
    },
    list: (page) => {
      const { before = Number.MAX_SAFE_INTEGER, limit } = page;
      const wanted = CONDITIONS.filter((name) => page[name] !== undefined);
      const bound: Wanted = { before, limit: Math.max(1, Math.min(limit, LIMIT_MAX)) };
      for (const name of wanted) bound[name] = page[name] ?? null;
      const rows = lists.get(wanted.join())?.all(bound) ?? [];
      return rows.map(({ detailJson, ...row }) => ({ ...row, detail: JSON.parse(detailJson) }));
    },
    actions: () => actions.all().map(({ action }) => action),
    prune: () => forget.run().changes > 0,
  };
}

/** Every choice of some of the names, in their order; none of them among the choices. */
function everySetOf<Name>([first, ...others]: readonly Name[]): readonly (readonly Name[])[] {
  if (first === undefined) return [[]];
  const rest = everySetOf(others);
  return [...rest, ...rest.map((set) => [first, ...set])];
}
