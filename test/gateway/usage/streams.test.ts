import { describe, expect, test } from 'bun:test';
import {
  CHUNKED,
  chunk,
  ECHOED_ID,
  plain,
  type RawScript,
  startRawBackend,
  echoing,
} from '../../fakes/raw-backend.ts';
import { openCaller, postText } from '../../fakes/raw-caller.ts';
import { startGateway } from '../../started/gateway.ts';
import { counted, countedOf, timedOf } from './counted.ts';
import { shared } from '../../started/shared.ts';

const SCAN = '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts"}';
const SLOT = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}';
/** Longer than what is held, so that it is streamed, and in pieces of odd lengths. */
const LONG = `{"jsonrpc":"2.0","result":"${'x'.repeat(300_001)}","id":1}`;
const SMALL = '{"jsonrpc":"2.0","result":7,"id":1}';

const backend = shared(startRawBackend(() => undefined));
const gateway = shared(
  await startGateway({
    backends: [{ name: 'a', url: backend.url }],
    plans: { trial: { rps: 1_000, burst: 1_000, scans: 100 } },
  }),
);

/** The text in chunks of `bytes`, and the end unless it is `cut`. */
const inChunks =
  (answer: string, bytes: number, cut = false): RawScript =>
  async (exchange) => {
    const text = echoing(answer).replace(ECHOED_ID, exchange.id);
    await exchange.send(CHUNKED);
    for (let from = 0; from < text.length; from += bytes)
      await exchange.send(chunk(text.slice(from, from + bytes)));
    if (cut) exchange.end();
    else await exchange.send('0\r\n\r\n');
  };

/** Waits for what the gateway learns of a scan's end after its caller did; the test's own timeout bounds it. */
async function expectScan(key: string, expected: Parameters<typeof counted>[0]): Promise<void> {
  const isSo = () =>
    Bun.deepEquals(countedOf(gateway, key), { getProgramAccounts: counted({ calls: 1, ...expected }) });
  while (!isSo()) await new Promise(setImmediate);
}

describe('D6 the bytes of a stream are the sum of its pieces', () => {
  test.each([
    ['in chunks', inChunks(LONG, 9_999)],
    ['with a Content-Length', (exchange) => exchange.send(plain(LONG))],
  ] satisfies [string, RawScript][])('%s', async (_name, script) => {
    const key = gateway.key();
    backend.script(script);
    const text = await (await gateway.post(SCAN, key)).text();
    expect(text).toBe(LONG);
    await expectScan(key, { credits: 50, bytes: LONG.length });
    expect(timedOf(gateway, key)).toBe(1);
  });

  test('as lines, of the lines', async () => {
    const accounts = Array.from({ length: 2_000 }, (_, i) => `{"pubkey":"${i}${'y'.repeat(50)}"}`);
    const answer = `{"jsonrpc":"2.0","result":[${accounts.join(',')}],"id":1}`;
    const key = gateway.key();
    backend.script(inChunks(answer, 30_000));
    const response = await gateway.post(SCAN, key, { headers: { accept: 'application/x-ndjson' } });
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = await response.text();
    expect(countedOf(gateway, key)['getProgramAccounts']?.bytes).toBe(lines.length);
  });

  test('in a batch, of each answer; its brackets and commas belong to no call', async () => {
    const key = gateway.key('trial', 1_000);
    backend.script((exchange) =>
      exchange.text.includes('getSlot') ? exchange.send(plain(SMALL)) : inChunks(LONG, 50_000)(exchange),
    );
    const text = await (await gateway.post(`[${SLOT},${SCAN},${SLOT}]`, key)).text();
    const { getSlot, getProgramAccounts } = countedOf(gateway, key);
    expect([getSlot?.bytes, getProgramAccounts?.bytes]).toEqual([70, LONG.length]);
    expect(timedOf(gateway, key)).toBe(3);
    expect(text.length).toBe(70 + LONG.length + '[,,]'.length);
  });
});

describe.each(['trial', 'scale'])('on plan %s', (plan) => {
  test('D3 a caller that leaves in the middle of a stream has paid, and what was sent is counted', async () => {
    const key = gateway.key(plan, 1_000);
    const gone = Promise.withResolvers<void>();
    backend.script(async (exchange) => {
      void exchange.gone.then(gone.resolve);
      await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"aaaa')}`);
    });
    const caller = await openCaller(gateway.url);
    caller.send(postText(SCAN, key));
    await caller.until('aaaa');
    caller.reset();
    await gone.promise;
    await expectScan(key, { credits: 50, bytes: '{"jsonrpc":"2.0","result":"aaaa'.length });
  });

  test('D4 a caller that closes right after the last byte has had a whole answer', async () => {
    const key = gateway.key(plan, 1_000);
    backend.script(inChunks(LONG, 20_000));
    const caller = await openCaller(gateway.url);
    caller.onData((bytes) => {
      if (bytes.includes('"id":1}')) caller.reset();
    });
    caller.send(postText(SCAN, key));
    await caller.ended;
    await expectScan(key, { credits: 50, bytes: LONG.length });
  });
});

test('an error that is streamed is an error', async () => {
  const key = gateway.key();
  const error = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"${'y'.repeat(100_000)}"},"id":1}`;
  backend.script(inChunks(error, 50_000));
  expect(await (await gateway.post(SCAN, key)).text()).toBe(error);
  await expectScan(key, { credits: 50, errors: 1, bytes: error.length });
});
