import { beforeEach, expect, test } from 'bun:test';
import { CHUNKED, chunk, type RawExchange, type RawScript, startRawBackend } from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { batchText, callText, echoNumber, numberOf, lostText, rawPair, resultText, soFar } from './pair.ts';

const virtual = createVirtualClock();
const { backend, gateway } = await rawPair({}, virtual.clock);
gateway.maintain();
beforeEach(() => virtual.advance(10_000)); // whatever failed before is forgiven

/** A gateway of this clock before raw backends, each with its script and the rest of its row. */
async function startBefore(backends: readonly (readonly [RawScript, object?])[], rows: object = {}) {
  const raw = new DisposableStack();
  const all = backends.map(([script]) => raw.use(startRawBackend(script)));
  const before = all.map(({ url }, i) => ({ name: `b${i}`, url, ...backends[i]?.[1] }));
  const own = await startGateway(
    { backends: before, gateway: { probe_seconds: 60 }, ...rows },
    virtual.clock,
  );
  own.maintain();
  const asyncDispose = async () => {
    await own[Symbol.asyncDispose]();
    raw.dispose();
  };
  /** Resolves when so many calls have come to the first of them, or to any. */
  const called = (calls: number) => all[0]?.called(calls);
  const calledAny = () => Promise.race(all.map((each) => each.called(1)));
  return { ...own, called, calledAny, [Symbol.asyncDispose]: asyncDispose };
}

/** Lets the time pass, and the gateway look at it. */
async function pass(seconds: number): Promise<void> {
  const asleep = virtual.sleeping();
  virtual.advance(1_000 * seconds);
  // Probes are answered in 20 turns of the loop. Woken code has run when it sleeps again; what is over does not.
  for (let turn = 0; turn < 20 || (turn < 100 && virtual.sleeping() < asleep); turn++) await Bun.sleep(1);
}

test('A8 an answer that does not begin in time is a 503 with the id, and the call was sent once, also over a connection used before', async () => {
  backend.script(echoNumber);
  const key = gateway.key();
  await (await gateway.post(callText(1), key)).text();
  const before = backend.calls();
  const arrived = Promise.withResolvers<void>();
  backend.script(() => arrived.resolve());
  const answered = gateway.post(callText(2), key);
  await arrived.promise;
  await pass(9);
  expect(await soFar(answered)).toBeUndefined();
  await pass(1);
  const { status } = await answered;
  expect([status, await (await answered).text()]).toEqual([503, lostText(2)]);
  expect(backend.calls() - before).toBe(1);
});

const SHORT = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 3000\r\n\r\n';
const HELD = [
  ['a short answer that stalls after its first byte', `${SHORT}{`],
  ['an error that does not end', `${CHUNKED}${chunk('{"error":{"message":"')}`],
  ['an answer whose framing does not end', `${CHUNKED}${chunk(resultText(2, 2))}`],
] as const;

test.each(HELD)(
  'A8 %s is none when its first byte would have been due, however it drips',
  async (_name, begin) => {
    const begun = Promise.withResolvers<RawExchange>();
    backend.script(async (exchange) => {
      await exchange.send(begin);
      begun.resolve(exchange);
    });
    const answered = gateway.post(callText(2), gateway.key());
    const exchange = await begun.promise;
    for (let second = 0; second < 9; second++) {
      await pass(1);
      if (begin.startsWith(SHORT)) await exchange.send(' ');
    }
    expect(await soFar(answered)).toBeUndefined();
    await pass(1);
    const { status } = await answered;
    expect([status, await (await answered).text()]).toEqual([503, lostText(2)]);
    await exchange.gone;
  },
);

test('A8 a short answer that stalls is requested from another backend', async () => {
  const begun = Promise.withResolvers<void>();
  let asked = 0;
  const script = async (exchange: RawExchange) => {
    if (asked++ > 0) return echoNumber(exchange);
    await exchange.send(`${SHORT}{`);
    begun.resolve();
  };
  await using pair = await startBefore([[script], [script]]);
  const answered = pair.post(callText(2), pair.key());
  await begun.promise;
  await Bun.sleep(20); // so that the gateway has read what has begun
  await pass(10);
  expect(await (await answered).text()).toBe(resultText(2, 2));
});

test.each([
  ['getBlockHeight', 'light', ['agave', 'agave', 'agave']],
  ['getBlock', 'history', ['agave', 'agave', 'old-faithful', 'old-faithful']],
])(
  'A8 all attempts of %s together have twice the deadline of one, over however many backends and tiers (§2.6.1)',
  async (method, deadline, profiles) => {
    let sent = 0;
    const silent = () => void sent++;
    const backends = profiles.map((profile) => [silent, { profile }] as const);
    await using crew = await startBefore(backends, { deadlines: { [deadline]: 3 } });
    const answered = crew.post({ jsonrpc: '2.0', id: 2, method, params: [5] }, crew.key());
    for (const attempts of [1, 2]) {
      while (sent < attempts) await Bun.sleep(1); // until it has been sent
      expect(await soFar(answered)).toBeUndefined();
      await pass(3);
    }
    expect([(await answered).status, sent]).toEqual([503, 2]);
  },
);

test('A8 an archive gets the call for a block in time when both live nodes hang', async () => {
  const silent = () => undefined;
  const archive = [echoNumber, { profile: 'old-faithful' }] as const;
  await using crew = await startBefore([[silent], [silent], archive], { deadlines: { history: 3 } });
  const answered = crew.post({ jsonrpc: '2.0', id: 2, method: 'getBlock', params: [5] }, crew.key());
  await crew.calledAny();
  await pass(3);
  expect(await (await answered).text()).toBe(resultText(5, 2));
  expect(await crew.metric('first_byte_seconds_sum{class="history"}')).toBe(0);
  expect(await crew.metric('first_byte_seconds_count{class="history"}')).toBe(1);
});

