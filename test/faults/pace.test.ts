import { describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { callText, rawPair, resultText } from './pair.ts';

const SCAN = callText(1, 'getProgramAccounts');
const BEGIN = `${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"')}`;
const IDLE_SECONDS = 120;

const virtual = createVirtualClock();
const { backend, gateway } = await rawPair({ gateway: { idle_seconds: IDLE_SECONDS } }, virtual.clock);
gateway.maintain();

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
  await Bun.sleep(1); // a turn of the loop, so that woken code has run
}

describe('A8 there is no limit to the whole of a stream, only to its silence', () => {
  test('A8 a stream of ten minutes that never pauses for the idle limit arrives whole', async () => {
    const { caller, exchange } = await asked(SCAN);
    await exchange.send(BEGIN);
    await caller.until('"result":"');
    for (let minute = 1; minute <= 10; minute++) {
      for (let half = 0; half < 2; half++) await pass(IDLE_SECONDS / 4);
      await exchange.send(chunk(`minute ${minute}.`));
      await caller.until(`minute ${minute}.`);
    }
    await exchange.send(`${chunk('","id":1}')}0\r\n\r\n`);
    expect(await caller.until('0\r\n\r\n')).toEndWith('\r\n7\r\n"id":1}\r\n0\r\n\r\n');
    caller[Symbol.dispose]();
  });
});

describe('A8 a reader that is behind is not a failure of its backend', () => {
  const failures = () => gateway.gateway.status().backends[0]?.recent_failed ?? 0;
  let failedBefore = 0;
  /** A stream whose caller has stopped reading, with all buffers on the way full. */
  async function unread() {
    failedBefore = failures();
    const arrived = Promise.withResolvers<RawExchange>();
    backend.script(arrived.resolve);
    const caller = await openCaller(gateway.url);
    const key = gateway.key('trial', 100);
    caller.send(postText(SCAN.replace('getProgramAccounts', 'getBlock'), key));
    const exchange = await arrived.promise;
    await exchange.send(BEGIN);
    await caller.until('"result":"');
    caller.pause();
    const piece = chunk('x'.repeat(1_000_000));
    let sent = 0;
    const sending = (async () => {
      for (; sent < 60; sent++) await exchange.send(piece);
    })();
    for (let before = -1; before < sent;) {
      before = sent;
      await Bun.sleep(100); // until nothing moves
    }
    expect(sent).toBeLessThan(60);
    void sending;
    return { caller, exchange, key };
  }

  /** What the gateway has counted of it: cuts, failures of the backend, and the credits left after one more call. */
  async function counted(key: string) {
    const cuts = await gateway.metric('streams_cut_total{backend="a",reason="unread"}');
    backend.script((exchange) => exchange.send(plain(resultText(9))));
    const next = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getSlot' }, key);
    return { cuts, failed: failures() - failedBefore, left: next.headers.get('x-credits-left') };
  }

  test('A8 a caller that reads nothing for the idle limit is cut off, and pays (§2.6.2)', async () => {
    const { caller, exchange, key } = await unread();
    let gone = false;
    void exchange.gone.then(() => (gone = true));
    await pass(IDLE_SECONDS - 1);
    expect(gone).toBe(false);
    await pass(1);
    await exchange.gone;
    caller.resume();
    await caller.ended;
    expect(caller.text()).not.toEndWith('0\r\n\r\n');
    expect(await counted(key)).toEqual({ cuts: 1, failed: 0, left: '89' });
  });

  test('A8 a caller that is behind when the backend gives up is cut off, and pays', async () => {
    const { caller, exchange, key } = await unread();
    await pass(10);
    exchange.reset();
    caller.resume();
    await caller.ended;
    expect(await counted(key)).toEqual({ cuts: 2, failed: 0, left: '89' });
  });
});

test('A10 the first bytes of a stream are passed on as they come, even when few come and then none', async () => {
  const { caller, exchange } = await asked(SCAN);
  await exchange.send(BEGIN);
  expect(await caller.until('"result":"')).toEndWith('\r\n1b\r\n{"jsonrpc":"2.0","result":"\r\n');
  await exchange.send(chunk('few'));
  expect(await caller.until('few')).toEndWith('\r\n3\r\nfew\r\n');
  await exchange.send(`${chunk('","id":1}')}0\r\n\r\n`);
  await caller.until('0\r\n\r\n');
  caller[Symbol.dispose]();
});

test('A10 an element that has been answered is passed on while the one behind it is waited for', async () => {
  const arrived: RawExchange[] = [];
  const before = backend.calls();
  backend.script((exchange) => void arrived.push(exchange));
  const caller = await openCaller(gateway.url);
  caller.send(postText(`[${SCAN.replace('getProgramAccounts', 'getSlot')},${SCAN}]`, gateway.key()));
  await backend.called(before + 2);
  const slot = arrived.find(({ text }) => text.includes('getSlot'));
  await slot?.send(plain(resultText(9)));
  await Bun.sleep(20); // so that it has been read
  virtual.advance(50);
  expect(await caller.until('"result":9')).toContain(resultText(9));
  caller.reset();
});
