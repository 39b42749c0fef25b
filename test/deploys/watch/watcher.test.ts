import { afterEach, describe, expect, test } from 'bun:test';
import type { Deploy, Reading } from '../../../deploys/watch/change.ts';
import type { Floor, ReadingOutcome } from '../../../deploys/watch/read.ts';
import { createWatcher, type Latest, type Unread } from '../../../deploys/watch/watcher.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';

const program = addressOf('program');
const MINUTE = 60_000;

function reading(contextSlot: number, deploySlot: number): Reading {
  return {
    contextSlot: BigInt(contextSlot),
    programs: new Map([[program, { status: 'frozen', deploySlot: BigInt(deploySlot) }]]),
  };
}
const read = (contextSlot: number, deploySlot: number): ReadingOutcome => ({
  kind: 'read',
  reading: reading(contextSlot, deploySlot),
  reasons: [],
  genesisHash: `chain of ${contextSlot}`,
});
const FAILED: ReadingOutcome = { kind: 'failed', reasons: ['away'] };
const BEHIND: ReadingOutcome = { kind: 'behind', reasons: ['old'] };
type Step = ReadingOutcome | ((signal: AbortSignal) => Promise<ReadingOutcome>);

const NO_FILL: (signal: AbortSignal) => Promise<void> = async () => {};

let stop: (() => Promise<void>) | undefined;
afterEach(() => stop?.());

/** A running watcher whose readings are the steps; the last one repeats. */
function start(steps: readonly Step[], pollMs = MINUTE) {
  const clock = createVirtualClock();
  const sinceMs = clock.monotonic();
  const over = new AbortController();
  const startsMs: number[] = [];
  const floors: (Floor | undefined)[] = [];
  const saved: Latest[] = [];
  const hashes: (string | undefined)[] = [];
  const found: Deploy[] = [];
  const stored: Deploy[] = [];
  const unread: Unread[] = [];
  const broken: unknown[] = [];
  const filled: { reading: Reading; signal: AbortSignal }[] = [];
  const wishes = { save: () => {}, saves: 'saved' as 'saved' | 'held-back', fill: NO_FILL };
  const watcher = createWatcher({
    read: async (floor, signal) => {
      startsMs.push(Math.round(clock.monotonic() - sinceMs));
      floors.push(floor);
      const step = steps[Math.min(startsMs.length, steps.length) - 1];
      return typeof step === 'function' ? step(signal) : (step ?? FAILED);
    },
    save: (latest, deploys, genesisHash) => {
      wishes.save();
      stored.push(...deploys);
      hashes.push(genesisHash);
      saved.push(latest);
      return wishes.saves;
    },
    fillBlockTimes: (current, signal) => {
      filled.push({ reading: current, signal });
      return wishes.fill(signal);
    },
    noteRead: (_, deploys) => void found.push(...deploys),
    noteUnread: (trouble) => void unread.push(trouble),
    noteBroken: (error) => void broken.push(error),
    clock,
    pollMs,
  });
  const running = watcher.run(over.signal);
  stop = async () => {
    over.abort();
    await running;
    await clock.advance(0);
    expect(clock.sleepers()).toBe(0);
  };
  return { clock, watcher, startsMs, floors, saved, hashes, found, stored, unread, broken, filled, wishes };
}

describe('the minute (§3)', () => {
  test.each([
    [MINUTE, 0, [0, MINUTE, 2 * MINUTE]],
    [MINUTE, 25_000, [0, MINUTE, 2 * MINUTE]],
    [20_000, 25_000, [0, 40_000, 80_000, 120_000]], // a start that was missed is skipped
  ])(
    'readings start every %i ms, the first at once, also when each takes %i ms',
    async (pollMs, tookMs, starts) => {
      const slow = async (signal: AbortSignal) => {
        await Promise.resolve(); // the first reading starts before `started` has its value
        await started.clock.sleep(tookMs, signal);
        return read(1, 1);
      };
      const started = start([slow], pollMs);
      await started.clock.advance(2 * MINUTE);
      expect(started.startsMs).toEqual(starts);
    },
  );

  test('a reading that hangs is given up after 30 s and told to stop', async () => {
    let told: AbortSignal | undefined;
    const { clock, unread, startsMs } = start([
      (signal) => ((told = signal), new Promise(() => {})),
      read(1, 1),
    ]);
    await clock.advance(29_999);
    expect(told?.aborted).toBe(false);
    await clock.advance(1);
    expect(told?.aborted).toBe(true);
    expect(unread).toEqual([{ kind: 'failed', reasons: ['the reading took longer than 30 s'] }]);
    await clock.advance(250);
    expect(startsMs).toEqual([0, 30_250]);
  });
});

