import type { KeyId } from '../../shared/keys/api-key.ts';
import { CELL_COUNTER_NAMES, type CellCounter } from '../../shared/ledger/counters.ts';

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
export type Counters = Pick<Cell, CellCounter>;

/** A cell that has counted nothing, and does not know what the ledger holds. */
export function emptyCell(hour: number, accountId: number, keyId: KeyId, method: string): Cell {
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
export function makeWhole(cell: Cell, before: Counters | null): void {
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
