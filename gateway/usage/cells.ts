import type { KeyId } from '../../shared/keys/api-key.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import {
  CELL_COLUMNS,
  CELL_COUNTER_NAMES,
  CELL_COUNTERS,
  type CellCounter,
} from '../../shared/ledger/counters.ts';
import type { Store } from '../../shared/store/open.ts';

/**
 * What this node counted of one key's method in one hour (hours since 1970, UTC). Mutable: it is the count. Every
 * counter but `calls` only grows; `calls` shrinks by a charge that could not be written.
 */
export type Cell = {
  readonly hour: number;
  readonly accountId: number;
  readonly keyId: KeyId;
  readonly method: string;
  /** Elements of requests that were let in. */
  calls: number;
  /** What they cost, and what of it was given back. */
  credits: number;
  refunded: number;
  /** JSON-RPC errors of the method, and calls that failed. */
  errors: number;
  /** Bytes of bodies handed to callers. */
  bytesOut: number;
  /** Elements of requests that were not let in. */
  refused: number;
  /** Calls that were answered, each in one, by the milliseconds until the first byte (`shared/ledger/counters.ts`). */
  within10Ms: number;
  within50Ms: number;
  within250Ms: number;
  within1S: number;
  slower: number;
  /** Of `credits` and `refunded`, what went through the journal. */
  charged: number;
  returned: number;
  /** Whether the counters include what the ledger held before this process counted. */
  isWhole: boolean;
  /** Whether the ledger does not have it as it is. */
  isDirty: boolean;
  /** Whether it has left memory: it counts no more, and the ledger has it. */
  isGone: boolean;
  /** The turn in which it was last used. */
  turn: number;
};

/** The counters of a cell, as they are stored. */
type Counters = Pick<Cell, CellCounter>;

/** A cell that has counted nothing, and does not know what the ledger holds. */
function emptyCell(hour: number, accountId: number, keyId: KeyId, method: string): Cell {
  return {
    hour,
    accountId,
    keyId,
    method,
    calls: 0,
    credits: 0,
    refunded: 0,
    errors: 0,
    bytesOut: 0,
    refused: 0,
    within10Ms: 0,
    within50Ms: 0,
    within250Ms: 0,
    within1S: 0,
    slower: 0,
    charged: 0,
    returned: 0,
    isWhole: false,
    isDirty: false,
    isGone: false,
    turn: 0,
  };
}

/** Adds what the ledger held before, once. */
function makeWhole(cell: Cell, before: Counters | null): void {
  if (before !== null) for (const name of CELL_COUNTER_NAMES) cell[name] += before[name];
  cell.isWhole = true;
}

/** Counts a call that was answered after so many milliseconds. */
export function countAnswer(cell: Cell, ms: number): void {
  if (ms <= 10) cell.within10Ms++;
  else if (ms <= 50) cell.within50Ms++;
  else if (ms <= 250) cell.within250Ms++;
  else if (ms <= 1_000) cell.within1S++;
  else cell.slower++;
}

/** The cells in memory. */
export type Cells = Readonly<{
  /** The cell of a caller's method in an hour; a new one when it is not in memory. */
  of(hour: number, caller: Pick<Caller, 'accountId' | 'keyId'>, method: string): Cell;
  /** Says that a cell has changed. */
  touch(cell: Cell): void;
  /** Says that a cell has changed together with the journal. */
  touchWithJournal(cell: Cell): void;
  /** Cells that the ledger does not have as they are. */
  readonly dirty: Set<Cell>;
  /** Those of them that must be written with the journal and not before. */
  readonly withJournal: Set<Cell>;
  /** Drops cells that the ledger has and that are not in use; looks at a part of them and goes on from there the next time. */
  sweep(): void;
  /** Elements that were not counted, because the ledger took no writes for so long that no cell could be dropped. */
  lost(): number;
}>;

/** Turns (seconds) after which a key that is not used is dropped. */
const IDLE_TURNS = 60;
/** Keys looked at in one turn. */
const LOOKED_AT = 10_000;
/** Keys that stay in memory though they are not idle; above it what is written is dropped at once. About 400 bytes each. */
const KEYS_KEPT = 20_000;
/** Above so many keys, one that was called for once leaves as soon as it is written: most of many do not come again. */
const ONCE_KEPT = 2_048;
/** Keys that may wait for a ledger that takes no writes. */
const KEYS_MAX = 200_000;

