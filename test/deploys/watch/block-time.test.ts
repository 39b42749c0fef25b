import { expect, test } from 'bun:test';
import { createBlockTimes } from '../../../deploys/watch/block-time.ts';
import type { CallOutcome } from '../../../deploys/watch/rpc.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { addressOf } from '../../fakes/chain.ts';

const AT = 1_700_000_000;
const time = (unixSeconds: unknown): CallOutcome => ({ kind: 'result', result: unixSeconds });
const error = (code: number): CallOutcome => ({ kind: 'error', code });
const failed = (isOverRate = false): CallOutcome => ({ kind: 'failed', reason: 'x', isOverRate });
type Given = Readonly<{
  /** Deploy slots of the reading, and those that events wait for since `sinceMs`. */
  shown?: readonly bigint[];
  awaited?: readonly bigint[];
  sinceMs?: number;
  /** What each backend answers for a slot. */
  answers: readonly ((slot: bigint) => CallOutcome)[];
}>;

/** Block times over scripted backends; `asked` has the slots in the order the first was asked for them, and when. */
function start({ shown = [], awaited = [], sinceMs = START_MS, answers }: Given) {
  const clock = createVirtualClock();
  const startMs = clock.monotonic();
  const stored = new Map<bigint, number>();
  const asked: [slot: bigint, atMs: number][] = [];
  const backends = answers.map((answer, i) => ({
    name: `backend ${i}`,
    call: async (_: string, [given]: readonly unknown[]) => {
      const slot = BigInt(Number(given));
      if (i === 0) asked.push([slot, Math.round(clock.monotonic() - startMs)]);
      return answer(slot);
    },
  }));
  const store = {
    find: (slot: bigint) => stored.get(slot),
    save: (slot: bigint, unixSeconds: number) => void stored.set(slot, unixSeconds),
  };
  const waiting = () => awaited.filter((slot) => !stored.has(slot)).map((slot) => ({ slot, sinceMs }));
  const times = createBlockTimes({ backends, store, awaited: waiting, clock });
  const programs = new Map(
    shown.map((deploySlot, i) => [addressOf(`${i}`), { status: 'frozen', deploySlot } as const]),
  );
  const over = new AbortController();
  let isOver = false;
  const fill = () => {
    isOver = false;
    return times.fill({ contextSlot: 100n, programs }, over.signal).then(() => void (isOver = true));
  };
  const slots = () => asked.map(([slot]) => slot);
  return { clock, stored, asked, slots, over, fill, isOver: () => isOver, forgetWaits: times.forgetWaits };
}
const minutes = (count: number) => Array.from({ length: count }, (_, i) => BigInt(i));

test('a time is looked up once, the newest deploy first, and stored', async () => {
  const { fill, stored, slots } = start({
    shown: [5n, 9n, 7n, 9n, 3n],
    answers: [(slot) => time(Number(slot) + 1_000)],
  });
  stored.set(3n, 77);
  await fill();
  await fill();
  expect(slots()).toEqual([9n, 7n, 5n]);
  expect([stored.get(5n), stored.get(3n)]).toEqual([1_005, 77]);
});

test.each([
  ['null', time(null)],
  ['skipped', error(-32007)],
  ['a fraction', time(1.5)],
  ['a time before 1970', time(-1)],
  ['a year of five digits', time(253_402_300_800)],
])('an answer of "%s" is no time, and is retried 5 s later', async (_, answer) => {
  let current = answer;
  const { fill, stored, clock, asked } = start({ shown: [5n], answers: [() => current] });
  void fill();
  await clock.advance(4_999);
  expect([asked.length, stored.size]).toEqual([1, 0]);
  current = time(AT);
  await clock.advance(1);
  expect(stored.get(5n)).toBe(AT);
});

test('a slot without a time is retried after 5 s, then ever more rarely, at least once an hour (E39)', async () => {
  const { fill, clock, asked, over } = start({ shown: [5n], answers: [() => time(null)] });
  void fill();
  await clock.advance(24 * 3_600_000);
  expect(asked.slice(0, 4).map(([, atMs]) => atMs)).toEqual([0, 5_000, 15_000, 35_000]);
  expect(asked.length).toBeGreaterThan(30);
  expect(asked.length).toBeLessThan(40);
  over.abort();
  await clock.advance(0);
  expect(clock.sleepers()).toBe(0);
});

test('backends that are away cost three calls a turn, and delay no slot', async () => {
  let current = failed();
  const { fill, stored, clock, asked, isOver } = start({ shown: minutes(20), answers: [() => current] });
  void fill();
  await clock.advance(999);
  expect(asked).toHaveLength(3);
  await clock.advance(60_000);
  expect(asked.length).toBeLessThan(3 * 10);
  current = time(1);
  await clock.advance(15_000);
  expect([stored.size, isOver()]).toEqual([20, true]);
});

test('a rate limit is waited out, and the same slot is retried', async () => {
  let tokens = 2;
  const answers = [() => (tokens-- > 0 ? time(1) : failed(true))];
  const { fill, stored, clock } = start({ shown: [1n, 2n, 3n], answers });
  const done = fill();
  await clock.advance(999);
  expect([...stored.keys()]).toEqual([3n, 2n]);
  tokens = 1;
  await clock.advance(1);
  await done;
  expect(stored.get(1n)).toBe(1);
});

test('one turn makes at most 150 calls; the rest follow in the next', async () => {
  const { fill, asked, clock, slots } = start({ shown: minutes(200), answers: [() => time(1)] });
  void fill();
  await clock.advance(999);
  expect(asked).toHaveLength(150);
  await clock.advance(1);
  expect(new Set(slots()).size).toBe(200);
});

test('what comes after the next reading is due is not recorded', async () => {
  const { fill, stored, asked, over } = start({
    shown: [1n, 2n],
    answers: [(slot) => (over.abort(), time(Number(slot)))],
  });
  await fill();
  expect([asked.length, stored.size]).toEqual([1, 0]);
});

test('a slot without a time is retried at once on another chain', async () => {
  const { fill, forgetWaits, clock, asked, over } = start({ shown: [5n], answers: [() => error(-32007)] });
  void fill();
  await clock.advance(100);
  forgetWaits();
  void fill();
  await clock.advance(0);
  expect(asked).toHaveLength(2);
  over.abort();
});

test('times that events wait for come first, and are retried within seconds', async () => {
  const times = new Set<bigint>();
  const { fill, clock, asked, slots, stored, isOver } = start({
    shown: [9n, 8n, 5n],
    awaited: [5n, 2n],
    answers: [(slot) => (times.has(slot) ? time(AT) : error(-32007))],
  });
  void fill();
  await clock.advance(0);
  expect(slots()).toEqual([5n, 2n, 9n, 8n]);
  times.add(2n); // which no reading shows any more
  await clock.advance(10_000);
  expect(asked.slice(4)).toEqual([
    [5n, 1_000],
    [2n, 1_000],
    [5n, 3_000],
    [5n, 7_000],
    [9n, 7_000],
    [8n, 7_000],
  ]);
  for (const slot of [5n, 8n, 9n]) times.add(slot);
  await clock.advance(20_000);
  expect([stored.size, isOver(), clock.sleepers()]).toEqual([4, true, 0]);
});
