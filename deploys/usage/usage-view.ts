import type { Clock } from '../../shared/clock.ts';
import { DAY_MS, HOUR_MS, monthOf, monthStartMs } from './calendar.ts';
import type { Hours } from './read-usage.ts';
import type { Reader, ReadingTurns } from './reading-turns.ts';
import { type Counts, type Part, sumOf, type Unit, type UsageReport, type Whose } from './report.ts';
import type { Dimension, GridCell, createUsageGrid } from './usage-grid.ts';

/** What is wanted of an account's usage. */
export type ViewWish = Readonly<{ whose: Whose; hours: Hours; unit: Unit; by: Dimension; named: number }>;

/** What one account used in some time, as a table and as a chart. */
export type UsageView = Readonly<{
  total: Counts;
  /** The most calls first. */
  parts: readonly Part[];
  /** The names of the first `named` parts. */
  names: readonly string[];
  /** Each of the named parts by period, and under the empty name the others. */
  cells: readonly GridCell[];
}>;

export type UsageReading =
  | { readonly kind: 'read'; readonly view: UsageView }
  /** The user reads in as many places as there may be, or does not wait for this any more. */
  | { readonly kind: 'busy' };

/** For a user, whose turn it must be. */
export type ReadUsageView = (wish: ViewWish, userId: string, signal: AbortSignal) => Promise<UsageReading>;

type Deps = Readonly<{
  usage: Pick<UsageReport, 'byMethod' | 'byKey'>;
  grid: ReturnType<typeof createUsageGrid>;
  turns: ReadingTurns;
  clock: Pick<Clock, 'monotonic'>;
}>;

/** What is read at once: some ms of an account with very much usage, in which everything else here waits. */
const AT_ONCE_DAYS = 3;
/** The same of what is kept by day. */
const OLD_AT_ONCE_DAYS = 30;
const HOURS_KEPT = 24 * 90;
/** What was read for less than this waits for no further turn: of an account with little usage, a year. */
const TURN_MS = 4;

/** Reads in parts, each in its turn. Rejects when the ledger cannot be read. */
export function createReadUsageView({ usage, grid, turns, clock }: Deps): ReadUsageView {
  return async function readUsageView(wish, userId, signal) {
    const reader = turns.enter(userId);
    if (reader === undefined) return { kind: 'busy' };
    try {
      return await read(wish, reader, signal);
    } finally {
      reader.leave();
    }
  };

  async function read(
    { whose, hours, unit, by, named }: ViewWish,
    reader: Reader,
    signal: AbortSignal,
  ): Promise<UsageReading> {
    const slices = slicesOf(hours);
    const partsOf = by === 'method' ? usage.byMethod : usage.byKey;
    const parts = new Map<string, Counts>();
    let untilMs = Number.NEGATIVE_INFINITY;
    const turn = async () => {
      if (clock.monotonic() < untilMs) return;
      await reader.turn(signal);
      untilMs = clock.monotonic() + TURN_MS;
    };
    for (const slice of slices) {
      await turn();
      if (signal.aborted) return { kind: 'busy' };
      for (const { name, counts } of partsOf(whose, slice)) parts.set(name, sumOf([parts.get(name), counts]));
    }
    const sorted = [...parts]
      .map(([name, counts]) => ({ name, counts }))
      .sort((a, b) => b.counts.calls - a.counts.calls || b.counts.refused - a.counts.refused);
    const names = sorted.slice(0, named).map(({ name }) => name);
    const cells: GridCell[] = [];
    for (const slice of slices) {
      await turn();
      if (signal.aborted) return { kind: 'busy' };
      cells.push(...grid({ whose, hours: slice, unit, by, names }));
    }
    return { kind: 'read', view: { total: sumOf([...parts.values()]), parts: sorted, names, cells } };
  }
}

/**
 * Cut where days begin, since a day that is kept whole must not be in two slices. Months that are kept whole are more
 * than two years ago: `hours` must not reach that far.
 */
export function slicesOf({ fromHour, toHour }: Hours): readonly Hours[] {
  const slices: Hours[] = [];
  const firstHour = 24 * Math.floor((toHour - HOURS_KEPT) / 24);
  for (let from = fromHour; from < toHour;) {
    const day = Math.floor(from / 24);
    const next =
      24 * (from < firstHour ? Math.min(day + OLD_AT_ONCE_DAYS, firstHour / 24) : day + AT_ONCE_DAYS);
    slices.push({ fromHour: from, toHour: Math.min(next, toHour) });
    from = next;
  }
  return slices;
}

/** When each period of a chart begins, in Unix milliseconds; the first and the last are those that the hours touch. */
export function startsOf(
  { fromHour, toHour }: Hours,
  unit: Unit,
): readonly Readonly<{ at: number; atMs: number }>[] {
  const place = (hour: number) =>
    unit === 'hour' ? hour : unit === 'day' ? Math.floor(hour / 24) : monthOf(hour * HOUR_MS).month;
  const startMs = (at: number) =>
    unit === 'hour' ? at * HOUR_MS : unit === 'day' ? at * DAY_MS : monthStartMs(at);
  const [from, to] = [place(fromHour), place(toHour - 1)];
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => ({
    at: from + i,
    atMs: startMs(from + i),
  }));
}
