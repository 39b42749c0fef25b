import type { Clock } from '../../shared/clock.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Bill } from '../limits/price.ts';
import { type Cell, countAnswer } from './cell.ts';
import type { Cells } from './cells.ts';

/** One element of a request: what it is counted as, and what it costs. */
export type Item = Readonly<{ method: string; credits: number }>;

/**
 * What one request adds to usage, from its charge to its last byte. All of it is counted in the hour in which the
 * request came. A place is an element's index in the request.
 */
export class Tally implements Bill {
  readonly #cells: Cells;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #cameMs: number;
  readonly #hour: number;
  readonly #caller: Caller;
  readonly #items: readonly Item[];
  readonly #found: (Cell | undefined)[];
  #failed: Set<number> | undefined;
  #counted: 'not' | 'counted' | 'with-journal' = 'not';

  constructor(cells: Cells, clock: Pick<Clock, 'now'>, caller: Caller, items: readonly Item[]) {
    this.#cells = cells;
    this.#clock = clock;
    this.#cameMs = clock.now();
    this.#hour = hourOf(this.#cameMs);
    this.#caller = caller;
    this.#items = items;
    this.#found = [];
  }

  /** Counts the calls and their price at the moment in which the journal takes it, to be written with it. */
  take(): void {
    this.#counted = 'with-journal';
    for (const [place, { credits }] of this.#items.entries()) {
      const cell = this.#cell(place);
      cell.calls++;
      cell.credits += credits;
      cell.charged += credits;
      this.#cells.touchWithJournal(cell);
    }
  }

  /** Counts the calls and their price, unless the journal has taken it. */
  admit(): void {
    if (this.#counted !== 'not') return;
    this.#counted = 'counted';
    for (const [place, { credits }] of this.#items.entries()) {
      const cell = this.#cell(place);
      cell.calls++;
      cell.credits += credits;
      this.#cells.touch(cell);
    }
  }

  /** Takes back what the journal could not write; the request is refused. */
  giveBack(): void {
    if (this.#counted === 'not') return;
    for (const place of this.#items.keys()) {
      this.refund(place);
      this.#cell(place).calls--;
    }
    this.#counted = 'not';
  }

  /** Gives back the price of a call that is not paid for; to be called together with the refund itself. */
  refund(place: number): void {
    const credits = this.#items[place]?.credits ?? 0;
    if (credits === 0) return;
    const cell = this.#cell(place);
    cell.refunded += credits;
    if (this.#counted === 'with-journal') {
      cell.returned += credits;
      this.#cells.touchWithJournal(cell);
    } else this.#cells.touch(cell);
  }

  /** Counts a call as failed, or as answered with an error of the method; once, however often it is said. */
  error(place: number): void {
    if (this.#failed?.has(place)) return;
    (this.#failed ??= new Set()).add(place);
    const cell = this.#cell(place);
    cell.errors++;
    this.#cells.touch(cell);
  }

  /** Counts how long a call's caller waited for the first byte of its answer, which is to be handed over now; once. */
  answered(place: number): void {
    const cell = this.#cell(place);
    countAnswer(cell, this.#clock.now() - this.#cameMs);
    this.#cells.touch(cell);
  }

  /** Counts bytes of a call's answer that were handed to the caller. */
  bytes(place: number, bytes: number): void {
    const cell = this.#cell(place);
    cell.bytesOut += bytes;
    this.#cells.touch(cell);
  }

  #cell(place: number): Cell {
    const found = this.#found[place];
    if (found !== undefined && !found.isGone) return found;
    return (this.#found[place] = this.#cells.of(this.#hour, this.#caller, this.#items[place]?.method ?? '-'));
  }
}

const HOUR_MS = 3_600_000;

/** The hour since 1970 that the instant is in. */
export function hourOf(atMs: number): number {
  return Math.floor(atMs / HOUR_MS);
}
