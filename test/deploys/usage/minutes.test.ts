import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createLiveMinutes, createMinutes } from '../../../deploys/usage/minutes.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { cellOf, createTakeCells, HOUR_MS, startLedger } from './ledger.ts';

const MINUTE_MS = 60_000;
const NOW = 30_000_000;
const nowMs = NOW * MINUTE_MS + 59_999;
const one = { calls: 1, refused: 2, errors: 3 };

test('the last of sixty minutes is the one that is now; a minute leaves when its hour is over, and leaves nothing to the one that takes its place', () => {
  const minutes = createMinutes();
  minutes.add(1, NOW - 60, one);
  expect(minutes.of(1, nowMs).map(({ minute }) => minute)).toEqual(
    Array.from({ length: 60 }, (_, i) => NOW - 59 + i),
  );
  expect(minutes.of(1, nowMs).some(({ calls }) => calls > 0)).toBe(false);
  minutes.add(1, NOW, { calls: 5, refused: 0, errors: 0 });
  expect(minutes.of(1, nowMs).at(-1)).toEqual({ minute: NOW, calls: 5, refused: 0, errors: 0 });
  minutes.add(1, NOW - 60, one);
  expect(minutes.of(1, nowMs).at(-1)?.calls).toBe(5);
});
test('no more accounts are held than may be, until some are idle; the totals count all', () => {
  const minutes = createMinutes();
  for (let id = 1; id <= 20_001; id++) minutes.add(id, NOW, one);
  const of = (at: number) => minutes.of(20_001, at).at(-1)?.calls;
  expect([of(nowMs), minutes.totals(nowMs).at(-1)?.calls]).toEqual([0, 20_001]);
  minutes.forgetIdle(nowMs + 59 * MINUTE_MS);
  minutes.add(20_001, NOW + 59, one);
  expect(of(nowMs + 59 * MINUTE_MS)).toBe(0);
  minutes.forgetIdle(nowMs + 60 * MINUTE_MS);
  minutes.add(20_001, NOW + 60, one);
  expect(of(nowMs + 60 * MINUTE_MS)).toBe(1);
});

describe('minute by minute', () => {
  const hourAt = (ms: number) => Math.floor(ms / HOUR_MS);

  let books: ReturnType<typeof startLedger>;
  let take: ReturnType<typeof createTakeCells>;
  let clock: ReturnType<typeof createVirtualClock>;
  let live: ReturnType<typeof createLiveMinutes>;
  let broken: unknown[];
  let stop: AbortController;
  let running: Promise<void>;

  function begin(startMs: number) {
    clock = createVirtualClock(startMs);
    live = createLiveMinutes({
      ledger: books.connect(),
      clock,
      noteBroken: (error) => void broken.push(error),
    });
    running = live.run(stop.signal);
  }
  /** The same after its first reading. */
  async function beginAt(startMs: number) {
    begin(startMs);
    await clock.advance(0);
  }
  beforeEach(() => {
    books = startLedger();
    take = createTakeCells(books.ledger);
    broken = [];
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await clock.advance(0);
    await running;
    expect([clock.sleepers(), broken]).toEqual([0, []]);
    books[Symbol.dispose]();
  });

  /** What an account did, by minutes before now. */
  const done = (id = 1) =>
    Object.fromEntries(
      live
        .recentMinutes(id, clock.now())
        .toReversed()
        .flatMap(({ calls, refused, errors }, ago) =>
          calls + refused + errors === 0 ? [] : [[ago, [calls, refused, errors]]],
        ),
    );
  const cell = (given: Parameters<typeof cellOf>[0] = {}) => cellOf({ hour: hourAt(clock.now()), ...given });

  describe('what hours grow by', () => {
    test('is counted in its minute within ten seconds', async () => {
      await beginAt(START_MS + 30_000);
      take([cell({ calls: 3, refused: 2, errors: 1 })]);
      await clock.advance(10_000);
      expect(done()).toEqual({ 0: [3, 2, 1] });
      await clock.advance(50_000);
      take([cell({ calls: 10, refused: 2, errors: 1 })]);
      await clock.advance(10_000);
      expect(done()).toEqual({ 0: [7, 0, 0], 1: [3, 2, 1] });
      books.ledger.run('UPDATE usage_hours SET calls = 9, refused = 3'); // less than before is nothing
      await clock.advance(10_000);
      expect(done()).toEqual({ 0: [7, 1, 0], 1: [3, 2, 1] });
    });
    test('over the turn of an hour is of both hours', async () => {
      take([cellOf({ hour: hourAt(START_MS), calls: 5 })]);
      begin(START_MS + HOUR_MS - 8_000);
      await clock.advance(6_000);
      const old = hourAt(START_MS);
      take([cell({ hour: old, calls: 6 }), cell({ hour: old + 1, calls: 10 })]);
      await clock.advance(10_000);
      take([cell({ hour: old, calls: 8 })]); // a call that came before the turn
      await clock.advance(10_000);
      expect(live.recentTotals(clock.now()).reduce((sum, { calls }) => sum + calls, 0)).toBe(1 + 10 + 2);
    });
    test('counts none of what there was before the first look, and says since when it counts', async () => {
      take([cellOf({ hour: hourAt(START_MS), calls: 1_000 })]);
      begin(START_MS);
      expect(live.sinceMs()).toBeUndefined();
      await clock.advance(20_000);
      expect(live.sinceMs()).toBe(START_MS);
      expect(done()).toEqual({});
    });
  });

  test('a ledger that cannot be read is told of, and looked at again', async () => {
    await beginAt(START_MS);
    books.ledger.run('ALTER TABLE usage_hours RENAME TO away');
    await clock.advance(10_000);
    expect(broken.length).toBeGreaterThan(0);
    books.ledger.run('ALTER TABLE away RENAME TO usage_hours');
    take([cell({ calls: 4 })]);
    await clock.advance(10_000);
    expect(done()).toEqual({ 0: [4, 0, 0] });
    broken = [];
  });
});
