import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';

const SCAN = '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts"}';
const IDLE_SECONDS = 120;

const virtual = createVirtualClock();
const stop = new AbortController();
let backend: ReturnType<typeof startRawBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  backend = startRawBackend(() => undefined);
  gateway = await startGateway(
    { backends: [{ name: 'a', url: backend.url }], gateway: { idle_seconds: IDLE_SECONDS } },
    virtual.clock,
  );
  void gateway.gateway.runMaintenance(() => undefined, stop.signal);
});
afterAll(async () => {
  stop.abort();
  await gateway[Symbol.asyncDispose]();
  backend[Symbol.dispose]();
});

/** Asks `body`; gives the caller and its backend's side of the exchange. */
async function asked(body: string) {
  const arrived = Promise.withResolvers<RawExchange>();
  backend.script(arrived.resolve);
  const caller = await openCaller(gateway.url);
  caller.send(postText(body, gateway.key()));
  return { caller, exchange: await arrived.promise };
}

/** Lets the time pass, and the gateway look at it. */
async function pass(seconds: number): Promise<void> {
  virtual.advance(1_000 * seconds);
  await Bun.sleep(1); // a turn of the loop, so that whoever slept has acted
}

describe('A8 there is no limit to the whole of a stream, only to its silence', () => {
  test('A8 a stream of ten minutes that never pauses for the idle limit arrives whole', async () => {
    const { caller, exchange } = await asked(SCAN);
    await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"')}`);
    await caller.until('"result":"');
    for (let minute = 1; minute <= 10; minute++) {
      for (let half = 0; half < 2; half++) await pass(IDLE_SECONDS / 4);
      await exchange.send(chunk(`minute ${minute}.`));
      await caller.until(`minute ${minute}.`);
    }
    await exchange.send(`${chunk('","id":1}')}0\r\n\r\n`);
    expect(await caller.until('0\r\n\r\n')).toEndWith('","id":1}\r\n0\r\n\r\n');
    caller[Symbol.dispose]();
  });

  test('A8 a stream that is silent for the idle limit is cut, and not a second before', async () => {
    const { caller, exchange } = await asked(SCAN);
    await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"')}`);
    await caller.until('"result":"');
    await pass(IDLE_SECONDS - 1);
    await exchange.send(chunk('late, but there'));
    await caller.until('late, but there');
    let gone = false;
    void exchange.gone.then(() => (gone = true));
    await pass(IDLE_SECONDS - 1);
    expect(gone).toBe(false);
    await pass(1);
    await caller.ended;
    expect(caller.text()).not.toContain('0\r\n\r\n');
    await exchange.gone;
  });
});

test('A10 the first bytes of a stream are passed on as they come, even when few come and then none', async () => {
  const { caller, exchange } = await asked(SCAN);
  await exchange.send(`${CHUNKED}${chunk('{"js')}`);
  expect(await caller.until('{"js')).toEndWith('\r\n4\r\n{"js\r\n');
  await exchange.send(chunk('onrpc":'));
  expect(await caller.until('onrpc":')).toEndWith('\r\n7\r\nonrpc":\r\n');
  await exchange.send(`${chunk('"2.0","result":1,"id":1}')}0\r\n\r\n`);
  await caller.until('0\r\n\r\n');
  caller[Symbol.dispose]();
});

test('A10 an element that has been answered is passed on while the one behind it is waited for', async () => {
  const arrived: RawExchange[] = [];
  backend.script((exchange) => void arrived.push(exchange));
  const caller = await openCaller(gateway.url);
  caller.send(postText(`[${SCAN.replace('getProgramAccounts', 'getSlot')},${SCAN}]`, gateway.key()));
  while (arrived.length < 2) await Bun.sleep(1); // awaits both calls' arrival
  const slot = arrived.find(({ text }) => text.includes('getSlot'));
  await slot?.send(plain('{"jsonrpc":"2.0","result":9,"id":1}'));
  await Bun.sleep(20); // so that it has been read
  virtual.advance(50);
  expect(await caller.until('"result":9')).toContain('{"jsonrpc":"2.0","result":9,"id":1}');
  caller.reset();
});
