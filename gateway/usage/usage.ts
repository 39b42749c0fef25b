import type { Clock } from '../../shared/clock.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Store } from '../../shared/store/open.ts';
import type { Alongside } from '../limits/journal.ts';
import type { Element } from '../request/call.ts';
import type { Envelope } from '../request/envelope.ts';
import type { Cell } from './cell.ts';
import { createCellRows } from './cell-rows.ts';
import { createCells } from './cells.ts';
import { NO_METHOD } from './method-label.ts';
import { hourOf, Tally } from './tally.ts';

/** Counts what every account uses, by hour, key and method (DESIGN 3.3). Counting is memory alone and never throws. */
export type Usage = Readonly<{
  /** Begins to count a request with these elements, whose credits are those of `works`, in order. */
  tally(caller: Caller, elements: readonly Element[], works: readonly Readonly<{ credits: number }>[]): Tally;
  /** Counts every element of a request that was not let in, or one when it has none that can be told. */
  refused(caller: Caller, to: Envelope | undefined): void;
  /** What the journal writes in its own transaction: the cells that its charges and refunds changed. */
  alongside: Alongside;
  /** Writes what has changed, at most so many cells; gives whether there is more. A write that fails is made up for later. */
  flush(cellsMax?: number): boolean;
  /** Writes every second until `signal` aborts, in portions with pauses between them, and drops what is not used. */
  tend(signal: AbortSignal): Promise<void>;
}>;

/** What an operator must know of it. */
export type UsageEvents = Readonly<{
  /** Told when writes begin to fail, and when they succeed again. */
  onFailing(is: boolean): void;
  /** Told of so many elements that were not counted, because the ledger took no writes for too long. */
  onLost(elements: number): void;
}>;

type Deps = Readonly<{
  ledger: Store;
  node: string;
  clock: Clock;
  methodLabel(element: Element): string;
}> &
  UsageEvents;

const FLUSH_MS = 1_000;
/** Cells in one transaction: about 4 ms, which is as long as other requests wait. */
const PORTION = 500;
const PAUSE_MS = 5;
/** Failures in a row that an operator is told of: a ledger that another process holds for a moment is none. */
const FAILURES_TOLD = 3;

export function createUsage({ ledger, node, clock, methodLabel, onFailing, onLost }: Deps): Usage {
  const cells = createCells();
  const { dirty, withJournal } = cells;
  const write = createCellRows(ledger, node);
  const writeAll = ledger.transaction((portion: readonly Cell[]) => portion.forEach(write));
  let failures = 0;

  function refused(caller: Caller, to: Envelope | undefined): void {
    if (to === undefined) return refuse(NO_METHOD);
    if (to.kind === 'single') return refuse(methodLabel(to.element));
    for (const element of to.elements) refuse(methodLabel(element));

    function refuse(method: string): void {
      const cell = cells.of(hourOf(clock.now()), caller, method);
      cell.refused++;
      cells.touch(cell);
    }
  }

  function flush(cellsMax = Infinity): boolean {
    const portion: Cell[] = [];
    for (const cell of dirty) {
      if (portion.length === cellsMax) break;
      if (!withJournal.has(cell)) portion.push(cell);
    }
    try {
      if (portion.length > 0) writeAll.immediate(portion);
      for (const cell of portion) written(cell);
      noteFailing(false);
      return portion.length === cellsMax;
    } catch {
      noteFailing(true);
      return false;
    }
  }

  function noteFailing(is: boolean): void {
    if (!is && failures >= FAILURES_TOLD) onFailing(false);
    failures = is ? failures + 1 : 0;
    if (failures === FAILURES_TOLD) onFailing(true);
  }

  function written(cell: Cell): void {
    cell.isDirty = false;
    dirty.delete(cell);
  }

  async function tend(signal: AbortSignal): Promise<void> {
    let lost = 0;
    while (!signal.aborted) {
      await clock.sleep(FLUSH_MS, signal);
      while (flush(PORTION) && !signal.aborted) await clock.sleep(PAUSE_MS, signal);
      cells.sweep();
      if (cells.lost() > lost) onLost(cells.lost() - lost);
      lost = cells.lost();
    }
  }

  return {
    tally: (caller, elements, works) =>
      new Tally(
        cells,
        clock,
        caller,
        elements.map((element, place) => ({
          method: methodLabel(element),
          credits: works[place]?.credits ?? 0,
        })),
      ),
    refused,
    alongside: {
      write: () => withJournal.forEach(write),
      written() {
        withJournal.forEach(written);
        withJournal.clear();
      },
    },
    flush,
    tend,
  };
}
