import { expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { startGateway } from '../started/gateway.ts';
import { shared } from '../started/shared.ts';
import { errorText, resultText } from './pair.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getSlot' };
const GOOD = resultText('"from another"');
const behind = (message: string) => errorText(-32005, message, 1);

/** The first backend that gets a call does `first`, the other answers. */
let first: (exchange: RawExchange) => unknown;
let asked = 0;
const script = (exchange: RawExchange) => (asked++ === 0 ? first(exchange) : exchange.send(plain(GOOD)));
const backends = [1, 2].map(() => shared(startRawBackend(script)));
const gateway = shared(
  await startGateway({ backends: backends.map(({ url }, i) => ({ name: `b${i}`, url })) }),
);

/** Asks with the first backend doing `does`; gives the text and how many backends were asked. */
async function answered(does: typeof first, body: unknown = CALL) {
  first = does;
  asked = 0;
  const answer = await gateway.post(body, gateway.key());
  return { status: answer.status, text: await answer.text(), asked };
}

/** Sends a text so that its first part has been read before the second comes. */
const inTwo =
  (text: string, at: number): typeof first =>
  async (exchange) => {
    await exchange.send(`${CHUNKED}${chunk(text.slice(0, at))}`);
    await Bun.sleep(20); // so that the first part is read by itself
    await exchange.send(`${chunk(text.slice(at))}0\r\n\r\n`);
  };

test('A9 an error that another backend may mend is not passed on while no byte has left', async () => {
  for (const does of [
    (exchange: RawExchange) => exchange.send(plain(behind('Node is behind'))),
    (exchange: RawExchange) => exchange.send(`${CHUNKED}${chunk(behind('Node is behind'))}0\r\n\r\n`),
  ])
    expect(await answered(does)).toEqual({ status: 200, text: GOOD, asked: 2 });
});

// Longer than what one read of a socket gives: what has come whole before a byte of it left may be asked for elsewhere.
const LONG = 2_000_000;

test.each([
  ['is longer than what is held', behind('x'.repeat(LONG))],
  [
    'stands behind a result that is null',
    `{"jsonrpc":"2.0","result":null,"error":{"code":-32602,"message":"${'y'.repeat(LONG)}"},"id":1}`,
  ],
])('A9 an error that %s is the answer, byte for byte', async (_name, text) => {
  expect(await answered((exchange) => exchange.send(plain(text)))).toEqual({ status: 200, text, asked: 1 });
});

/** The end of the framing comes by itself, as it does when a server ends an answer after writing it. */
const endApart =
  (text: string): typeof first =>
  async (exchange) => {
    await exchange.send(`${CHUNKED}${chunk(text)}`);
    await Bun.sleep(20); // so that the text is read by itself
    await exchange.send('0\r\n\r\n');
  };

test.each([1, 17, 20, 27, 40, 70])(
  'A9 an error that comes in pieces, %d bytes first, is none yet',
  async (at) => {
    expect(await answered(inTwo(behind('Node is behind'), at))).toEqual({
      status: 200,
      text: GOOD,
      asked: 2,
    });
  },
);

test.each([
  ['getSlot', behind('Node is behind')],
  ['getSlot', errorText(429, 'slow down', 1)],
  ['sendTransaction', behind('Node is behind')],
])('A9 an error of %s whose framing ends later is recognized: %s', async (method, text) => {
  const does = endApart(text);
  expect(await answered(does, { ...CALL, method })).toEqual({ status: 200, text: GOOD, asked: 2 });
});

test('A9 a null whose framing ends later is recognized, and an archive gets the call', async () => {
  using node = startRawBackend(endApart(resultText('null')));
  using archive = startRawBackend((exchange) => exchange.send(plain(GOOD)));
  await using tiers = await startGateway({
    backends: [
      { name: 'node', url: node.url },
      { name: 'archive', url: archive.url, profile: 'superbank' },
    ],
  });
  const asks = await tiers.post({ ...CALL, method: 'getTransaction', params: ['a'] }, tiers.key());
  expect([await asks.text(), archive.calls()]).toEqual([GOOD, 1]);
});

test('A9 a page of a length that says it is JSON is no answer, alone or in a batch', async () => {
  const page = (exchange: RawExchange) => exchange.send(plain(`<html>${'x'.repeat(70_000)}`));
  expect(await answered(page)).toEqual({ status: 200, text: GOOD, asked: 2 });
  expect(await answered(page, [CALL, CALL])).toEqual({ status: 200, text: `[${GOOD},${GOOD}]`, asked: 3 });
});

test('A9 a result whose text contains an error is a result', async () => {
  const text = resultText('"\\"error\\":{\\"code\\":-32005}"');
  expect(await answered((exchange) => exchange.send(plain(text)))).toEqual({ status: 200, text, asked: 1 });
});
