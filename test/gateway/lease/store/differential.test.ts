import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { CreditAsk, LeaseStore, RateAsk, ScanAsk, Speaker } from '../../../../gateway/lease/messages.ts';
import { CENTRES, type Centre, creditAsk, memoryCentre, nodeOf, rateAsk } from './centres.ts';

/**
 * Messages of three nodes about two accounts, sent once, again, late or out of order while the clock goes on, leaps and
 * steps back, plans change and nodes start anew. Every store gives the grants of the pure centre, number by number.
 */
const NODES = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222', 'c'] as const;

type Step<Ask> =
  | { readonly kind: 'say'; readonly node: number; readonly ask: Ask }
  /** Says the message again that was said so many before. */
  | { readonly kind: 'again'; readonly back: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'restart'; readonly node: number }
  | { readonly kind: 'learn'; readonly is: boolean };

const count = (max: number) => fc.oneof(fc.constant(0), fc.nat(10), fc.nat(max));
const waits = fc.oneof(
  fc.nat(200),
  fc.nat(5_000),
  fc.integer({ min: -3_600_000, max: 3_600_000 }),
  fc.constantFrom(999, 1_000, 1_001, 3_999, 4_000, 2_000, 250, 601_000, 90_000_000),
);

function stepsOf<Ask>(ask: fc.Arbitrary<Ask>, learns = 0): fc.Arbitrary<Step<Ask>[]> {
  const node = fc.nat(NODES.length - 1);
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('say' as const), node, ask }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('again' as const), back: fc.nat(6) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: waits }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const), node }) },
    { weight: learns, arbitrary: fc.record({ kind: fc.constant('learn' as const), is: fc.boolean() }) },
  );
  return fc.array(step, { minLength: 20, maxLength: 60, size: 'max' });
}

const rateAsks: fc.Arbitrary<RateAsk> = fc.record({
  accountId: fc.integer({ min: 1, max: 2 }),
  revision: fc.nat(3),
  rps: fc.constantFrom(5, 100, 1_000, 0.5, 10_000_000),
  burst: fc.constantFrom(1, 10, 100, 200, 10_000_000),
  spent: count(500),
  wanted: count(300),
  needed: count(250),
  weight: fc.nat(2_000),
  recovering: fc.nat(9).map((chance) => chance === 0),
});

const creditAsks: fc.Arbitrary<CreditAsk> = fc.record({
  accountId: fc.integer({ min: 1, max: 2 }),
  revision: fc.nat(3),
  total: fc.constantFrom(0, 100, 1_000, 9_000_000_000),
  charged: count(2_000),
  refunded: count(50),
  held: count(1_000),
  wanted: count(1_000),
  needed: count(1_000),
});

const scanAsks: fc.Arbitrary<ScanAsk> = fc.record({
  accountId: fc.integer({ min: 1, max: 2 }),
  revision: fc.nat(3),
  scans: fc.constantFrom(1, 2, 3, 8, 65_535),
  kept: fc.oneof(fc.constant(0), fc.nat(8)),
  wanted: fc.nat(9),
});

const RUNS = 250;

describe.each(Object.entries(CENTRES).slice(1, 3))('%s', (_, start) => {
  let centre: Centre;
  let reference: Centre;
  let stores: readonly LeaseStore[] = [];
  let starts = 0;
  beforeAll(async () => {
    [centre, reference] = [await start(), await memoryCentre()];
    // One after the other: each meets its server at the clock's 0.
    stores = [await centre.join(), await centre.join(), await centre.join()];
  });
  afterAll(() => centre[Symbol.asyncDispose]());

  /** Walks through the steps on both and compares every answer. */
  async function compare<Ask>(
    steps: readonly Step<Ask>[],
    first: readonly Ask[],
    tell: (store: LeaseStore, speaker: Speaker, ask: Ask) => Promise<unknown>,
  ): Promise<void> {
    await Promise.all([centre.forget(), reference.forget()]);
    const model = await reference.join();
    let nowMs = 1_700_000_000_000;
    let seq = 0;
    const fences = NODES.map(() => ++starts);
    const said: (readonly [number, Speaker, Ask])[] = [];
    await setClock();
    setLearning(false);

    function setLearning(is: boolean) {
      centre.setLearning?.(is);
      if (centre.setLearning !== undefined) reference.setLearning?.(is);
    }
    async function setClock() {
      await Promise.all([centre.setClock(nowMs), reference.setClock(nowMs)]);
    }
    async function both(node: number, speaker: Speaker, ask: Ask) {
      const store = stores[node];
      if (store === undefined) throw new Error('no such node');
      expect(await tell(store, speaker, ask)).toEqual(await tell(model, speaker, ask));
    }
    async function say(node: number, ask: Ask) {
      const speaker = { node: nodeOf(NODES[node] ?? ''), fence: fences[node] ?? 0, seq: ++seq };
      said.push([node, speaker, ask]);
      await both(node, speaker, ask);
    }
    for (const ask of first) await say(0, ask);
    for (const step of steps) {
      if (step.kind === 'say') await say(step.node, step.ask);
      if (step.kind === 'restart') fences[step.node] = ++starts;
      if (step.kind === 'learn') setLearning(step.is);
      if (step.kind === 'wait') {
        nowMs += step.ms;
        await setClock();
      }
      const earlier = step.kind === 'again' ? said.at(-1 - step.back) : undefined;
      if (earlier !== undefined) await both(...earlier);
    }
  }

  test('grants rates as the pure centre does', async () => {
    const property = fc.asyncProperty(stepsOf(rateAsks), (steps) =>
      compare(steps, [], (store, speaker, ask) => store.rates(speaker, [ask])),
    );
    await fc.assert(property, { numRuns: RUNS });
  }, 90_000);

  test('grants credits as the pure centre does', async () => {
    // Accounts begin without charges: Redis takes one that was charged and that it does not know for lost.
    const first = [creditAsk({ accountId: 1, total: 100 }), creditAsk({ accountId: 2, total: 100 })];
    const property = fc.asyncProperty(stepsOf(creditAsks, 1), (steps) =>
      compare(steps, first, (store, speaker, ask) => store.credits(speaker, [ask])),
    );
    await fc.assert(property, { numRuns: RUNS });
  }, 90_000);

  test('grants places for scans as the pure centre does', async () => {
    const property = fc.asyncProperty(stepsOf(scanAsks, 1), (steps) =>
      compare(steps, [], (store, speaker, ask) => store.scans(speaker, [ask])),
    );
    await fc.assert(property, { numRuns: RUNS });
  }, 90_000);

  // The counters of plan messages must not be trusted to be small.
  test('C9 grants the largest plans without leaving the exact integers', async () => {
    const large = rateAsk({ rps: 10_000_000, burst: 10_000_000, wanted: 10_000_000, weight: 10_000_000 });
    const steps: Step<RateAsk>[] = [
      { kind: 'say', node: 0, ask: large },
      { kind: 'say', node: 1, ask: large },
      { kind: 'wait', ms: 7 },
      { kind: 'say', node: 1, ask: { ...large, spent: 9_007_199_254 } },
      { kind: 'wait', ms: 86_400_000 },
      { kind: 'say', node: 2, ask: { ...large, needed: 10_000_000 } },
    ];
    await compare(steps, [], (store, speaker, ask) => store.rates(speaker, [ask]));
  });
});
