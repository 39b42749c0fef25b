import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { result, type SeenCall, startBackend, streamed } from '../fakes/backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';

/** The live node has no block and answers block 0 when the test allows it; the archive's blocks are large. */
let live: ReturnType<typeof startBackend>;
let archive: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let first: PromiseWithResolvers<void>;

beforeEach(async () => {
  first = Promise.withResolvers();
  archive = startBackend((call) => streamed(call, 1));
  live = startBackend(async (call) => {
    if (call.method === 'getProgramAccounts') return streamed(call, 1);
    if (call.method !== 'getBlock') return result(call, '7');
    if (slotOf(call) === 0) await first.promise;
    return result(call, 'null');
  });
  const backends = [
    { name: 'live', url: live.url },
    { name: 'archive', url: archive.url, profile: 'superbank', max_connections: 2 },
  ];
  const plans = { scale: { rps: 10_000, burst: 10_000, max_batch: 100, scans: 1 } };
  // Time stands still: what waits for a place that is never given back waits for ever.
  gateway = await startGateway({ backends, plans }, createVirtualClock().clock);
});
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  await live[Symbol.asyncDispose]();
  await archive[Symbol.asyncDispose]();
});

const slotOf = ({ params }: SeenCall) => (Array.isArray(params) ? params[0] : undefined);
const call = (id: number, method: string, ...params: unknown[]) => ({ jsonrpc: '2.0', id, method, params });
const block = (slot: number) => call(slot, 'getBlock', slot);
const asked = (backend: { seen: readonly SeenCall[] }, method: string) =>
  backend.seen.filter((seen) => seen.method === method).length;

/** The ids of a batch's answers that have a result. */
async function answered(calls: readonly unknown[], key = gateway.key()): Promise<number[]> {
  const answers: { id: number; result?: unknown }[] = JSON.parse(
    await (await gateway.post(calls, key)).text(),
  );
  return answers.flatMap(({ id, result: value }) => (value === undefined ? [] : [id]));
}

/** Waits until so many calls have reached the archive. */
async function archived(calls: number): Promise<void> {
  while (archive.seen.length < calls) await Bun.sleep(1);
}

describe('batches whose later answers fill a backend that their first call needs', () => {
  test('are answered when one waits for a place, the other for the permit that the first one holds', async () => {
    const key = gateway.key();
    const scan = (id: number) => call(id, 'getProgramAccounts', 'x');
    const one = answered([block(0), scan(1)], key);
    while (asked(live, 'getProgramAccounts') < 1) await Bun.sleep(1); // the permit is taken
    const other = answered([scan(0), block(1), block(2)], key);
    await archived(2);
    first.resolve();
    expect(await Promise.all([one, other])).toEqual([
      [0, 1],
      [0, 1, 2],
    ]);
  });

  test('are answered: the place of a later block goes to the first; no transaction is sent twice, and small calls once', async () => {
    live.script(async (seen) => {
      if (seen.method === 'sendTransaction') return streamed(seen, 1); // no node's answer is so long
      if (seen.method === 'getBlock' && slotOf(seen) === 0) await first.promise;
      return result(seen, seen.method === 'getBlock' ? 'null' : '7');
    });
    const answers = answered([
      block(0),
      block(1),
      block(2),
      call(3, 'getSlot'),
      call(4, 'sendTransaction', 'x'),
    ]);
    await archived(2);
    first.resolve();
    expect(await answers).toEqual([0, 1, 2, 3, 4]);
    expect(archive.seen.length).toBeLessThanOrEqual(4); // one block was dropped and requested again
    expect([asked(live, 'sendTransaction'), asked(live, 'getSlot')]).toEqual([1, 1]);
  });
});
