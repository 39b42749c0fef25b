import { type Address, address } from '@solana/kit';
import type { Migrations, Store } from '../../shared/store/open.ts';
import { deploySlotOf, type DeploySlots, type ProgramState, type Reading } from './change.ts';
import type { WatchedProgram } from '../../shared/watched.ts';
import type { Latest } from './watcher.ts';

/**
 * The state of the watcher. `reading` has one row: the slot of the last reading and when it began (Unix milliseconds);
 * `programs` is its content. `block_times` are Unix seconds and never change. `chain` has one row once a backend told the
 * genesis hash (base58): everything is of that chain. `program_deploys` are all deploys seen, whether they made an event
 * or not, also of programs that are no longer watched.
 */
export const WATCH_MIGRATIONS: Migrations = {
  'programs-1': `
    CREATE TABLE reading (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      context_slot INTEGER NOT NULL,
      checked_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE programs (
      program_id TEXT PRIMARY KEY,
      status TEXT NOT NULL CHECK (status IN ('upgradeable', 'frozen', 'other_loader', 'missing')),
      upgrade_authority TEXT,
      deploy_slot INTEGER,
      CHECK ((status = 'upgradeable') = (upgrade_authority IS NOT NULL)),
      CHECK ((status IN ('upgradeable', 'frozen')) = (deploy_slot IS NOT NULL))
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE block_times (slot INTEGER PRIMARY KEY, unix_seconds INTEGER NOT NULL) STRICT;
  `,
  'programs-2': `
    CREATE TABLE chain (one INTEGER PRIMARY KEY CHECK (one = 1), genesis_hash TEXT NOT NULL) STRICT;
  `,
  'program-deploys-1': `
    CREATE TABLE program_deploys (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      program_id TEXT NOT NULL,
      deploy_slot INTEGER NOT NULL,
      previous_slot INTEGER,
      detected_at_ms INTEGER NOT NULL,
      authority TEXT
    ) STRICT;
    CREATE INDEX program_deploys_of_program ON program_deploys (program_id, id);
  `,
};

function rowsOf({ programs }: Reading) {
  return [...programs].map(([program, state]) => ({
    program,
    status: state.status,
    authority: state.status === 'upgradeable' ? state.upgradeAuthority : null,
    slot: deploySlotOf(state) ?? null,
  }));
}

type ProgramRow = ReturnType<typeof rowsOf>[number];

/** The last reading, kept over restarts, and the chain that it is of. `moveTo` and `replace` are steps of `outbox/record.ts`. */
export function createReadings(store: Store) {
  const note = store.prepare<unknown, { contextSlot: bigint; checkedAtMs: number }>(`
    INSERT INTO reading VALUES (1, $contextSlot, $checkedAtMs)
    ON CONFLICT (one) DO UPDATE SET context_slot = excluded.context_slot, checked_at_ms = excluded.checked_at_ms`);
  const clear = store.prepare('DELETE FROM programs');
  const put = store.prepare<unknown, ProgramRow>(
    'INSERT INTO programs VALUES ($program, $status, $authority, $slot)',
  );
  const slots = store.prepare<{ program_id: string; deploy_slot: number }, []>(`
    SELECT program_id, deploy_slot FROM programs WHERE deploy_slot IS NOT NULL`);
  const genesis = store.prepare<{ genesis_hash: string }, []>('SELECT genesis_hash FROM chain');
  const putGenesis = store.prepare('INSERT OR REPLACE INTO chain VALUES (1, ?)');
  const clearTimes = store.prepare('DELETE FROM block_times');
  const history = createHistory(store);
  return {
    /** Makes the store one of the chain of `genesisHash`; whether it was another chain's, whose times and history go. */
    moveTo(genesisHash: string): boolean {
      const stored = genesis.get()?.genesis_hash;
      if (stored === genesisHash) return false;
      putGenesis.run(genesisHash);
      if (stored === undefined) return false;
      clearTimes.run();
      history.forget();
      return true;
    },
    replace(latest: Latest): void {
      note.run({ contextSlot: latest.reading.contextSlot, checkedAtMs: latest.checkedAtMs });
      clear.run();
      for (const row of rowsOf(latest.reading)) put.run(row);
      history.add(latest);
    },
    deploySlots: (): DeploySlots =>
      new Map(slots.all().map((row) => [address(row.program_id), BigInt(row.deploy_slot)])),
  };
}

