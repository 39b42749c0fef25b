import type { Clock } from '../../shared/clock.ts';
import { type Hours, UNITS, touched, type Unit } from './calendar.ts';
import {
  type Counts,
  type Dimension,
  type GridCell,
  merged,
  type UsagePart,
  sumOf,
  type UsageReport,
  type Whose,
} from './report.ts';

export type UsageQuery = Readonly<{ whose: Whose; hours: Hours; unit: Unit; by: Dimension; named: number }>;

/** Usage of one account in some time, as a table and as a chart. */
export type UsageView = Readonly<{
  total: Counts;
  /** The most calls first. */
  parts: readonly UsagePart[];
  /** The names of the first `named` parts. */
  names: readonly string[];
  /** Each of the named parts by period, and under the empty name the others. */
  cells: readonly GridCell[];
}>;

type UsageReading =
  | { readonly kind: 'read'; readonly view: UsageView }
  /** The user reads in as many places as there may be, or does not wait for this any more. */
  | { readonly kind: 'busy' };

/** For a user, whose turn it must be. */
export type ReadUsageView = (query: UsageQuery, userId: string, signal: AbortSignal) => Promise<UsageReading>;

type UsageViewDeps = Readonly<{
  usage: Pick<UsageReport, 'byMethod' | 'byKey' | 'grid'>;
  turns: ReadingTurns;
  clock: Pick<Clock, 'monotonic'>;
}>;

/** Days that are read at once: some ms of an account with very much usage, in which everything else here waits. */
const AT_ONCE_DAYS = 3;
/** The same of what is kept by day. */
const OLD_AT_ONCE_DAYS = 30;
const HOURS_KEPT = 24 * 90;
/** A read shorter than this waits for no further turn: of an account with little usage, a year. */
const TURN_MS = 4;

/** Reads in parts, each in its turn. Rejects when the ledger cannot be read. */
export function createReadUsageView({ usage, turns, clock }: UsageViewDeps): ReadUsageView {
  return async function readUsageView({ whose, hours, unit, by, named }, userId, signal) {
    const reader = turns.enter(userId);
    if (reader === undefined) return { kind: 'busy' };
    const slices = slicesOf(hours);
    const partsOf = by === 'method' ? usage.byMethod : usage.byKey;
    const found: UsagePart[] = [];
    const cells: GridCell[] = [];
    let untilMs = Number.NEGATIVE_INFINITY;
    /** Whether the next part may be read. */
    const turn = async () => {
      if (clock.monotonic() >= untilMs) {
        await reader.turn(signal);
        untilMs = clock.monotonic() + TURN_MS;
      }
      return !signal.aborted;
    };
    try {
      for (const slice of slices) {
        if (!(await turn())) return { kind: 'busy' };
        found.push(...partsOf(whose, slice));
      }
      const parts = merged(found.map(({ name, counts }) => ({ name, ...counts }))).toSorted(
        ({ counts: a }, { counts: b }) => b.calls - a.calls || b.refused - a.refused,
      );
      const names = parts.slice(0, named).map(({ name }) => name);
      for (const slice of slices) {
        if (!(await turn())) return { kind: 'busy' };
        cells.push(...usage.grid({ whose, hours: slice, unit, by, names }));
      }
      const total = sumOf(parts.map(({ counts }) => counts));
      return { kind: 'read', view: { total, parts, names, cells } };
    } finally {
      reader.leave();
    }
  };
}

/** Cut where days begin, since a day that is kept whole must not be in two slices; `hours` must reach no month that is kept whole. */
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
export function startsOf(hours: Hours, unit: Unit): readonly Readonly<{ at: number; atMs: number }>[] {
  const { from, to } = touched(hours, unit);
  return Array.from({ length: to - from }, (_, i) => ({
    at: from + i,
    atMs: UNITS[unit].startMs(from + i),
  }));
}

/** Somebody who reads much of the ledger, a part at a time. */
export type Reader = Readonly<{
  /** Resolves when the next part may be read, and everything else here had its turn; or when `signal` aborts. */
  turn(signal: AbortSignal): Promise<void>;
  /** Must be called once. */
  leave(): void;
}>;

/** Of one user at once: a few windows and files. */
const READERS_MAX = 8;
const PAUSE_MS = 1;

export function createReadingTurns(clock: Pick<Clock, 'sleep'>) {
  /** In the order of their turns: in how many places each reads, and what waits for its turn. */
  const users = new Map<string, { reading: number; readonly waiting: Set<() => void> }>();
  const always = new AbortController().signal;
  let serving = false;

  async function serve(): Promise<void> {
    if (serving) return;
    serving = true;
    for (let next = takeNext(); next !== undefined; next = takeNext()) {
      next();
      await clock.sleep(PAUSE_MS, always);
    }
    serving = false;
  }

  function takeNext(): (() => void) | undefined {
    for (const [userId, user] of users) {
      const [first] = user.waiting;
      if (first === undefined) continue;
      user.waiting.delete(first);
      users.delete(userId);
      users.set(userId, user);
      return first;
    }
    return undefined;
  }

  return {
    /** `undefined` while the user reads in as many places as there may be. */
    enter(userId: string): Reader | undefined {
      const user = users.get(userId) ?? { reading: 0, waiting: new Set() };
      if (user.reading >= READERS_MAX) return undefined;
      user.reading += 1;
      users.set(userId, user);
      return {
        async turn(signal) {
          if (signal.aborted) return;
          const { promise, resolve } = Promise.withResolvers<void>();
          user.waiting.add(resolve);
          const stop = () => {
            user.waiting.delete(resolve);
            resolve();
          };
          signal.addEventListener('abort', stop, { once: true });
          void serve();
          await promise;
          signal.removeEventListener('abort', stop);
        },
        leave() {
          user.reading -= 1;
          if (user.reading === 0) users.delete(userId);
        },
      };
    },
  };
}

/** Long reads take turns, a part at a time and user by user: nobody waits for more than one part of each other user. */
export type ReadingTurns = ReturnType<typeof createReadingTurns>;
