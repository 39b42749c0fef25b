import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Backend } from '../../../gateway/upstream/backend.ts';
import { agavePage, type History, isOlder, type Transaction } from '../../fakes/history.ts';
import { archivedSlots } from '../../fakes/old-faithful.ts';
import { ADDRESS, caller, chainOf, fakesOf, learnt, probed, probedBigtable, signaturesOf } from './world.ts';

const RUNS = 120;
const EVERYTHING = { floor: 0, top: 90 };
const history = chainOf(1);

const fakes = fakesOf(history);
const hot = fakes.node(0, 90);
const faithful = fakes.faithful(0, 3);
/** Holds the later ones of the epochs when there are two. */
const later = fakes.faithful(0, 3);
const superbank = fakes.superbank(0, 90);
const older = fakes.superbank(0, 90);
const bigtable = fakes.bigtable(0, 90);
/** What each backend's probe would have learnt changes from run to run; its connections stay. */
const node = probed(hot.url, 'agave');
const [faithfulAt, laterAt, superbankAt, olderAt, bigtableAt] = [
  probed(faithful.url, 'old-faithful'),
  probed(later.url, 'old-faithful'),
  probed(superbank.url, 'superbank'),
  probed(older.url, 'superbank'),
  probedBigtable(bigtable.url),
];

/** Where the live node begins, how far the archive goes, and what is asked; cursors are places in the chain. */
const scene = fc.record({
  seed: fc.nat(50),
  floor: fc.oneof(fc.constantFrom(20, 40, 60), fc.integer({ min: 1, max: 78 })),
  overlap: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 })),
  topKnown: fc.boolean(),
  floorKnown: fc.boolean(),
  limit: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(1_000)),
  /** The epoch in which the second of two archives begins. */
  seam: fc.integer({ min: 1, max: 3 }),
  before: fc.option(fc.nat(150), { nil: undefined }),
  until: fc.option(fc.nat(150), { nil: undefined }),
});
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;

/** Sets an archive up to hold everything below the live node's floor and `overlap` slots more. */
type Archive = (scene: Scene, history: History) => readonly Backend[];

const archives: Readonly<Record<string, Archive>> = {
  'Old Faithful'({ floor, overlap, topKnown }, chain) {
    const last = Math.min(3, Math.ceil((floor + overlap) / chain.epochSlots) - 1);
    faithful.state.history = chain;
    faithful.state.epochs = [0, last];
    const { top } = archivedSlots(faithful.state);
    const newest = chain.slots.findLast((slot) => slot <= top);
    return [learnt(faithfulAt, 1, topKnown ? newest : 0)];
  },
  'two Old Faithfuls, one after the other'(asked, chain) {
    archives['Old Faithful']?.(asked, chain);
    const last = faithful.state.epochs[1];
    const from = Math.max(1, Math.min(asked.seam, last));
    later.state.history = chain;
    later.state.epochs = [from, Math.max(from, last)];
    faithful.state.epochs = [0, from - 1];
    const top = ({ state }: typeof faithful) => (asked.topKnown ? archivedSlots(state).top : 0);
    return [learnt(faithfulAt, 1, top(faithful)), learnt(laterAt, from * chain.epochSlots, top(later))];
  },
  Superbank({ floor, overlap, topKnown }, chain) {
    const held = { floor: 0, top: Math.min(90, floor + overlap - 1) };
    Object.assign(superbank.state, { history: chain, held });
    return [learnt(superbankAt, 0, topKnown ? held.top : 0)];
  },
  'two Superbanks, one after the other'(asked, chain) {
    const upper = archives['Superbank']?.(asked, chain) ?? [];
    const [from, { top }] = [asked.seam * chain.epochSlots, superbank.state.held];
    if (from > top) return upper;
    superbank.state.held = { floor: from, top };
    Object.assign(older.state, { history: chain, held: { floor: 0, top: from - 1 } });
    const tops = asked.topKnown ? [top, from - 1] : [0, 0];
    return [learnt(superbankAt, from, tops[0]), learnt(olderAt, 0, tops[1])];
  },
  'an Agave node with BigTable'({ floor, overlap, topKnown }, chain) {
    const held = { floor: Math.max(1, floor - 10), top: Math.min(90, floor + overlap - 1) };
    Object.assign(bigtable.state, { history: chain, held, bigtable: { floor: 0, top: held.top } });
    return [learnt(bigtableAt, held.floor, topKnown ? held.top : 0)];
  },
};

describe.each(Object.keys(archives))('with %s as the archive', (name) => {
  test.each([
    ['4.0', true],
    ['3.x', false],
  ])(
    'G16 a page is that of one node that has everything, the live node being Agave %s',
    async (_, strict) => {
      await fc.assert(
        fc.asyncProperty(scene, async (asked) => {
          const chain = chainOf(asked.seed);
          Object.assign(hot.state, {
            history: chain,
            held: { floor: asked.floor, top: 90 },
            strictCursors: strict,
          });
          const tier = archives[name]?.(asked, chain);
          if (tier === undefined) throw new Error(`no archive ${name}`);
          learnt(node, asked.floorKnown ? asked.floor : undefined, 90);
          const { before, until } = cursorsIn(chain, asked, name.includes('Old Faithful'));
          const config = { limit: asked.limit, before: before?.signature, until: until?.signature };
          const expected = agavePage(chain, EVERYTHING, { address: ADDRESS, ...config }, true);
          const got = await caller().page([node, ...tier], config);
          if (expected.kind !== 'rows') throw new Error('a cursor of the chain is not known to it');
          if (got === -32019 && !(asked.floorKnown && asked.topKnown)) return;
          expect(got).toEqual(signaturesOf(expected.rows));
        }),
        { numRuns: RUNS },
      );
    },
  );
});

/**
 * Two transactions of the chain, of this address or not; `until` may be the newer one. Old Faithful never meets an `until`
 * that is not among the address's rows, so it is given no other; and nothing tells the order of rows within a slot, so a
 * `before` that is not the address's stands in a slot without its rows, and a newer `until` in another slot.
 */
function cursorsIn({ transactions }: History, { before: at, until: end }: Scene, walksRows: boolean) {
  const own = ({ addresses }: Transaction) => addresses.includes(ADDRESS);
  const slots = new Set(transactions.filter(own).map(({ slot }) => slot));
  const starts = transactions.filter((each) => !walksRows || own(each) || !slots.has(each.slot));
  const before = at === undefined ? undefined : starts[at % starts.length];
  const tells = (each: Transaction) =>
    own(each) && (before === undefined || isOlder(each, before) || each.slot > before.slot);
  const ends = walksRows ? transactions.filter(tells) : transactions;
  return { before, until: end === undefined ? undefined : ends[end % ends.length] };
}
