import { describe, expect, test } from 'bun:test';
import { createCallPermits } from '../../../gateway/limits/calls.ts';
import { createScanPermits, Scans } from '../../../gateway/limits/scans.ts';

const never = new AbortController().signal;
const turn = () => new Promise(setImmediate);

describe.each(['calls', 'scans'])('%s of one account', (kind) => {
  /** One permit, and who has had it so far. */
  function waiting() {
    const calls = createCallPermits();
    const scans = createScanPermits(new Map(), (id, max) => new Scans(id, max));
    calls.take(1, 1);
    const batch = calls.ofBatch(1, 1);
    const order: string[] = [];
    const give = new Map<string, () => void>();
    return {
      order,
      size: () => (kind === 'calls' ? (batch.sent(), calls.size()) : scans.size()),
      async take(name: string, signal = never) {
        if (kind === 'scans') give.set(name, await scans.take(1, 1, signal));
        else give.set(name, (await batch.wait(signal)) ? batch.done : () => undefined);
        order.push(name);
      },
      async giveBack(name: string) {
        give.get(name)?.();
        await turn();
      },
      /** Whether a request that comes now would find a permit. */
      isFree: () => kind === 'calls' && calls.take(1, 1),
    };
  }

  test('go on in their order, before what comes later; who leaves holds nothing, and at rest nothing is remembered', async () => {
    const { order, size, take, giveBack, isFree } = waiting();
    const caller = new AbortController();
    void take('a');
    void take('left', caller.signal);
    for (const name of ['b', 'c']) void take(name);
    caller.abort();
    void take('gone', AbortSignal.abort());
    await turn();
    expect(order.toSorted()).toEqual(['a', 'gone', 'left']);
    for (const name of ['left', 'gone']) await giveBack(name);
    expect(order).toHaveLength(3);
    await giveBack('a');
    expect([order.slice(3), isFree()]).toEqual([['b'], false]);
    for (const name of ['b', 'c']) await giveBack(name);
    expect([order.slice(3), size()]).toEqual([['b', 'c'], 0]);
  });
});

test('a permit of a scan that is given back twice counts once', async () => {
  const permits = createScanPermits(new Map(), (id, max) => new Scans(id, max));
  const giveBack = await permits.take(1, 2, never);
  await permits.take(1, 2, never);
  for (let i = 0; i < 2; i++) giveBack();
  expect(permits.take(1, 2, never)).toBeInstanceOf(Function);
  expect(permits.take(1, 2, never)).toBeInstanceOf(Promise);
});