test('deploys that are held back are found again by the next reading, once they are saved', async () => {
  const { clock, wishes, stored, found } = start([read(1, 1), read(2, 2), read(3, 3), read(4, 3)]);
  await clock.advance(0);
  wishes.saves = 'held-back';
  await clock.advance(MINUTE);
  expect([stored.length, found]).toEqual([1, []]);
  wishes.saves = 'saved';
  await clock.advance(2 * MINUTE);
  expect(found).toMatchObject([{ previousSlot: 1n, deploySlot: 3n }]);
});

describe('failures', () => {
  test('are followed by another try after a quarter of a second, then ever later, and never later than the minute', async () => {
    const { clock, startsMs, watcher } = start([...Array.from({ length: 9 }, () => FAILED), read(1, 1)]);
    await clock.advance(MINUTE);
    expect(startsMs).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 15_750, 30_750, 45_750, MINUTE]);
    expect((watcher.state().latest?.checkedAtMs ?? 0) - START_MS).toBeWithin(MINUTE - 1, MINUTE + 1);
    expect(watcher.state()).toMatchObject({ trouble: undefined });
  });

  test('a failed reading leaves the last one and its checked_at standing, and says what is wrong', async () => {
    const { clock, watcher, saved } = start([read(1, 1), FAILED]);
    await clock.advance(2 * MINUTE);
    expect(watcher.state().latest).toEqual({ reading: reading(1, 1), checkedAtMs: START_MS });
    expect(watcher.state().trouble).toEqual({ kind: 'failed', reasons: ['away'] });
    expect(saved).toHaveLength(1);
  });

  test('what cannot be stored is not shown, and its deploys are found again by the next reading', async () => {
    const { clock, watcher, wishes, found } = start([read(1, 1), read(2, 2)]);
    await clock.advance(0);
    wishes.save = () => {
      throw new Error('disk full');
    };
    await clock.advance(MINUTE);
    expect(watcher.state().latest?.reading).toEqual(reading(1, 1));
    expect(found).toEqual([]);
    wishes.save = () => {};
    await clock.advance(MINUTE);
    expect(found).toEqual([{ program, previousSlot: 1n, deploySlot: 2n }]);
  });

  test('block times that break do not stop the watching', async () => {
    const { clock, wishes, startsMs, unread, broken } = start([read(1, 1)]);
    wishes.fill = () => Promise.reject(new Error('broken'));
    await clock.advance(MINUTE);
    expect(startsMs).toEqual([0, MINUTE]);
    expect(unread).toEqual([]);
    expect(broken[0]).toEqual(new Error('broken'));
  });
});

describe('deploys', () => {
  test('a slot that grew is found once, and stored with its reading; the first reading finds none (§4.1 program.upgraded)', async () => {
    const { clock, found, stored } = start([read(10, 5), read(20, 15)]);
    await clock.advance(5 * MINUTE);
    expect(found).toEqual([{ program, previousSlot: 5n, deploySlot: 15n }]);
    expect(stored).toEqual(found);
  });

  test('another chain in the middle of a run is taken at once, as the first reading of a run', async () => {
    const [kind, reasons, genesisHash] = ['other-chain', [], 'chain of 30'] as const;
    const other: ReadingOutcome = { kind, reading: reading(30, 25), reasons, genesisHash };
    const silent: ReadingOutcome = {
      kind: 'read',
      reading: reading(35, 25),
      reasons,
      genesisHash: undefined,
    };
    const { clock, found, stored, floors, hashes } = start([read(10, 5), other, silent, read(40, 35)]);
    await clock.advance(3 * MINUTE);
    expect(stored).toEqual([{ program, previousSlot: 25n, deploySlot: 35n }]);
    expect(found).toEqual(stored);
    // A backend that does not tell its chain leaves the one that is known.
    const known = ['chain of 10', 'chain of 30', 'chain of 30'];
    expect(floors.map((floor) => floor?.genesisHash)).toEqual([undefined, ...known]);
    expect(hashes).toEqual(['chain of 10', 'chain of 30', undefined, 'chain of 40']);
  });

  test('every reading must reach the slot of the one before, and a failure does not loosen that', async () => {
    const { clock, floors } = start([read(10, 5), FAILED, read(20, 15)]);
    await clock.advance(2 * MINUTE);
    expect(floors.map((floor) => floor?.contextSlot)).toEqual([undefined, 10n, 10n, 20n]);
    expect(floors.at(-1)?.deploySlots.get(program)).toBe(15n);
  });

  test('a chain that was reset is taken anew after ten minutes behind, without an event', async () => {
    const reset = async () => {
      await Promise.resolve(); // the first reading starts before `started` has its value
      return started.floors.at(-1) === undefined ? read(3, 2) : BEHIND;
    };
    const started = start([read(10, 9), reset]);
    await started.clock.advance(10 * MINUTE);
    expect(started.watcher.state().latest?.reading).toEqual(reading(10, 9));
    expect(started.watcher.state().trouble?.kind).toBe('behind');
    await started.clock.advance(2 * MINUTE);
    expect(started.watcher.state().latest?.reading).toEqual(reading(3, 2));
    expect(started.found).toEqual([]);
  });
});