type Keys = Map<string, Cell[]>;

export function createCells(): Cells {
  const hours = new Map<number, Keys>();
  const dirty = new Set<Cell>();
  const withJournal = new Set<Cell>();
  let keysHeld = 0;
  let turn = 0;
  let lost = 0;
  let looking = everyKey();

  function of(hour: number, { accountId, keyId }: Pick<Caller, 'accountId' | 'keyId'>, method: string): Cell {
    let keys = hours.get(hour);
    if (keys === undefined) hours.set(hour, (keys = new Map()));
    const known = keys.get(keyId);
    if (known !== undefined) for (const cell of known) if (cell.method === method) return cell;
    const cell = emptyCell(hour, accountId, keyId, method);
    if (known !== undefined) known.push(cell);
    else if (keysHeld < KEYS_MAX) {
      keys.set(keyId, [cell]);
      keysHeld++;
    } else {
      cell.isGone = true;
      lost++;
    }
    return cell;
  }

  function touch(cell: Cell): void {
    cell.turn = turn;
    if (cell.isDirty || cell.isGone) return;
    cell.isDirty = true;
    dirty.add(cell);
  }

  function touchWithJournal(cell: Cell): void {
    touch(cell);
    if (cell.isDirty) withJournal.add(cell);
  }

  function* everyKey(): Generator<readonly [number, Keys, string, readonly Cell[]]> {
    for (const [hour, keys] of hours) for (const [keyId, cells] of keys) yield [hour, keys, keyId, cells];
  }

  function sweep(): void {
    turn++;
    for (let looked = 0; looked < LOOKED_AT || keysHeld > KEYS_KEPT; looked++) {
      const { value, done } = looking.next();
      if (done) {
        looking = everyKey();
        return;
      }
      const [hour, keys, keyId, cells] = value;
      const leaves = keysHeld > KEYS_KEPT || (keysHeld > ONCE_KEPT && cells.every(isUsedOnce));
      const idleSince = leaves ? turn : turn - IDLE_TURNS;
      if (cells.some((cell) => cell.isDirty || cell.turn >= idleSince)) continue;
      for (const cell of cells) cell.isGone = true;
      keys.delete(keyId);
      keysHeld--;
      if (keys.size === 0) hours.delete(hour);
    }
  }

  return { of, touch, touchWithJournal, dirty, withJournal, sweep, lost: () => lost };
}

function isUsedOnce({ calls, refused }: Cell): boolean {
  return calls + refused <= 1;
}

type Place = [hour: number, accountId: number, keyId: string, method: string, node: string];

const COUNTERS = CELL_COUNTER_NAMES.map((name) => `${CELL_COUNTERS[name]} AS ${name}`).join(', ');
const SET = CELL_COUNTER_NAMES.map((name) => `${CELL_COUNTERS[name]} = excluded.${CELL_COUNTERS[name]}`).join(
  ', ',
);

/**
 * Writes cells of `node` as absolute values: to write one again changes nothing. A cell that does not know what the
 * ledger holds is made whole first, so that a restart counts on. Throws when the ledger cannot be read or written.
 */
export function createCellRows(ledger: Store, node: string): (cell: Cell) => void {
  const read = ledger.prepare<Counters, Place>(`
    SELECT ${COUNTERS} FROM usage_hours
    WHERE hour = ? AND account_id = ? AND key_id = ? AND method = ? AND node = ?`);
  const put = ledger.prepare<null, [...Place, ...number[]]>(`
    INSERT INTO usage_hours (${CELL_COLUMNS.join(', ')}) VALUES (${CELL_COLUMNS.map(() => '?').join(', ')})
    ON CONFLICT DO UPDATE SET ${SET}`);

  return function write(cell) {
    const { hour, accountId, keyId, method } = cell;
    if (!cell.isWhole) makeWhole(cell, read.get(hour, accountId, keyId, method, node));
    put.run(hour, accountId, keyId, method, node, ...CELL_COUNTER_NAMES.map((name) => cell[name]));
  };
}
