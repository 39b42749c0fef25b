import { type PublishedRow, rowFrom } from '../../shared/publication/row.ts';
import type { Store } from '../../shared/store/open.ts';

/** Where a mirror stands; the members are those of the table. */
export type MirrorState = Readonly<{
  origin: string | null;
  holder: string | null;
  nobody: 0 | 1;
  epoch: string | null;
  position: number;
  loading: 0 | 1;
  complete: 0 | 1;
  generation: number;
  revision: number;
  touched: number;
  config: number;
  terms_id: string | null;
  terms: string | null;
}>;

/** Rows as they were read from an epoch, each with its revision; all changes up to `upTo` are known with them. */
export type ReadRows = Readonly<{
  epoch: string;
  /** The position that they were read from. */
  from: number;
  rows: readonly Readonly<{ seq: number; text: string }>[];
  upTo: number;
  /** There is no more in the epoch for now. */
  isLast: boolean;
}>;

/**
 * The mirror's file. Several processes write it: what one is late with changes nothing, for it is taken only where the
 * mirror stands. All of it throws when the file does not answer.
 */
export type Mirror = Readonly<{
  store: Store;
  state(): MirrorState;
  /** Redis is there and nobody has published. */
  noteNobody(): void;
  /** Whose accounts Redis has; those of another origin than before are begun anew. */
  noteHead(origin: string, holder: string): void;
  noteTerms(config: number, termsId: string, terms: string): void;
  /** Begins an epoch, or goes back to `position` in one: Redis knows no more. */
  begin(epoch: string, position: number): void;
  take(read: ReadRows): void;
  /** Drops some of the rows that the last load did not have; gives whether there may be more. */
  sweep(): boolean;
}>;

/** Rows dropped in one transaction. */
const SWEPT_MAX = 500;
/** How long a write waits for another process of the host: all requests of this one wait with it. */
const BUSY_MS = 25;

export function createMirror(store: Store): Mirror {
  store.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
  // The file is a copy: what a power cut takes from it is read again.
  store.run('PRAGMA synchronous = OFF');
  const stateOf = store.prepare<MirrorState, []>('SELECT * FROM mirror');
  const change = createChange(store);

  function state(): MirrorState {
    const row = stateOf.get();
    if (row === null) throw new Error('the mirror row is missing');
    return row;
  }

  const noteHead = store.transaction((origin: string, holder: string) => {
    if (state().origin !== origin) {
      store.run('DELETE FROM keys');
      store.run('DELETE FROM accounts');
      store.run(`UPDATE mirror SET epoch = NULL, position = 0, loading = 0, complete = 0, revision = 0, config = 0,
        terms_id = NULL, terms = NULL, touched = touched + 1`);
    }
    store.run('UPDATE mirror SET origin = ?, holder = ?, nobody = 0', [origin, holder]);
  });

  const begin = store.transaction((epoch: string, position: number) => {
    if (state().epoch === epoch)
      return void store.run('UPDATE mirror SET position = min(position, ?)', [position]);
    store.run('UPDATE mirror SET epoch = ?, position = 0, loading = 1, generation = generation + 1', [epoch]);
  });

  const take = store.transaction(({ epoch, from, rows, upTo, isLast }: ReadRows) => {
    const { epoch: current, position, generation } = state();
    if (current !== epoch || position !== from) return;
    for (const { text } of rows) {
      const row = rowFrom(text);
      if (row !== undefined) change(row, generation);
    }
    store.run('UPDATE mirror SET position = ?, touched = touched + ?', [upTo, rows.length > 0 ? 1 : 0]);
    if (isLast) store.run('UPDATE mirror SET loading = 0, complete = 1, revision = max(revision, ?)', [upTo]);
  });

  const sweep = store.transaction((): boolean => {
    const { generation, loading } = state();
    if (loading === 1) return false;
    const dropped = ['keys', 'accounts'].map(
      (table) =>
        store.run(
          `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE generation < ? LIMIT ${SWEPT_MAX})`,
          [generation],
        ).changes,
    );
    if (dropped.some((rows) => rows > 0)) store.run('UPDATE mirror SET touched = touched + 1');
    return dropped.some((rows) => rows === SWEPT_MAX);
  });

  return {
    store,
    state,
    noteNobody: () => void store.run('UPDATE mirror SET nobody = 1 WHERE origin IS NULL AND nobody = 0'),
    noteHead: (origin, holder) => noteHead.immediate(origin, holder),
    noteTerms: (config, termsId, terms) =>
      void store.run('UPDATE mirror SET config = max(config, ?), terms_id = ?, terms = ?', [
        config,
        termsId,
        terms,
      ]),
    begin: (epoch, position) => begin.immediate(epoch, position),
    take: (read) => take.immediate(read),
    sweep: () => sweep.immediate(),
  };
}

function createChange(store: Store): (row: PublishedRow, generation: number) => void {
  const account = store.prepare<null, [number, string | null, number | null, number, number]>(`
    INSERT INTO accounts (id, plan, credits_granted, suspended, generation) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET plan = excluded.plan, credits_granted = excluded.credits_granted,
      suspended = excluded.suspended, generation = excluded.generation`);
  const key = store.prepare<null, [string, number, Buffer, number | null, number]>(`
    INSERT INTO keys (id, account_id, hash, expires_at_ms, generation) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET account_id = excluded.account_id, hash = excluded.hash,
      expires_at_ms = excluded.expires_at_ms, generation = excluded.generation`);
  const dropAccount = store.prepare<null, [string | number]>('DELETE FROM accounts WHERE id = ?');
  const dropKey = store.prepare<null, [string]>('DELETE FROM keys WHERE id = ?');

  return function change(row, generation) {
    switch (row.kind) {
      case 'account':
        account.run(row.id, row.plan, row.creditsGranted, row.suspended ? 1 : 0, generation);
        return;
      case 'key':
        if (row.revokedAtMs !== null) dropKey.run(row.id);
        else key.run(row.id, row.accountId, Buffer.from(row.hash, 'hex'), row.expiresAtMs, generation);
        return;
      case 'gone':
        if (row.subject === 'account') dropAccount.run(row.id);
        else dropKey.run(row.id);
    }
  };
}
