import { accountText, keyText, type PublishedKey, type PublishedRow } from '../../shared/publication.ts';
import type { Store } from '../../shared/store/open.ts';

/** Changes in the order of their revisions; with them everything up to `upTo` is known. `isLast`: there are no more. */
type Portion = Readonly<{ rows: readonly PublishedRow[]; upTo: number; isLast: boolean }>;

type LastPublished = Readonly<{ epoch: string | null; puts: number; published: number }>;

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
  const lastOf = store.prepare<LastPublished, []>('SELECT epoch, puts, published FROM publication');
  const changed = store.prepare<ChangeRow, [number]>(`
    SELECT seq, subject, id FROM changes WHERE seq > ? ORDER BY seq LIMIT ${PORTION}`);
  const revoked = store.prepare<{ id: string }, [number]>(`
    SELECT keys.id FROM (SELECT seq, subject, id FROM changes WHERE seq > ? ORDER BY seq DESC LIMIT ${LATEST}) AS latest
    JOIN keys ON keys.id = latest.id WHERE latest.subject = 'key' AND keys.revoked_at_ms IS NOT NULL
    ORDER BY latest.seq DESC LIMIT ${PORTION}`);
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

  const addPublisher = store.transaction((token: string, nowMs: number) => {
    store.run('INSERT OR IGNORE INTO publishers (token, at_ms) VALUES (?, ?)', [token, nowMs]);
    store.run(
      `DELETE FROM publishers WHERE token NOT IN (SELECT token FROM publishers ORDER BY at_ms DESC LIMIT ${PUBLISHERS_KEPT})`,
    );
  });

  return {
    origin,
    revision,
    after: (seq: number): Portion => after(seq),
    /** Keys that were revoked after a revision, the newest first: a portion at most of the latest changes. */
    revokedAfter: (seq: number): readonly PublishedRow[] =>
      revoked.all(seq).map(({ id }) => rowOf('key', id)),
    /** Of names of rows those that have no row here any more. */
    goneOf: (names: readonly string[]): readonly PublishedRow[] =>
      names
        .map((name) => rowOf(name.startsWith('a') ? 'account' : 'key', name.slice(1)))
        .filter(([, text]) => text === ''),
    last: (): LastPublished => lastOf.get() ?? { epoch: null, puts: 0, published: 0 },
    /** Begins an epoch over a Redis that has changes up to a revision. No revision up to that is given out any more. */
    begin: (epoch: string, above: number) => void begin.immediate(epoch, above),
    /** Notes that a write is in Redis, and with it all changes up to a revision. */
    sent: (puts: number, upTo: number) =>
      void store.run('UPDATE publication SET puts = ?, published = max(published, ?)', [puts, upTo]),
    /** Has every app of this host read its config again, under a number above `above`; gives the number. */
    raiseConfig: (above: number): number => raised.get(above)?.config ?? above,
    /** Notes a start of deploys that publishes this file. */
    addPublisher: (token: string, nowMs: number) => void addPublisher.immediate(token, nowMs),
  };
}

function createRows(store: Store): (subject: 'account' | 'key', id: string) => PublishedRow {
  const account = store.prepare<
    { plan: string | null; creditsGranted: number | null; suspended: number },
    [string]
  >('SELECT plan, credits_granted AS creditsGranted, suspended FROM accounts WHERE id = ?');
  const key = store.prepare<PublishedKey, [string]>(`
    SELECT lower(hex(hash)) AS hash, account_id AS accountId, expires_at_ms AS expiresAtMs FROM keys WHERE id = ? AND revoked_at_ms IS NULL`);

  return function rowOf(subject, id) {
    const row = subject === 'account' ? account.get(id) : key.get(id);
    if (row === null) return [`${subject[0]}${id}`, ''];
    if ('hash' in row) return [`k${id}`, keyText(row)];
    return [`a${id}`, accountText({ ...row, suspended: row.suspended === 1 })];
  };
}

/** The id of this accounts database and of its copies. */
export function originOf(store: Store): string {
  const origin = store.query<{ id: string }, []>('SELECT id FROM origin').get()?.id;
  if (origin === undefined) throw new Error('the origin row is missing');
  return origin;
}
