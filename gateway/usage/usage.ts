import type { Clock } from '../../shared/clock.ts';
import type { Caller } from '../../shared/keys/source.ts';
import {
  CELL_COLUMNS,
  CELL_COUNTER_NAMES,
  CELL_COUNTERS,
  type CellCounter,
} from '../../shared/ledger/cells.ts';
import type { Store } from '../../shared/store/open.ts';
import { fileReason } from '../../shared/store/private.ts';
import type { UsageHook } from '../limits/charge.ts';
import { mapBody, type StreamBody } from '../http/stream-body.ts';
import type { StreamedAnswer } from '../upstream/response-reader.ts';

/**
 * Counts of one key's method in one hour (hours since 1970, UTC) since it was last written. Mutable: it is the
 * count. `calls` shrinks by a charge that could not be written.
 */
type Cell = Record<CellCounter, number> &
  Readonly<{ hour: number; caller: Caller; method: string; next: Cell | undefined }>;

const ZEROS = Object.fromEntries(CELL_COUNTER_NAMES.map((name) => [name, 0])) as Record<CellCounter, number>; // fromEntries forgets the names

/** Cells that may wait for a ledger that takes no writes, about 400 bytes each. */
const CELLS_MAX = 200_000;

/** The label of what has no method: a notification, a malformed element, a request that was not read. */
export const NO_METHOD = '-';
const UNREAD = { label: NO_METHOD };

/** An element of a request: the name that it is counted under, and what it costs. */
type Item = Readonly<{ label: string; credits: number }>;

type Cells = Readonly<{
  /** The cell may be written at the end of the turn: it is not to be kept. */
  of(hour: number, caller: Caller, method: string): Cell;
  /** Has the caller's cells written in the journal's next transaction, and not before. */
  joinJournal(caller: Caller): void;
}>;

/** Adds one request to usage, counted in the hour in which it came. An index is that of an element in the request. */
export class RequestUsage implements UsageHook {
  readonly #cells: Cells;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #cameMs: number;
  readonly #caller: Caller;
  readonly #items: readonly Item[];
  #failed: Set<number> | undefined;
  #counted: 'not' | 'counted' | 'with-journal' = 'not';

  constructor(cells: Cells, clock: Pick<Clock, 'now'>, caller: Caller, items: readonly Item[]) {
    this.#cells = cells;
    this.#clock = clock;
    this.#cameMs = clock.now();
    this.#caller = caller;
    this.#items = items;
  }

  /** Counts the calls and their price as the journal takes it, to be written with it. */
  take(): void {
    this.#count('with-journal');
    this.#cells.joinJournal(this.#caller);
  }

  /** Counts the calls and their price, unless the journal has taken it. */
  admit(): void {
    if (this.#counted === 'not') this.#count('counted');
  }

  #count(how: 'counted' | 'with-journal'): void {
    this.#counted = how;
    for (let index = 0; index < this.#items.length; index++) {
      const cell = this.#cell(index);
      const credits = this.#items[index]?.credits ?? 0;
      cell.calls++;
      cell.credits += credits;
      if (how === 'with-journal') cell.charged += credits;
    }
  }

