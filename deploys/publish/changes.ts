import { REVOKED_MAX } from '../../shared/publication/revoked.ts';
import { type PublishedRow, rowText } from '../../shared/publication/row.ts';
import type { Store } from '../../shared/store/open.ts';

/** A changed row: its revision, the one that it stands under in Redis (0: none), and its text. */
export type ChangedRow = Readonly<{ seq: number; published: number; text: string }>;

/** Changes in the order of their revisions; after them everything up to `upTo` is known. `isLast`: there are no more. */
export type Portion = Readonly<{ rows: readonly ChangedRow[]; upTo: number; isLast: boolean }>;

/** What this database published: see the schema. */
export type Publication = Readonly<{
  epoch: string | null;
  building: string | null;
  published: number;
  intent: number;
}>;

/** The accounts database as its publisher sees it. All of it throws when the database does not answer. */
export type Changes = Readonly<{
  origin: string;
  revision(): Readonly<{ value: number; config: number }>;
  after(seq: number): Portion;
  /** Ids of keys that were revoked after `seq`, the newest first: at most `REVOKED_MAX` of the latest `LATEST` changes. */
  revokedAfter(seq: number): readonly string[];
  publication(): Publication;
  /** Notes, before it is sent, that rows up to this revision may be in Redis soon. */
  intend(upTo: number): void;
  /** Notes that a portion is in Redis; it is of the epoch that is read unless one is being built. */
  sent(portion: Portion): void;
  /** Begins a full publication under the epoch `building`. No revision up to `above` is given out any more. */
  begin(building: string, above: number): void;
  /** The full publication is in Redis up to this revision. */
  finish(upTo: number): void;
  /** Has every app of this host read its config again, under a number above `above`; gives the number. */
  raiseConfig(above: number): number;
  /** Notes a start of deploys that publishes this file. */
  addPublisher(token: string, nowMs: number): void;
}>;

/** Rows sent at once: a millisecond of Redis, and 75 KB. */
export const PORTION = 500;
/** Changes among which revocations are looked for: some tens of milliseconds. */
const LATEST = 50_000;
/** Starts of deploys that are remembered; a gateway that saw only older ones reads its mirror. */
const PUBLISHERS_KEPT = 1_000;

type ChangeRow = Readonly<{ seq: number; subject: 'account' | 'key'; id: string; published: number }>;
type AccountRow = Readonly<{ plan: string | null; creditsGranted: number | null; suspended: number }>;
type KeyRow = Readonly<{
  hash: Uint8Array;
  accountId: number;
  expiresAtMs: number | null;
  revokedAtMs: number | null;
}>;

export function createChanges(store: Store): Changes {
  const revisionOf = store.prepare<{ value: number; config: number }, []>(
    'SELECT value, config FROM revision',
  );
  const changed = store.prepare<ChangeRow, [number]>(
    `SELECT seq, subject, id, published FROM changes WHERE seq > ? ORDER BY seq LIMIT ${PORTION}`,
  );
  const account = store.prepare<AccountRow, [string]>(
    'SELECT plan, credits_granted AS creditsGranted, suspended FROM accounts WHERE id = ?',
  );
  const key = store.prepare<KeyRow, [string]>(`
    SELECT hash, account_id AS accountId, expires_at_ms AS expiresAtMs, revoked_at_ms AS revokedAtMs
    FROM keys WHERE id = ?`);
  const publication = store.prepare<Publication, []>(
    'SELECT epoch, building, published, intent FROM publication',
  );
  const revoked = store.prepare<{ id: string }, [number]>(`
    SELECT keys.id FROM (SELECT seq, subject, id FROM changes WHERE seq > ? ORDER BY seq DESC LIMIT ${LATEST}) AS latest
    JOIN keys ON keys.id = latest.id WHERE latest.subject = 'key' AND keys.revoked_at_ms IS NOT NULL
    ORDER BY latest.seq DESC LIMIT ${REVOKED_MAX}`);
  const mark = store.prepare<null, [number, number]>('UPDATE changes SET published = ? WHERE seq = ?');

  const raised = store.prepare<{ config: number }, [number]>(
    'UPDATE revision SET config = max(config, ?) + 1 RETURNING config',
  );

  function rowOf({ subject, id }: ChangeRow): PublishedRow {
    if (subject === 'account') {
      const row = account.get(id);
      if (row !== null) return { kind: 'account', id: Number(id), ...row, suspended: row.suspended === 1 };
    } else {
      const row = key.get(id);
      if (row !== null) return { kind: 'key', id, ...row, hash: Buffer.from(row.hash).toString('hex') };
    }
    return { kind: 'gone', subject, id };
  }

  function revision() {
    const row = revisionOf.get();
    if (row === null) throw new Error('the revision row is missing');
    return row;
  }

  const after = store.transaction((from: number): Portion => {
    const { value } = revision();
    const rows = changed.all(from);
    const texts = rows.map((row) => ({ seq: row.seq, published: row.published, text: rowText(rowOf(row)) }));
    const isLast = rows.length < PORTION;
    return { rows: texts, upTo: isLast ? value : (rows.at(-1)?.seq ?? value), isLast };
  });

  const sent = store.transaction(({ rows, upTo }: Portion) => {
    for (const { seq } of rows) mark.run(seq, seq);
    store.run('UPDATE publication SET published = max(published, ?) WHERE building IS NULL', [upTo]);
  });

  const begin = store.transaction((building: string, above: number) => {
    store.run('UPDATE revision SET value = max(value, ?)', [above]);
    store.run('UPDATE publication SET building = ?, intent = (SELECT value FROM revision)', [building]);
  });

  const addPublisher = store.transaction((token: string, nowMs: number) => {
    store.run('INSERT OR IGNORE INTO publishers (token, at_ms) VALUES (?, ?)', [token, nowMs]);
    store.run(
      `DELETE FROM publishers WHERE token NOT IN (SELECT token FROM publishers ORDER BY at_ms DESC LIMIT ${PUBLISHERS_KEPT})`,
    );
  });

  return {
    origin: originOf(store),
    revision,
    after: (seq) => after(seq),
    revokedAfter: (seq) => revoked.all(seq).map(({ id }) => id),
    publication: () => publication.get() ?? { epoch: null, building: null, published: 0, intent: 0 },
    intend: (upTo) => void store.run('UPDATE publication SET intent = ?1 WHERE intent < ?1', [upTo]),
    sent: (portion) => sent.immediate(portion),
    begin: (building, above) => begin.immediate(building, above),
    finish: (upTo) =>
      void store.run(
        'UPDATE publication SET epoch = building, building = NULL, published = ? WHERE building IS NOT NULL',
        [upTo],
      ),
    raiseConfig: (above) => raised.get(above)?.config ?? above,
    addPublisher: (token, nowMs) => addPublisher.immediate(token, nowMs),
  };
}

function originOf(store: Store): string {
  const row = store.query<{ id: string }, []>('SELECT id FROM origin').get();
  if (row === null) throw new Error('the origin row is missing');
  return row.id;
}
