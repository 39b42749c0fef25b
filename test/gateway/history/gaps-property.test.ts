import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { agavePage } from '../../fakes/history.ts';
import { archivedSlots } from '../../fakes/old-faithful.ts';
import { refusedUrl } from '../../fakes/raw-backend.ts';
import {
  caller,
  chainOf,
  fakesOf,
  learnt,
  namedBackend,
  probed,
  rowsOf,
  signaturesOf,
  ADDRESS,
} from './world.ts';

const RUNS = 250;
const TIP = 90;
const UNREACHABLE = -32019;
const history = chainOf(1);
const fakes = fakesOf(history);
const node = fakes.node(0, TIP);
const banks = [0, 1, 2].map(() => fakes.superbank(0, TIP));
const faithful = fakes.faithful(0, 3);
const nodeAt = probed(node.url, 'agave');
const banksAt = banks.map(({ url }, i) => namedBackend(`bank-${i}`, url, 'superbank'));
const faithfulAt = probed(faithful.url, 'old-faithful');
const lostAt = namedBackend('lost', refusedUrl(), 'superbank');

const span = fc
  .record({
    floor: fc.nat(TIP),
    length: fc.oneof(fc.nat(15), fc.nat(TIP)),
    floorKnown: fc.boolean(),
    topKnown: fc.boolean(),
  })
  .map(({ floor, length, ...rest }) => ({ floor, top: Math.min(TIP, floor + length), ...rest }));
/** Archives with gaps and overlaps, some of whose ends nobody has told; one of them may be away. */
const scene = fc.record({
  seed: fc.nat(20),
  liveFloor: fc.integer({ min: 2, max: 85 }),
  liveKnown: fc.boolean(),
  strict: fc.boolean(),
  banks: fc.array(span, { minLength: 0, maxLength: 3 }),
  epochs: fc.option(fc.tuple(fc.nat(3), fc.nat(3)), { nil: undefined }),
  lost: fc.option(span, { nil: undefined }),
  start: fc.nat(95),
  length: fc.nat(95),
  limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(1_000)),
  before: fc.option(fc.nat(150), { nil: undefined }),
  until: fc.option(fc.nat(150), { nil: undefined }),
});
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;
type Known = Readonly<{ floor: number; top: number }>;

/** Sets the backends up; gives them, what is known of those that answer, and the lowest slot that any has. */
function setUp(asked: Scene) {
  const chain = chainOf(asked.seed);
  const { liveFloor, strict } = asked;
  Object.assign(node.state, { history: chain, held: { floor: liveFloor, top: TIP }, strictCursors: strict });
  learnt(nodeAt, asked.liveKnown ? liveFloor : undefined, TIP);
  const known: Known[] = asked.liveKnown ? [{ floor: liveFloor, top: TIP }] : [];
  const backends = [nodeAt];
  const floors = [liveFloor];
  asked.banks.forEach(({ floor, top, floorKnown, topKnown }, i) => {
    const [bank, at] = [banks[i], banksAt[i]];
    if (bank === undefined || at === undefined) return;
    Object.assign(bank.state, { history: chain, held: { floor, top } });
    backends.push(learnt(at, floorKnown ? floor : undefined, topKnown ? top : 0));
    floors.push(floor);
    if (floorKnown && topKnown) known.push({ floor, top });
  });
  if (asked.epochs !== undefined) {
    Object.assign(faithful.state, { history: chain, epochs: asked.epochs.toSorted((a, b) => a - b) });
    const slots = archivedSlots(faithful.state);
    const blocks = chain.slots.filter((slot) => slot >= slots.floor && slot <= slots.top);
    const [floor, top] = [blocks[0] ?? 0, blocks.at(-1) ?? 0];
    backends.push(learnt(faithfulAt, floor, top));
    floors.push(floor);
    known.push({ floor, top });
  }
  if (asked.lost !== undefined) {
    const { floor, top, floorKnown, topKnown } = asked.lost;
    backends.push(learnt(lostAt, floorKnown ? floor : undefined, topKnown ? top : 0));
    floors.push(floor);
  }
  const isKnown = (from: number, to: number) =>
    Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i).every(
      // Slot 0 is genesis: who has slot 1 has all that is before.
      (slot) => slot > TIP || known.some(({ floor, top }) => floor <= Math.max(1, slot) && slot <= top),
    );
  return { chain, backends, lowest: Math.min(...floors), isKnown };
}

