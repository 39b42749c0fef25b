import { beforeEach, expect, test } from 'bun:test';
import { streamed } from '../fakes/backend.ts';
import { errorText, pair } from './pair.ts';

const SCAN = { jsonrpc: '2.0', id: 1, method: 'getProgramAccounts' };

const { backend, gateway } = await pair({ plans: { one: { rps: 1_000, burst: 1_000, scans: 1 } } });
beforeEach(() => backend.script((seen) => streamed(seen, 8)));

test('G9 a permit is held to the last byte: the next scan begins when the answer before it has been read (§2.4.5)', async () => {
  const key = gateway.key('one');
  const before = backend.seen.length;
  const gate = Promise.withResolvers<void>();
  backend.script((seen) => streamed(seen, 8, async (written) => (written === 4 ? gate.promise : undefined)));
  const first = await gateway.post(SCAN, key);
  const second = gateway.post(SCAN, key);
  const other = await gateway.post({ ...SCAN, method: 'getSlot' }, key);
  expect(other.status).toBe(200);
  await other.body?.cancel();
  expect(backend.seen.length).toBe(before + 2);
  gate.resolve();
  await first.text();
  expect((await (await second).text()).length).toBeGreaterThan(8 << 20);
  expect(backend.seen.length).toBe(before + 3);
});

test('with as many waiting as may wait, a further scan is 429 and takes nothing (§2.5 429)', async () => {
  const key = gateway.key('one');
  const before = backend.seen.length;
  const gate = Promise.withResolvers<void>();
  backend.script(async (seen) => {
    await gate.promise;
    return streamed(seen, 1);
  });
  const running = [1, 2, 3].map(() => gateway.post(SCAN, key));
  await backend.called(before + 1);
  // The three are in: one runs, two wait. They came over the same loop turn before any of these.
  let refused: Response | undefined;
  for (let i = 0; i < 20 && refused?.status !== 429; i++)
    refused = await gateway.post([SCAN, { ...SCAN, id: 'b' }], key);
  expect(refused?.status).toBe(429);
  expect(refused?.headers.get('retry-after')).toBe('1');
  const errors = [1, '"b"'].map((id) => errorText(-429, 'Rate limit exceeded: at most 1 scans at once', id));
  expect(await refused?.text()).toBe(`[${errors.join()}]`);
  gate.resolve();
  for (const answer of await Promise.all(running))
    expect((await answer.text()).length).toBeGreaterThan(1 << 20);
});

test('G9 a batch of more scans than permits is answered whole, one after the other', async () => {
  const key = gateway.key('one');
  let under = 0;
  let most = 0;
  backend.script((seen) => {
    if (seen.method !== SCAN.method) return undefined;
    most = Math.max(most, ++under);
    return streamed(seen, 2, (written) => void (written === 1 && under--));
  });
  const answer = await gateway.post(
    [SCAN, { ...SCAN, id: 2 }, { ...SCAN, id: 3, method: 'getSlot' }, { ...SCAN, id: 4 }],
    key,
  );
  expect(JSON.parse(await answer.text()).map(({ id }: { id: number }) => id)).toEqual([1, 2, 3, 4]);
  expect(most).toBe(1);
});

test('G9 a caller who leaves a scan gives its permit back', async () => {
  const key = gateway.key('one');
  for (let i = 0; i < 5; i++) {
    const leave = new AbortController();
    const answer = await gateway.post(SCAN, key, { signal: leave.signal });
    await answer.body?.getReader().read();
    leave.abort();
  }
  const last = await gateway.post(SCAN, key);
  expect((await last.text()).length).toBeGreaterThan(8 << 20);
});