  /** Takes back what the journal could not write; the request is refused. */
  giveBack(): void {
    if (this.#counted === 'not') return;
    for (const index of this.#items.keys()) {
      this.refund(index);
      this.#cell(index).calls--;
    }
    this.#counted = 'not';
  }

  /** Gives back the price of a call that is not paid for; to be called together with the refund itself. */
  refund(index: number): void {
    const credits = this.#items[index]?.credits ?? 0;
    if (credits === 0) return;
    const cell = this.#cell(index);
    cell.refunded += credits;
    if (this.#counted !== 'with-journal') return;
    cell.returned += credits;
    this.#cells.joinJournal(this.#caller);
  }

  /** Counts a call, once, as failed or as answered with an error of the method. */
  error(index: number): void {
    if (this.#failed?.has(index)) return;
    (this.#failed ??= new Set()).add(index);
    this.#cell(index).errors++;
  }

  /** Counts how long a call's caller waited for the first bytes of its answer, which are handed over now. */
  answered(index: number, bytes: number): void {
    const cell = this.#cell(index);
    cell.bytesOut += bytes;
    const ms = this.#clock.now() - this.#cameMs;
    if (ms <= 10) cell.within10Ms++;
    else if (ms <= 50) cell.within50Ms++;
    else if (ms <= 250) cell.within250Ms++;
    else if (ms <= 1_000) cell.within1S++;
    else cell.slower++;
  }

  bytes(index: number, bytes: number): void {
    this.#cell(index).bytesOut += bytes;
  }

  #cell(index: number): Cell {
    return this.#cells.of(hourOf(this.#cameMs), this.#caller, this.#items[index]?.label ?? NO_METHOD);
  }
}

const HOUR_MS = 3_600_000;

function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS);
}

/** The answer's body with its first byte timed and every byte counted that it hands on. */
export function countedBody(
  { body, code }: Pick<StreamedAnswer, 'body' | 'code'>,
  usage: Pick<RequestUsage, 'answered' | 'bytes' | 'error'>,
  index: number,
): StreamBody {
  let isFirst = true;
  return mapBody(body, {
    piece(piece, write) {
      if (isFirst) usage.answered(index, piece.length);
      else usage.bytes(index, piece.length);
      if (isFirst && code !== undefined) usage.error(index);
      isFirst = false;
      return write(piece);
    },
  });
}

/** Counts what every account uses, by hour, key and method. Counting is memory alone and never throws. */
export type Usage = ReturnType<typeof createUsage>;

type UsageDeps = Readonly<{
  ledger: Store;
  node: string;
  clock: Clock;
  /** Called with the number of elements that were not counted, because the ledger took no writes for too long. */
  onLost(elements: number): void;
}>;

const FLUSH_MS = 1_000;
/** Callers in one transaction: about 4 ms, which is as long as other requests wait. */
const PORTION = 500;
const PAUSE_MS = 5;
/** Failures in a row that are a trouble: a ledger that another process holds for a moment is none. */
const FAILURES_BEFORE_TROUBLE = 3;

export function createUsage({ ledger, node, clock, onLost }: UsageDeps) {
  const counters = Object.values(CELL_COUNTERS);
  const add = ledger.prepare<null, (number | string)[]>(`
    INSERT INTO usage_hours (${CELL_COLUMNS.join(', ')}) VALUES (${CELL_COLUMNS.map(() => '?').join(', ')})
    ON CONFLICT DO UPDATE SET ${counters.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')}`);
  const addAll = ledger.transaction((callers: readonly Caller[]) => callers.forEach(addOf));
  /** Counts that are not yet in the ledger: the cells of each caller, a list linked by `next`. */
  const waiting = new Map<Caller, Cell>();
  const withJournal = new Set<Caller>();
  /** Callers still to be written, in the order of the ledger's rows: a transaction of neighbours writes fewer pages. */
  let inOrder: Caller[] = [];
  let size = 0;
  let lost = 0;
  let failures = 0;
  let failure: string | undefined;

  function cellOf(hour: number, caller: Caller, method: string): Cell {
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
      const of = cell; // it stays the same for the function below
      const counted = CELL_COUNTER_NAMES.map((name) => of[name]);
      add.run(of.hour, caller.accountId, caller.keyId, of.method, node, ...counted);
    }
  }

  function forget(caller: Caller): void {
    for (let cell = waiting.get(caller); cell !== undefined; cell = cell.next) size--;
    waiting.delete(caller);
  }

  /** Counts every element of a request that was not let in, or one when none of its elements is known. */
  function refused(caller: Caller, items: readonly Pick<Item, 'label'>[] = [UNREAD]): void {
    for (const { label } of items) cellOf(hourOf(clock.now()), caller, label).refused++;
  }

  /** Writes what was counted of at most so many callers, but for the journal's; gives whether there is more. */
  function flush(callersMax = Infinity): boolean {
    if (inOrder.length === 0) inOrder = [...waiting.keys()].toSorted((a, b) => b.accountId - a.accountId);
    const callers = inOrder.slice(-callersMax).filter((caller) => !withJournal.has(caller));
    try {
      if (callers.length > 0) addAll.immediate(callers);
      callers.forEach(forget);
      inOrder.length = Math.max(0, inOrder.length - callersMax);
      failures = 0;
      return inOrder.length > 0;
    } catch (error) {
      failures++;
      failure = fileReason(error);
      return false;
    }
  }

  /** Writes every second until `signal` aborts, in portions with pauses between them. */
  async function maintain(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(FLUSH_MS, signal);
      while (flush(PORTION) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
      if (lost > 0) onLost(lost);
      lost = 0;
    }
  }

  const cells: Cells = { of: cellOf, joinJournal: (caller) => void withJournal.add(caller) };
  return {
    begin: (caller: Caller, items: readonly Item[]) => new RequestUsage(cells, clock, caller, items),
    refused,
    /** Written by the journal in its own transaction: the cells that its charges and refunds changed. */
    inSameTransaction: {
      write: () => withJournal.forEach(addOf),
      written() {
        withJournal.forEach(forget);
        withJournal.clear();
      },
    },
    flush,
    /** Why writes have failed for a while; `undefined` while they succeed. */
    failure: () => (failures < FAILURES_BEFORE_TROUBLE ? undefined : failure),
    maintain,
  };
}
