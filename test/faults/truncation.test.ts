import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  CHUNKED,
  chunk,
  ECHOED_ID,
  plain,
  type RawExchange,
  type RawScript,
  startRawBackend,
} from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { rawPair, resultText } from './pair.ts';

// What takes seconds here takes longer beside other work.
setDefaultTimeout(30_000);

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
const BEGIN = `{"jsonrpc":"2.0","result":"${'x'.repeat(100_000)}`;
const END = `","id":${ECHOED_ID}}`;

const { backend, gateway } = await rawPair({
  gateway: { idle_seconds: 2 },
  plans: { trial: { rps: 1_000, burst: 1_000 } },
});
gateway.maintain();

const LENGTH = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${BEGIN.length + END.length}\r\n\r\n`;

/** Sends texts as pieces that arrive one by one. */
async function inTurn(exchange: RawExchange, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) {
    await exchange.send(text);
    await Bun.sleep(10); // so that the next one is read by itself
  }
}

/** Sends a text and ends the connection. */
const ending =
  (text: string, end: 'end' | 'reset' = 'end'): RawScript =>
  async (exchange) => {
    await exchange.send(text);
    exchange[end]();
  };

const PAGE = `${chunk('<html>')}0\r\n\r\n`;

/** Ways in which an answer breaks after its first byte, with what the metric calls them. */
const CUTS: readonly (readonly [string, string, RawScript])[] = [
  ['A6 a reset', 'closed', ending(`${LENGTH}${BEGIN}`, 'reset')],
  [
    'A6 an end short of its Content-Length by one byte',
    'closed',
    ending(`${LENGTH}${BEGIN}${END.slice(0, -1)}`),
  ],
  ['A6 a chunked body without its last chunk', 'closed', ending(`${CHUNKED}${chunk(BEGIN)}${chunk(END)}`)],
  [
    'A7 a clean end in the middle of its JSON',
    'bad-json',
    (exchange) => inTurn(exchange, `${CHUNKED}${chunk(BEGIN)}`, '0\r\n\r\n'),
  ],
  [
    'A7 an error page in the middle of its JSON',
    'bad-json',
    (exchange) => inTurn(exchange, `${CHUNKED}${chunk('{"jsonrpc":"2.0","result":[')}`, PAGE),
  ],
  [
    'A6 the end of a connection that alone defines the length',
    'bad-json',
    ending(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n${BEGIN}`),
  ],
  ['A8 a stall', 'stalled', (exchange) => exchange.send(`${CHUNKED}${chunk(BEGIN)}`)],
];

describe('a cut stream looks cut, is counted, and is not paid for (§2.2.2, §2.4.3)', () => {
  test.each(CUTS)('%s', async (_name, reason, script) => {
    const key = gateway.key('trial', 10);
    const cuts = () => gateway.metric(`streams_cut_total{backend="a",reason="${reason}"}`);
    for (const body of [CALL, [CALL, CALL]]) {
      const before = await cuts();
      backend.script(script);
      const answer = await gateway.post(body, key);
      expect(answer.status).toBe(200);
      await expect(answer.text()).rejects.toThrow();
      expect(await cuts()).toBeGreaterThan(before);
    }
    backend.script((exchange) => exchange.send(`${LENGTH}${BEGIN}${END}`));
    const whole = await gateway.post(CALL, key);
    expect((await whole.text()).length).toBe(BEGIN.length + END.length - ECHOED_ID.length + 1);
    expect(gateway.spent(key)).toBe(1);
  });
});

test('A7 a backend that broke off comes last for a moment', async () => {
  const asked: string[] = [];
  const script =
    (name: string): RawScript =>
    (exchange) =>
      asked.push(name) === 1
        ? inTurn(exchange, `${CHUNKED}${chunk(BEGIN)}`, '0\r\n\r\n')
        : exchange.send(`${LENGTH}${BEGIN}${END}`);
  using one = startRawBackend(script('one'));
  using two = startRawBackend(script('two'));
  await using pair = await startGateway({
    backends: [
      { name: 'one', url: one.url },
      { name: 'two', url: two.url },
    ],
  });
  const key = pair.key();
  await expect((await pair.post(CALL, key)).text()).rejects.toThrow();
  for (let i = 0; i < 3; i++) expect((await pair.post(CALL, key)).status).toBe(200);
  const [first, ...others] = asked;
  expect(others).toEqual(Array(3).fill(first === 'one' ? 'two' : 'one'));
});

/** A gateway on a clock that stands still, with a call at its backend. */
async function startUnderWay(gatewayRows: object) {
  const { clock, advance } = createVirtualClock();
  const arrived = Promise.withResolvers<RawExchange>();
  const raw = startRawBackend(arrived.resolve);
  const rows = { backends: [{ name: 'a', url: raw.url }], gateway: { ...gatewayRows, probe_seconds: 60 } };
  const own = await startGateway(rows, clock);
  own.maintain();
  const key = own.key('trial', 100);
  const answer = own.post({ ...CALL, params: ['x'] }, key);
  return {
    advance,
    key,
    answer,
    gateway: own,
    backend: raw,
    exchange: await arrived.promise,
    async [Symbol.asyncDispose]() {
      await own[Symbol.asyncDispose]();
      raw[Symbol.dispose]();
    },
  };
}

test('A8 a stream is cut for its silence at idle_seconds, and not before (§2.6.2)', async () => {
  await using stalls = await startUnderWay({ idle_seconds: 8 });
  const { exchange, advance } = stalls;
  await exchange.send(`${CHUNKED}${chunk(BEGIN)}`);
  const answer = await stalls.answer;
  const text = answer.text().catch(() => 'cut');
  advance(7_300);
  await Bun.sleep(20); // a turn of the loop, so that the gateway has looked
  await exchange.send(chunk('late, but there'));
  await Bun.sleep(20); // so that it has been read
  advance(7_900);
  expect(await Promise.race([text, Bun.sleep(20)])).toBeUndefined();
  advance(250);
  expect(await text).toBe('cut');
  expect(await stalls.gateway.metric('streams_cut_total{backend="a",reason="stalled"}')).toBe(1);
  stalls.backend.script((next) => next.send(plain(resultText(9))));
  const next = await stalls.gateway.post(CALL, stalls.key);
  expect(next.headers.get('x-credits-left')).toBe('99');
});
