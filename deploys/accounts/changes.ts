import { accountText, keyText, type PublishedKey, type PublishedRow } from '../../shared/publication.ts';
import type { Store } from '../../shared/store/open.ts';
import { createAudit } from './audit.ts';

/** Changes in the order of their revisions; with them everything up to `upTo` is known. `isLast`: there are no more. */
type Portion = Readonly<{ rows: readonly PublishedRow[]; upTo: number; isLast: boolean }>;

/** The members are columns of the table. */
type LastPublished = Readonly<{
  epoch: string | null;
  puts: number;
  published: number;
  generation: number;
  announced: number;
  turns: number;
  behind: number | null;
  takeOver: number;
}>;

/** The accounts database as its publisher sees it. All of it throws when the database does not answer. */
export type Changes = ReturnType<typeof createChanges>;

/** Rows sent at once: a few milliseconds of Redis, and 75 KB. */
export const PORTION = 500;
/** Changes among which revocations are looked for: some tens of milliseconds. */
const LATEST = 50_000;
/** Starts of deploys that are remembered; a gateway that saw only older ones reads from Redis. */
const PUBLISHERS_KEPT = 1_000;

type ChangeRow = Readonly<{ seq: number; subject: 'account' | 'key'; id: string }>;

export function createChanges(store: Store) {
  const origin = originOf(store);
  const revisionOf = store.prepare<{ value: number; config: number }, []>(`
    SELECT value, config FROM revision`);
  const changed = store.prepare<ChangeRow, [number]>(`
    SELECT seq, subject, id FROM changes WHERE seq > ? ORDER BY seq LIMIT ${PORTION}`);
  const urgent = store.prepare<Pick<ChangeRow, 'subject' | 'id'>, [number, number]>(`
    SELECT subject, latest.id FROM (SELECT seq, subject, id FROM changes WHERE seq > ?1 ORDER BY seq DESC LIMIT ${LATEST}) AS latest
    LEFT JOIN keys ON subject = 'key' AND keys.id = latest.id
    LEFT JOIN accounts ON subject = 'account' AND accounts.id = CAST(latest.id AS INTEGER)
    WHERE keys.revoked_at_ms IS NOT NULL OR accounts.suspended = 1 OR keys.expires_at_ms <= ?2
    ORDER BY seq DESC LIMIT ${PORTION}`);
  const raised = store.prepare<{ config: number }, [number]>(`
    UPDATE revision SET config = max(config, ?) + 1 RETURNING config`);
  const rowOf = createRows(store);

  function revision() {
    const row = revisionOf.get();
    if (row === null) throw new Error('the revision row is missing');
    return row;
  }

  const after = store.transaction((from: number): Portion => {
    const { value } = revision();
    const rows = changed.all(from);
    const isLast = rows.length < PORTION;
    const upTo = isLast ? value : (rows.at(-1)?.seq ?? value);
    return { rows: rows.map(({ subject, id }) => rowOf(subject, id)), upTo, isLast };
  });

  const begin = store.transaction((epoch: string, above: number) => {
    store.run('UPDATE revision SET value = max(value, ?)', [above]);
    // Of a database that was never published all is written from the beginning, and nothing is news.
    store.run(
      `UPDATE publication SET epoch = ?1, puts = 0, published = CASE WHEN published = 0
        THEN (SELECT value FROM revision) WHEN ?2 > 0 THEN min(published, ?2) ELSE published END`,
      [epoch, above],
    );
  });

  return {
    origin,
    revision,
    after: (seq: number): Portion => after(seq),
    /**
     * Of what changed after a revision, keys that are revoked or end by `soonMs` and accounts that are suspended, the newest
     * first: a portion at most of the latest changes.
     */
    urgentAfter: (seq: number, soonMs: number): readonly PublishedRow[] =>
      urgent.all(seq, soonMs).map(({ subject, id }) => rowOf(subject, id)),
    /** Of names of rows those that have no row here any more. */
    goneOf: (names: readonly string[]): readonly PublishedRow[] =>
      names
        .map((name) => rowOf(name.startsWith('a') ? 'account' : 'key', name.slice(1)))
        .filter(([, text]) => text === ''),
    /** Begins an epoch over a Redis that has changes up to a revision. No revision up to that is given out any more. */
    begin: (epoch: string, above: number) => void begin.immediate(epoch, above),
    /** Notes that a write is in Redis, and with it all changes up to a revision. */
    sent: (puts: number, upTo: number) =>
      void store.run('UPDATE publication SET puts = ?, published = max(published, ?)', [puts, upTo]),
    /** Has every app of this host read its config again, under a number above `above`; gives the number. */
    raiseConfig: (above: number): number => raised.get(above)?.config ?? above,
    end: createEnd(store),
    ...createStanding(store),
  };
}

