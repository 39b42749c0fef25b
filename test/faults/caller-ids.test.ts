import { expect, test } from 'bun:test';
import { type RawExchange, CHUNKED, chunk, ECHOED_ID, framed, plain } from '../fakes/raw-backend.ts';
import { callText, rawPair, resultText } from './pair.ts';

const { backend, gateway } = await rawPair({ plans: { scale: { rps: 1e6, burst: 1e6, max_batch: 100 } } });
const key = gateway.key('scale');

const IDS = [
  '"id"',
  '"\\u0069d"',
  'null',
  '0',
  '18446744073709551615',
  '""',
  '"\\"id\\":\\"id\\"}"',
  '"]}"',
  '"result"',
  '"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":"',
  '"\\/\\b\\f\\n\\r\\t\\\\\\ud800"',
  `"${'\\"id\\":'.repeat(6_000)}"`,
];
const LONG = `["id",{"id":"id"},"${'x'.repeat(100_000)}","id"]`;
const RESULTS = [
  '"id"',
  '{"id":"ABCDEFGHIJKLMNOP"}',
  '"\\"id\\":\\"ABCDEFGHIJKLMNOP\\"}"',
  '["id"]',
  'null',
  LONG,
];

const inChunks =
  (text: string) =>
  ({ send }: RawExchange) =>
    send(`${CHUNKED}${chunk(text)}0\r\n\r\n`);
const untilClose =
  (text: string) =>
  async ({ send, end }: RawExchange) => {
    await send(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n${text}`);
    end();
  };
/** In two pieces, the first of which ends within the id. */
const inPieces = (text: string) => async (exchange: RawExchange) => {
  const all = plain(text).replace(ECHOED_ID, exchange.id);
  const cut = all.lastIndexOf(exchange.id) + 9;
  await exchange.send(all.slice(0, cut));
  await Bun.sleep(5); // so that it is read by itself
  await exchange.send(all.slice(cut));
};

test('B12 no id of a caller and no data mark a backend or break an answer, alone, in a batch and as lines, however it comes (§2.2.3)', async () => {
  const before = gateway.gateway.status().backends[0]?.recent_failed;
  for (const result of RESULTS)
    for (const how of [
      (text: string) =>
        ({ send }: RawExchange) =>
          send(plain(text)),
      inChunks,
      untilClose,
      inPieces,
    ]) {
      backend.script(how(resultText(result, ECHOED_ID)));
      for (const [method, id] of IDS.map(
        (each, i) => [['getBlock', 'getAccountInfo'][i % 2], each] as const,
      )) {
        const text = await (await gateway.post(callText(id, method, '["x"]'), key)).text();
        expect([id.slice(0, 40), text === resultText(result, id)]).toEqual([id.slice(0, 40), true]);
      }
      const batch = await gateway.post(`[${IDS.map((id) => callText(id, 'getBlock', '["x"]')).join()}]`, key);
      expect((await batch.text()) === `[${IDS.map((id) => resultText(result, id)).join()}]`).toBe(true);
    }
  backend.script(inPieces(resultText('[{"pubkey":"id"},{"id":"id"}]', ECHOED_ID)));
  for (const id of IDS) {
    const headers = { accept: 'application/x-ndjson' };
    const lines = await gateway.post(callText(id, 'getProgramAccounts', '["x"]'), key, { headers });
    expect(await lines.text()).toBe('{"pubkey":"id"}\n{"id":"id"}\n{"accounts":2,"slot":null}\n');
  }
  expect(gateway.gateway.status().backends[0]?.recent_failed).toBe(before ?? 0);
}, 30_000);

test('B12 a late answer to another account that used the same id is not passed on', async () => {
  const sent: string[] = [];
  backend.script((exchange) => {
    sent.push(exchange.id);
    const late = sent.at(-2) ?? exchange.id;
    return exchange.send(plain(resultText(`"for ${sent.length - (late === exchange.id ? 0 : 1)}"`, late)));
  });
  const [one, other] = [gateway.key('scale'), gateway.key('scale')];
  const post = async (own: string) =>
    (await gateway.post(callText(1, 'getTransaction', '["x"]'), own)).text();
  expect(await post(one)).toBe(resultText('"for 1"'));
  expect(await post(other)).not.toContain('for 1');
  expect(new Set(sent).size).toBe(sent.length);
});

const OTHER = framed(resultText('"other"', '"ABCDEFGHIJKLMNOP"'));
const OTHERS_ERROR = '{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"},"id":"ABCDEFGHIJKLMNOP"}';

test.each([
  ['an answer', 'getAccountInfo', OTHER],
  ['an answer', 'getTransaction', OTHER],
  ['an answer', 'sendTransaction', OTHER],
  ['an error by HTTP 429', 'getAccountInfo', framed(OTHERS_ERROR).replace('200 OK', '429 No')],
  ['an error by HTTP 503', 'sendTransaction', framed(OTHERS_ERROR).replace('200 OK', '503 No')],
  ['a batch', 'getTransaction', framed(`[${OTHERS_ERROR}]`)],
  ['a page', 'getTransaction', framed('<html>').replace('application/json', 'text/html')],
])(
  'B12 behind %s to another call, %s gets no late error without an id over that connection',
  async (_name, method, answer) => {
    let calls = 0;
    let first: unknown;
    backend.script(async ({ send, gone }) => {
      if (calls++ === 0) first = gone;
      else return gone === first ? undefined : send(plain(resultText('"own"', ECHOED_ID)));
      await send(answer);
      await Bun.sleep(20); // until another call may have taken the connection
      await send(framed('{"jsonrpc":"2.0","error":{"code":-32602,"message":"late"},"id":null}'));
    });
    await (await gateway.post(callText(1, method, '["before"]'), key)).text();
    const text = await (await gateway.post(callText(2, method, '["behind"]'), gateway.key('scale'))).text();
    expect(text).not.toContain('late');
    expect(calls).toBeGreaterThan(1);
  },
);