/** A deploy of a program as it was first seen. Instants are Unix milliseconds. */
export type SeenDeploy = Readonly<{
  id: number;
  programId: string;
  deploySlot: number;
  /** The slot before it; `null` for the first that was seen of the program. */
  previousSlot: number | null;
  /** When the reading that saw it began; the first reading of all sees deploys of any age. */
  detectedAtMs: number;
  /** `null` while the time of its block is not known. */
  deployedAtMs: number | null;
  /** Who could upgrade the program then; `null` when nobody. */
  authority: string | null;
}>;

/** Deploys that are kept of one program. */
const KEPT_MAX = 500;
const PAGE_MAX = 100;

export function createHistory(store: Store) {
  const add = store.prepare<unknown, [string, bigint | null, Address | null, number]>(`
    INSERT INTO program_deploys (program_id, deploy_slot, previous_slot, authority, detected_at_ms)
    SELECT ?1, ?2, last, ?3, ?4 FROM (SELECT
      (SELECT deploy_slot FROM program_deploys WHERE program_id = ?1 ORDER BY id DESC LIMIT 1) AS last)
    WHERE ?2 > coalesce(last, -1)`);
  const prune = store.prepare<unknown, [string]>(`
    DELETE FROM program_deploys WHERE program_id = ?1 AND id <= (SELECT id FROM program_deploys
      WHERE program_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ${KEPT_MAX})`);
  const clear = store.prepare('DELETE FROM program_deploys');
  const page = store.prepare<SeenDeploy, [string, number, number]>(`
    SELECT id, program_id AS programId, deploy_slot AS deploySlot, previous_slot AS previousSlot,
      detected_at_ms AS detectedAtMs, unix_seconds * 1000 AS deployedAtMs, authority
    FROM program_deploys LEFT JOIN block_times ON slot = deploy_slot
    WHERE program_id = ? AND id < ? ORDER BY id DESC LIMIT ?`);

  return {
    /** Adds deploys of a reading that are newer than those seen; to be called in the transaction that stores it. */
    add({ reading, checkedAtMs }: Latest): void {
      for (const { program, slot, authority } of rowsOf(reading))
        if (add.run(program, slot, authority, checkedAtMs).changes > 0) prune.run(program);
    },
    forget: () => void clear.run(),
    /** The newest first; `before` is the `id` of the last one of the page before. At most `PAGE_MAX`. */
    of: (
      programId: string,
      { before = Number.MAX_SAFE_INTEGER, limit }: Readonly<{ before?: number; limit: number }>,
    ): readonly SeenDeploy[] => page.all(programId, before, Math.max(1, Math.min(limit, PAGE_MAX))),
  };
}

export type History = ReturnType<typeof createHistory>;

/** A watched program as the last reading saw it. Instants are Unix milliseconds. */
export type ProgramShown = Readonly<{
  programId: string;
  label: string;
  /** `undefined` before the first reading. */
  status: ProgramState['status'] | undefined;
  deploySlot: number | undefined;
  /** `undefined` while the block time is not known, as is `ageMs`. */
  deployedAtMs: number | undefined;
  ageMs: number | undefined;
  authority: string | undefined;
}>;

/** `search` is a part of a label or of an address, in either case. */
export type ProgramWish = Readonly<{ search?: string; status?: ProgramState['status'] }>;

type StoredProgramRow = Readonly<{
  programId: string;
  status: ProgramState['status'];
  deploySlot: number | null;
  authority: string | null;
  deployedAtMs: number | null;
}>;

export function createProgramList(store: Store, watched: readonly WatchedProgram[]) {
  const read = store.prepare<StoredProgramRow, []>(`
    SELECT program_id AS programId, status, deploy_slot AS deploySlot, upgrade_authority AS authority,
      unix_seconds * 1000 AS deployedAtMs
    FROM programs LEFT JOIN block_times ON slot = deploy_slot`);

  return function programs({ search = '', status }: ProgramWish, nowMs: number): readonly ProgramShown[] {
    const rows = new Map(read.all().map((row) => [row.programId, row]));
    const part = search.toLowerCase();
    return watched
      .filter(({ address, label }) => `${label}\n${address}`.toLowerCase().includes(part))
      .map(({ address, label }) => {
        const row = rows.get(address);
        const deployedAtMs = row?.deployedAtMs ?? undefined;
        return {
          programId: address,
          label,
          status: row?.status,
          deploySlot: row?.deploySlot ?? undefined,
          deployedAtMs,
          ageMs: deployedAtMs === undefined ? undefined : Math.max(0, nowMs - deployedAtMs),
          authority: row?.authority ?? undefined,
        };
      })
      .filter((program) => status === undefined || program.status === status);
  };
}