/** Whether this file is the latest of its copies, as far as it knows itself. */
function createStanding(store: Store) {
  const lastOf = store.prepare<LastPublished, []>(`
    SELECT epoch, puts, published, generation, announced, turns, behind, take_over AS takeOver FROM publication`);
  const latestEntry = store.prepare<{ id: number | null }, []>(`
    SELECT max(id) AS id FROM audit WHERE id > (SELECT audited FROM publication)`);
  const publisher = store.prepare('SELECT 1 FROM publishers WHERE token = ?');
  const nextTurn = store.prepare<{ turns: number }, []>(`
    UPDATE publication SET turns = turns + 1 RETURNING turns`);

  const requested = store.prepare<{ generation: number }, [number]>(`
    UPDATE publication SET take_over = max(generation, coalesce(behind, 0), ?) + 1 RETURNING take_over AS generation`);

  const noteTakenOver = store.transaction((seq: number, turns: number) => {
    store.run('UPDATE revision SET value = max(value, ?)', [seq]);
    store.run(
      `UPDATE publication SET epoch = NULL, announced = max(announced, ?), turns = max(turns, ?), behind = NULL, take_over = 0`,
      [seq, turns],
    );
  });

  const addPublisher = store.transaction((token: string, nowMs: number, generation: number) => {
    store.run('UPDATE publication SET generation = ?', [generation]);
    // The latest by the order of starts, whatever the clock says.
    store.run(
      `INSERT OR IGNORE INTO publishers (token, at_ms)
       VALUES (?1, (SELECT max(?2, coalesce(max(at_ms), 0) + 1) FROM publishers))`,
      [token, nowMs],
    );
    store.run(
      `DELETE FROM publishers WHERE token NOT IN (SELECT token FROM publishers ORDER BY at_ms DESC LIMIT ${PUBLISHERS_KEPT})`,
    );
  });

  return {
    last(): LastPublished {
      const row = lastOf.get();
      if (row === null) throw new Error('the publication row is missing');
      return row;
    },
    /** Whether this file, and not only a later state of it, was published by the start of deploys with this token. */
    knows: (token: string): boolean => publisher.get(token) !== null,
    /** Before Redis has changes up to a revision: after a power cut this file must not look like an older copy. */
    announce: (seq: number) => void store.run('UPDATE publication SET announced = max(announced, ?)', [seq]),
    /** Counts a turn of deliveries, before Redis does. */
    nextTurn: (): number => nextTurn.get()?.turns ?? 0,
    /** Counts what was changed beside accounts and keys, all of which is audited, as a turn. */
    countEntries(): void {
      const { id } = latestEntry.get() ?? { id: null };
      if (id !== null) store.run('UPDATE publication SET turns = turns + 1, audited = ?', [id]);
    },
    /** Notes what generation is published; an operator's word for one up to that is void. */
    noteBehind: (published: number) =>
      void store.run(
        `UPDATE publication SET behind = ?1, take_over = CASE WHEN take_over > ?1 THEN take_over ELSE 0 END`,
        [published],
      ),
    /**
     * Makes all that Redis has, or had, this file's: nothing there is later any more. All is written anew, for hosts may have
     * more of what was written before than Redis.
     */
    noteTakenOver: (seq: number, turns: number) => void noteTakenOver.immediate(seq, turns),
    /** Asks for the generation after all that are known here, and after the published one; gives it. */
    requestTakeOver: (published: number): number => requested.get(published)?.generation ?? 0,
    /** An operator's word for what is so already, or cannot be. */
    dropTakeOver: () => void store.run('UPDATE publication SET take_over = 0'),
    /** Notes a start of deploys that publishes this file, before Redis does. */
    addPublisher: (token: string, nowMs: number, generation: number) =>
      void addPublisher.immediate(token, nowMs, generation),
  };
}

function createRows(store: Store): (subject: 'account' | 'key', id: string) => PublishedRow {
  const account = store.prepare<
    { plan: string | null; creditsGranted: number | null; suspended: number },
    [string]
  >('SELECT plan, credits_granted AS creditsGranted, suspended FROM accounts WHERE id = ?');
  const key = store.prepare<PublishedKey & { revokedAtMs: number | null }, [string]>(`
    SELECT lower(hex(hash)) AS hash, account_id AS accountId, expires_at_ms AS expiresAtMs, revoked_at_ms AS revokedAtMs
    FROM keys WHERE id = ?`);

  return function rowOf(subject, id) {
    const row = subject === 'account' ? account.get(id) : key.get(id);
    if (row === null) return [`${subject[0]}${id}`, ''];
    if ('hash' in row) {
      if (row.revokedAtMs !== null) return [`k${id}`, '', row.revokedAtMs];
      return row.expiresAtMs === null ? [`k${id}`, keyText(row)] : [`k${id}`, keyText(row), row.expiresAtMs];
    }
    return [`a${id}`, accountText({ ...row, suspended: row.suspended === 1 })];
  };
}

/** Ends keys that ended in a later state of this database: a revoked one must not work again. Gives how many it knew nothing of. */
function createEnd(store: Store) {
  const { note } = createAudit(store);
  const ending = store.prepare<{ accountId: number }, [string, number]>(`
    SELECT account_id AS accountId FROM keys
    WHERE id = ?1 AND revoked_at_ms IS NULL AND coalesce(expires_at_ms, 9e15) > ?2`);
  const revoke = store.prepare('UPDATE keys SET revoked_at_ms = ?2 WHERE id = ?1');
  const expire = store.prepare('UPDATE keys SET expires_at_ms = ?2 WHERE id = ?1');
  const end = store.transaction((ends: readonly (readonly [name: string, atMs: number])[], nowMs: number) => {
    const known = ends.flatMap(([name, atMs]) => {
      const [isRevoked, id] = [name.startsWith('r'), name.slice(1)];
      // A revoked key has ended whatever the clocks say.
      const row = ending.get(id, isRevoked ? 0 : atMs);
      return row === null ? [] : [{ id, atMs, isRevoked, ...row }];
    });
    for (const { id, atMs, isRevoked, accountId } of known) {
      (isRevoked ? revoke : expire).run(id, atMs);
      const action = isRevoked ? 'key.revoke' : 'key.expire';
      const detail = { because: 'it ended in the database that was taken over from' };
      note({ atMs: nowMs, actor: { kind: 'command-line' }, action, accountId, subject: id, detail });
    }
    return known.length;
  });
  return end.immediate;
}

/** The id of this accounts database and of its copies. */
export function originOf(store: Store): string {
  const origin = store.query<{ id: string }, []>('SELECT id FROM origin').get()?.id;
  if (origin === undefined) throw new Error('the origin row is missing');
  return origin;
}
