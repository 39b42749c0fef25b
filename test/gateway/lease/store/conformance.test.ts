import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import type { CreditGrant, LeaseStore, RateGrant, ScanGrant } from '../../../../gateway/lease/messages.ts';
import { CENTRES, type Centre, creditAsk, rateAsk, scanAsk, speaker } from './centres.ts';

/** What every centre promises, whichever store it lives in: two processes meet there. */
describe.each(Object.entries(CENTRES))('%s', (_, start) => {
  let centre: Centre;
  let [a, b]: LeaseStore[] = [];
  let nowMs = 1_700_000_000_000;
  let seq = 0;
  let fence = 0;
  beforeAll(async () => {
    centre = await start();
    [a, b] = [await centre.join(), await centre.join()];
  }, 30_000);
  afterAll(() => centre[Symbol.asyncDispose]());
  beforeEach(async () => {
    // Both start anew with the centre, or it would be one that lost what it had answered.
    fence++;
    await centre.forget();
    await centre.setClock(nowMs);
  });

  const wait = (ms: number) => centre.setClock((nowMs += ms));

  async function rates(name: 'a' | 'b', ...parts: Parameters<typeof rateAsk>[0][]): Promise<RateGrant[]> {
    const asks = parts.map((part) => rateAsk(part));
    const answers = await (name === 'a' ? a : b)?.rates(speaker(name, ++seq, fence), asks);
    return (answers ?? []).map((answer) => {
      if (answer.kind === 'failed') throw new Error('the store failed');
      return answer.grant;
    });
  }
  async function rate(name: 'a' | 'b', part: Parameters<typeof rateAsk>[0]): Promise<RateGrant> {
    const [grant] = await rates(name, part);
    if (grant === undefined) throw new Error('the store gave no answer');
    return grant;
  }
  async function credit(
    name: 'a' | 'b',
    part: Parameters<typeof creditAsk>[0],
    by = speaker(name, ++seq, fence),
  ) {
    const [answer] = (await (name === 'a' ? a : b)?.credits(by, [creditAsk(part)])) ?? [];
    if (answer?.kind !== 'granted') throw new Error('the store failed');
    return answer.grant satisfies CreditGrant;
  }

  async function scan(
    name: 'a' | 'b',
    part: Parameters<typeof scanAsk>[0],
    by = speaker(name, ++seq, fence),
  ) {
    const [answer] = (await (name === 'a' ? a : b)?.scans(by, [scanAsk(part)])) ?? [];
    if (answer?.kind !== 'granted') throw new Error('the store failed');
    return answer.grant satisfies ScanGrant;
  }

  test('what one process holds of a burst the other cannot have, until it gives it back', async () => {
    expect(await rate('a', { wanted: 60 })).toMatchObject({ granted: 60, left: 40 });
    expect(await rate('b', { wanted: 40 })).toMatchObject({ granted: 40, left: 0, nodes: 2 });
    expect(await rate('b', { wanted: 41 })).toMatchObject({ granted: 40 });
    expect(await rate('a', { wanted: 10 })).toMatchObject({ granted: 10, left: 50 });
    expect(await rate('b', { wanted: 90 })).toMatchObject({ granted: 90, left: 0 });
  });

  test('a lease that ends unspent is lost, and its tokens come back only with time', async () => {
    expect(await rate('a', { rps: 10, wanted: 100 })).toMatchObject({ granted: 100, lifeMs: 1_000 });
    await wait(1_000);
    expect(await rate('b', { rps: 10, wanted: 100 })).toMatchObject({ granted: 0, nodes: 1 });
    await wait(500);
    expect(await rate('b', { rps: 10, wanted: 100 })).toMatchObject({ granted: 5 });
  });

  test('many asks of one message are answered in their order, each for its own account', async () => {
    const wanted = [7, 11, 13];
    const grants = await rates('a', ...wanted.map((tokens, at) => ({ accountId: at + 1, wanted: tokens })));
    expect(grants.map(({ granted }) => granted)).toEqual(wanted);
    expect(await rates('a')).toEqual([]);
  });

  test('a message that comes twice or late changes nothing', async () => {
    const first = speaker('a', ++seq, fence);
    const once = await credit('a', { wanted: 100 }, first);
    expect(once).toMatchObject({ allowance: 100, available: 900 });
    expect(await credit('a', { wanted: 100 }, first)).toEqual(once);
    expect(await credit('a', { wanted: 50, charged: 20 })).toMatchObject({ allowance: 50, available: 930 });
    expect(await credit('a', { wanted: 100 }, first)).toMatchObject({ allowance: 50, available: 930 });
  });

  test('no two processes hold the same credit, to the last one', async () => {
    const spent = { a: 0, b: 0 };
    let turns = 0;
    for (let idle = 0; idle < 2;) {
      const name = turns++ % 2 === 0 ? 'a' : 'b';
      const { allowance } = await credit(name, { total: 137, charged: spent[name], wanted: 100, needed: 1 });
      idle = allowance === 0 ? idle + 1 : 0;
      spent[name] += allowance;
      await wait(100);
    }
    expect(spent.a + spent.b).toBe(137);
    expect(Math.min(spent.a, spent.b)).toBeGreaterThan(0);
  });

  test('who needs credits has the others give back what they do not need', async () => {
    expect(await credit('a', { wanted: 500, total: 500, needed: 500 })).toMatchObject({ allowance: 500 });
    const short = await credit('b', { total: 500, wanted: 10, needed: 10 });
    expect(short).toMatchObject({ allowance: 0, available: 0, heldByOthers: 500 });
    expect(await credit('a', { total: 500, charged: 100, wanted: 400 })).toMatchObject({ recalled: true });
    expect(await credit('a', { total: 500, charged: 100, wanted: 0 })).toMatchObject({ allowance: 0 });
    expect(await credit('b', { total: 500, wanted: 10, needed: 10 })).toMatchObject({ allowance: 10 });
  });

  test('places for scans are given once, to those that wait longest, and come back when they are given back', async () => {
    expect(await scan('a', { wanted: 3 })).toMatchObject({ held: 3, lifeMs: 5_000, others: false, fair: 4 });
    await wait(10);
    expect(await scan('b', { wanted: 4 })).toMatchObject({ held: 1, fair: 2 });
    await wait(10);
    expect(await scan('a', { kept: 2, wanted: 4 })).toMatchObject({ held: 2, others: true, fair: 2 });
    expect(await scan('b', { kept: 1, wanted: 4 })).toMatchObject({ held: 2, others: true });
    await wait(1_100);
    expect(await scan('b', { kept: 0, wanted: 0 })).toMatchObject({ held: 0, others: false });
    expect(await scan('a', { kept: 2, wanted: 9 })).toMatchObject({ held: 4 });
  });

  test('places of a process that says nothing come back after five seconds', async () => {
    await scan('a', { wanted: 4 });
    await wait(4_999);
    expect(await scan('b', { wanted: 4 })).toMatchObject({ held: 0 });
    await wait(1);
    expect(await scan('b', { wanted: 4 })).toMatchObject({ held: 4 });
    expect(await scan('a', { kept: 1, wanted: 1 })).toMatchObject({ held: 1, others: true });
    expect(await scan('b', { kept: 4, wanted: 4 })).toMatchObject({ held: 4, others: true });
  });

  test('a message about scans that comes twice or late changes nothing', async () => {
    const first = speaker('a', ++seq, fence);
    const once = await scan('a', { wanted: 2 }, first);
    expect(await scan('a', { wanted: 2 }, first)).toEqual(once);
    await scan('a', { kept: 0, wanted: 0 });
    expect(await scan('a', { wanted: 2 }, first)).toMatchObject({ held: 0 });
    expect(await scan('b', { wanted: 4 })).toMatchObject({ held: 4 });
  });

  test('the newer plan and the newer total count, and an older word does not bring them back', async () => {
    await rate('a', { revision: 2, burst: 50, wanted: 0 });
    expect(await rate('b', { revision: 1, burst: 100, wanted: 100 })).toMatchObject({ granted: 50 });
    await credit('a', { revision: 2, total: 30 });
    expect(await credit('b', { revision: 1, total: 1_000 })).toMatchObject({ available: 30 });
  });

  test('a wall clock that steps back an hour neither mints nor freezes', async () => {
    await rate('a', { wanted: 100, rps: 10 });
    await rate('a', { wanted: 0, spent: 100, rps: 10 });
    await wait(-3_600_000);
    expect(await rate('a', { wanted: 100, spent: 100, rps: 10 })).toMatchObject({ granted: 100, spent: 100 });
    await wait(1_000);
    expect(await rate('a', { wanted: 100, spent: 100, rps: 10 })).toMatchObject({ granted: 110 });
  });
});

describe.each(Object.entries(CENTRES).slice(1, 3))('a store over %s that was closed', (_, start) => {
  test('answers that it failed, at once and without rejecting', async () => {
    await using centre = await start();
    const store = await centre.join();
    await store.close();
    expect(await store.rates(speaker('a', 1), [rateAsk(), rateAsk()])).toEqual([
      { kind: 'failed' },
      { kind: 'failed' },
    ]);
    expect(await store.credits(speaker('a', 2), [creditAsk()])).toEqual([{ kind: 'failed' }]);
    await store.close();
  });
  test('has kept everything for the next one', async () => {
    await using centre = await start();
    const store = await centre.join();
    await centre.setClock(1_700_000_000_000);
    await store.credits(speaker('a', 1), [creditAsk({ wanted: 100, needed: 100 })]);
    await store.close();
    const next = await centre.join();
    const [answer] = await next.credits(speaker('b', 1), [creditAsk()]);
    expect(answer).toMatchObject({ grant: { available: 900, heldByOthers: 100 } });
  });
});