test.each([
  ['getBlockTime', 30, 503],
  ['sendTransaction', 20, 504],
])('A8 the deadline of %s is %d s, however short idle_seconds is', async (method, seconds, code) => {
  const arrived = Promise.withResolvers<RawExchange>();
  const rows = { gateway: { idle_seconds: 1, probe_seconds: 60 } };
  await using brief = await startBefore([[arrived.resolve]], rows);
  const answered = brief.post({ jsonrpc: '2.0', id: 2, method, params: [5] }, brief.key());
  await arrived.promise;
  await pass(seconds - 1);
  expect(await soFar(answered)).toBeUndefined();
  await pass(1);
  expect((await answered).status).toBe(code);
});

test.each<[string, unknown[]]>([
  ['getSignaturesForAddress', ['a', { limit: 5 }]],
  ['getSignatureStatuses', [['a'], { searchTransactionHistory: true }]],
])(
  'A8 %s, whose answer the gateway itself reads, ends a backend that drips at twice the deadline, and is given back',
  async (method, params) => {
    const begun: RawExchange[] = [];
    const dripping: RawScript = async (exchange) => {
      if (!exchange.text.includes(method)) return echoNumber(exchange);
      await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":[')}`);
      begun.push(exchange);
    };
    await using brief = await startBefore([[dripping], [echoNumber, { profile: 'old-faithful' }]], {
      deadlines: { light: 3, history: 3 },
      gateway: { idle_seconds: 8, probe_seconds: 60 },
    });
    const key = brief.key('trial', 100);
    const answered = brief.post({ jsonrpc: '2.0', id: 2, method, params }, key);
    while (begun.length === 0) await Bun.sleep(1); // until it has been sent
    await Bun.sleep(20); // so that the gateway has read what has begun
    for (let second = 0; second < 5; second++) {
      await pass(1);
      await begun[0]?.send(chunk(' '));
    }
    expect(await soFar(answered)).toBeUndefined();
    await pass(1);
    const { status } = await answered;
    expect([status, await (await answered).text()]).toEqual([503, lostText(2)]);
    await begun[0]?.gone;
    expect(await brief.metric('streams_cut_total{backend="b0",reason="stalled"}')).toBe(1);
    expect(brief.gateway.status().backends[0]).toMatchObject({ in_flight: 0, why: 'failing' });
    expect((await brief.post(callText(3), key)).headers.get('x-credits-left')).toBe('99');
  },
);

test('A8 the time that a call waits for a place is part of its deadline', async () => {
  const arrived: RawExchange[] = [];
  const keep = (exchange: RawExchange) => void arrived.push(exchange);
  await using narrow = await startBefore([[keep, { max_connections: 1 }]]);
  const first = narrow.post(callText(1), narrow.key());
  await narrow.called(1);
  const asleep = virtual.sleeping();
  const second = narrow.post(callText(2), narrow.key());
  while (virtual.sleeping() === asleep) await Bun.sleep(1); // until it waits
  await pass(7);
  if (arrived[0] !== undefined) await echoNumber(arrived[0]);
  expect((await first).status).toBe(200);
  await narrow.called(2);
  await pass(2);
  expect(await soFar(second)).toBeUndefined();
  await pass(1);
  expect((await second).status).toBe(503);
});

test.each([
  ['ends', 10, 0],
  ['leaves no time for an answer', 9.9, 1],
])(
  'A8 a call whose wait for a place %s is a 503, is not sent, and keeps no place',
  async (_, seconds, released) => {
    const arrived: RawExchange[] = [];
    const keep = (exchange: RawExchange) => void arrived.push(exchange);
    await using narrow = await startBefore([[keep, { max_connections: 1 }]]);
    const first = narrow.post(callText(1, 'getProgramAccounts', '["x"]'), narrow.key());
    await narrow.called(1);
    const asleep = virtual.sleeping();
    const second = narrow.post(callText(2), narrow.key());
    while (virtual.sleeping() === asleep) await Bun.sleep(1); // until it waits
    await pass(seconds);
    expect(await soFar(second.then(() => 'answered'))).toBe(released === 0 ? 'answered' : undefined);
    if (arrived[0] !== undefined) await echoNumber(arrived[0]);
    expect([(await second).status, await (await second).text()]).toEqual([503, lostText(2)]);
    await (await first).text();
    expect(arrived.length).toBe(1);
    expect(narrow.gateway.status().backends[0]).toMatchObject({ in_flight: 0 });
  },
);

test('B5 a call that is not answered fails alone, at its own deadline; the answers before it are delivered at once, those behind it afterwards', async () => {
  const silent = Promise.withResolvers<void>();
  backend.script((exchange) => (numberOf(exchange) === 2 ? silent.resolve() : echoNumber(exchange)));
  const answered = gateway.post(batchText(1, 2, 3, 4), gateway.key());
  await silent.promise;
  await Bun.sleep(20); // so that the others' answers have been read
  virtual.advance(50);
  const reader = (await answered).body?.getReader();
  let text = '';
  const read = async () => {
    const piece = await reader?.read();
    text += Buffer.from(piece?.value ?? []).toString();
    return piece?.done === false;
  };
  while (!text.includes(resultText(1, 1))) await read();
  const rest = (async () => {
    while (await read());
  })();
  virtual.advance(8_950);
  await Bun.sleep(5); // so that what the gateway may have said has been read
  expect(text).not.toContain('"id":2');
  virtual.advance(1_000);
  await rest;
  const answers = [resultText(1, 1), lostText(2), resultText(3, 3), resultText(4, 4)];
  expect(JSON.parse(text)).toEqual(answers.map((each) => JSON.parse(each)));
});