describe('a reading in which most programs are gone', () => {
  const gone = (contextSlot: number): ReadingOutcome => ({
    kind: 'implausible',
    reading: { contextSlot: BigInt(contextSlot), programs: new Map([[program, { status: 'missing' }]]) },
    reasons: ['gone'],
  });
  const contexts = (saved: readonly Latest[]) => saved.map(({ reading: { contextSlot } }) => contextSlot);

  test('is believed the third time in a row, a minute apart each', async () => {
    const { clock, saved, unread, watcher, startsMs } = start([read(10, 9), gone(11), gone(12), gone(13)]);
    await clock.advance(2 * MINUTE);
    expect(contexts(saved)).toEqual([10n]);
    expect(watcher.state().trouble).toMatchObject({ kind: 'implausible', reasons: ['gone'] });
    await clock.advance(MINUTE);
    expect(startsMs).toEqual([0, MINUTE, 2 * MINUTE, 3 * MINUTE]);
    expect(contexts(saved)).toEqual([10n, 13n]);
    expect(watcher.state().trouble).toBeUndefined();
    expect(unread).toHaveLength(2);
  });

  test.each([
    ['a good reading', read(20, 9), [10n, 20n]],
    ['a failed one', FAILED, [10n]],
  ])('is counted anew after %s', async (_, between, expected) => {
    const steps = [read(10, 9), gone(11), gone(12), between, gone(21), gone(22), FAILED];
    const { clock, saved, startsMs } = start(steps);
    await clock.advance(10 * MINUTE);
    expect(startsMs.length).toBeGreaterThan(steps.length);
    expect(contexts(saved)).toEqual(expected);
  });

  test('keeps the slots that were seen: a program that comes back as it was is no deploy', async () => {
    const { clock, found, saved, floors } = start([read(10, 9), gone(11), gone(12), gone(13), read(14, 9)]);
    await clock.advance(4 * MINUTE);
    expect(contexts(saved)).toEqual([10n, 13n, 14n]);
    expect(floors.at(-1)?.deploySlots.get(program)).toBe(9n);
    expect(found).toEqual([]);
  });
});

test('two short lags do not add up to a reset', async () => {
  const lag = Array.from({ length: 36 }, () => BEHIND); // nine minutes of tries every 15 s
  const { clock, floors } = start([read(10, 9), ...lag, read(20, 9), ...lag, read(30, 9)]);
  await clock.advance(30 * MINUTE);
  expect(floors.length).toBeGreaterThan(75);
  expect(floors.slice(1)).not.toContain(undefined);
});

test('block times are filled in after every good reading, in the time until the next one', async () => {
  const { clock, filled, wishes, startsMs } = start([read(1, 1), FAILED]);
  wishes.fill = () => new Promise(() => {});
  await clock.advance(MINUTE - 1);
  expect(filled).toHaveLength(1);
  expect(filled[0]?.signal.aborted).toBe(false);
  await clock.advance(1);
  expect(filled[0]?.signal.aborted).toBe(true);
  expect(startsMs).toEqual([0, MINUTE]);
  expect(filled).toHaveLength(1);
});

test('a watcher that is stopped in the middle of a reading ends at once and records nothing', async () => {
  const { clock, saved, unread } = start([() => new Promise(() => {})]);
  await clock.advance(1);
  await stop?.();
  expect([saved.length, unread.length]).toEqual([0, 0]);
});