const { ask, page } = caller();

const none = { whole: 0, refused: 0, alone: 0, needless: 0 };

/** Runs a check on many scenes, and sees that they were of both kinds, and refused without need in one of fifty at most. */
async function proved(check: (asked: Scene) => Promise<keyof typeof none>): Promise<void> {
  const seen = { ...none };
  const property = fc.asyncProperty(scene, async (asked) => void seen[await check(asked)]++);
  await fc.assert(property, { numRuns: RUNS });
  expect(Math.min(seen.whole, seen.refused)).toBeGreaterThan(20);
  expect(seen.needless).toBeLessThanOrEqual(RUNS / 50);
}

describe('with gaps between archives and ends that nobody told, the answer is the whole one or -32019', () => {
  test.each(['getBlocks', 'getBlocksWithLimit'])('for %s', async (method) => {
    await proved(async (asked) => {
      const { chain, backends, isKnown } = setUp(asked);
      if (backends.length < 2) return 'alone';
      const [from, isRange] = [asked.start, method === 'getBlocks'];
      const end = isRange ? from + asked.length : TIP;
      const inRange = chain.slots.filter((slot) => slot >= from && slot <= end);
      const expected = isRange ? inRange : inRange.slice(0, asked.limit);
      const isFull = !isRange && expected.length === asked.limit;
      const got = await ask(backends, method, [from, isRange ? end : asked.limit]);
      if (got === UNREACHABLE && !isKnown(from, isFull ? (expected.at(-1) ?? 0) : end)) return 'refused';
      expect(got).toEqual(expected);
      return 'whole';
    });
  });

  test('for a page of signatures, which ends where the lowest of them begins', async () => {
    await proved(async (asked) => {
      const { chain, backends, lowest, isKnown } = setUp(asked);
      if (backends.length < 2) return 'alone';
      const own = rowsOf(chain).filter(({ slot }) => slot >= lowest);
      const place = asked.before === undefined ? -1 : asked.before % own.length;
      const ends = own.slice(place + 1);
      const until = asked.until === undefined ? undefined : ends[asked.until % ends.length]?.signature;
      const config = { limit: asked.limit, before: own[place]?.signature, until };
      const expected = agavePage(chain, { floor: lowest, top: TIP }, { address: ADDRESS, ...config }, true);
      if (expected.kind !== 'rows') throw new Error('a cursor of the chain is not known to it');
      const { rows } = expected;
      // That `until` is older than the page is known of one that somebody has.
      const untilSlot = own.find(({ signature }) => signature === until)?.slot;
      const last = rows.length === asked.limit ? rows.at(-1)?.slot : untilSlot;
      const needs =
        isKnown(last ?? lowest, own[place]?.slot ?? TIP) && isKnown(untilSlot ?? TIP, untilSlot ?? TIP);
      const comesToEnd = last === undefined;
      // An archive that does not answer may have an `until` that is newer than the page.
      const mayBeLost = until !== undefined && asked.lost !== undefined;
      const isSure = asked.liveKnown && needs && !mayBeLost && (!comesToEnd || allKnown(asked));
      const got = await page(backends, config);
      if (got === UNREACHABLE) return isSure ? 'needless' : 'refused';
      expect(got).toEqual(signaturesOf(rows));
      return 'whole';
    });
  });
});

/** Whether nobody may have more than is known, which a page that comes to its end needs. */
function allKnown({ banks: spans, lost }: Scene): boolean {
  return [...spans, ...(lost === undefined ? [] : [lost])].every(
    ({ floorKnown, topKnown }) => floorKnown && topKnown,
  );
}
