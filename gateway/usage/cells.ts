import type { Caller } from '../../shared/keys/identify.ts';
import {
  CELL_COLUMNS,
  CELL_COUNTER_NAMES,
  CELL_COUNTERS,
  type CellCounter,
} from '../../shared/ledger/counters.ts';
import type { Store } from '../../shared/store/open.ts';

/**
 * What was counted of one key's method in one hour (hours since 1970, UTC) since it was last written
 * (`shared/ledger/counters.ts`). Mutable: it is the count. `calls` shrinks by a charge that could not be written.
 */
export type Cell = Record<CellCounter, number> &
  Readonly<{ hour: number; caller: Caller; method: string; next: Cell | undefined }>;

const ZEROS = Object.fromEntries(CELL_COUNTER_NAMES.map((name) => [name, 0])) as Record<CellCounter, number>; // fromEntries forgets the names

/** Counts a call that was answered after so many milliseconds. */
export function countAnswer(cell: Cell, ms: number): void {
  if (ms <= 10) cell.within10Ms++;
  else if (ms <= 50) cell.within50Ms++;
  else if (ms <= 250) cell.within250Ms++;
  else if (ms <= 1_000) cell.within1S++;
  else cell.slower++;
}

/** Cells that may wait for a ledger that takes no writes, about 400 bytes each. */
const CELLS_MAX = 200_000;

/** What was counted and is not yet in the ledger. */
export type Cells = ReturnType<typeof createCells>;

/** Cells of `node`. They are added to the ledger's, and leave memory when they are written. */
export function createCells(ledger: Store, node: string) {
  const counters = Object.values(CELL_COUNTERS);
  const add = ledger.prepare<null, (number | string)[]>(`
    INSERT INTO usage_hours (${CELL_COLUMNS.join(', ')}) VALUES (${CELL_COLUMNS.map(() => '?').join(', ')})
    ON CONFLICT DO UPDATE SET ${counters.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')}`);
  const addAll = ledger.transaction((callers: readonly Caller[]) => callers.forEach(addOf));
  /** The cells of each caller, a list linked by `next`. */
  const waiting = new Map<Caller, Cell>();
  const withJournal = new Set<Caller>();
  /** Callers still to be written, in the order of the ledger's rows: a transaction of neighbours writes fewer pages. */
  let inOrder: Caller[] = [];
  let size = 0;
  let lost = 0;

  /** The cell to count into. It may be written at the end of the turn: it is not to be kept. */
  function of(hour: number, caller: Caller, method: string): Cell {
    const first = waiting.get(caller);
    for (let cell = first; cell !== undefined; cell = cell.next)
      if (cell.hour === hour && cell.method === method) return cell;
    const cell: Cell = { hour, caller, method, next: first, ...ZEROS };
    if (size === CELLS_MAX) lost++;
    else {
      waiting.set(caller, cell);
      size++;
    }
    return cell;
  }

  function addOf(caller: Caller): void {
    for (let cell = waiting.get(caller); cell !== undefined; cell = cell.next) {
      const { hour, method } = cell;
      const counted = CELL_COUNTER_NAMES.map(countOf, cell);
      add.run(hour, caller.accountId, caller.keyId, method, node, ...counted);
    }
  }

  function forget(caller: Caller): void {
    for (let cell = waiting.get(caller); cell !== undefined; cell = cell.next) size--;
    waiting.delete(caller);
  }

  return {
    of,
    /** Has the caller's cells written in the journal's next transaction, and not before. */
    joinJournal: (caller: Caller): void => void withJournal.add(caller),
    /** What the journal writes in its own transaction: the cells that its charges and refunds changed. */
    inSameTransaction: {
      write: () => withJournal.forEach(addOf),
      written() {
        withJournal.forEach(forget);
        withJournal.clear();
      },
    },
    /** Writes the cells of at most so many callers, without those for the journal; gives whether there are more. Throws when the ledger takes none. */
    write(callersMax: number): boolean {
      if (inOrder.length === 0) inOrder = [...waiting.keys()].toSorted((a, b) => b.accountId - a.accountId);
      const callers = inOrder.slice(-callersMax).filter((caller) => !withJournal.has(caller));
      if (callers.length > 0) addAll.immediate(callers);
      callers.forEach(forget);
      inOrder.length = Math.max(0, inOrder.length - callersMax);
      return inOrder.length > 0;
    },
    /** Elements that were not counted, because the ledger took no writes for too long. */
    lost: () => lost,
  };
}

function countOf(this: Cell, name: CellCounter): number {
  return this[name];
}
