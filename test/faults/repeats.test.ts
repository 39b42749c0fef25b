import { describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { callText, errorText, rawPair, resultText } from './pair.ts';

const call = (id: string, params = '["same"]', method = 'getAccountInfo') => callText(id, method, params);
const good = (id: string, value: number) => resultText(value, id);

const { backend, gateway } = await rawPair(
  { plans: { trial: { rps: 1_000, burst: 1_000 } } },
  createVirtualClock().clock, // on which a call is never too late to join another
);

/** Answers each call with the count of calls so far, so that an answer from memory would be an old one. */
function counting() {
  let asked = 0;
  backend.script((exchange) => exchange.send(plain(good(exchange.id, ++asked))));
  return () => asked;
}

const ask = async (body: string, key: string) => (await gateway.post(body, key)).text();

describe('H1 calls that differ in anything are sent separately', () => {
  test.each([
    ['commitment', '["x",{"commitment":"processed"}]', '["x",{"commitment":"finalized"}]'],
    ['minContextSlot', '["x",{"minContextSlot":1}]', '["x",{"minContextSlot":2}]'],
    ['the case of an address', '["abc"]', '["ABC"]'],
  ])('H1 %s', async (_name, one, other) => {
    const key = gateway.key();
    const asked = counting();
    const texts = await Promise.all([ask(call('1', one), key), ask(call('1', other), key)]);
    expect(asked()).toBe(2);
    expect(texts.toSorted()).toEqual([good('1', 1), good('1', 2)]);
  });
});

test('H2 nothing is cached: the same call is sent again, finalized or not', async () => {
  const key = gateway.key();
  const asked = counting();
  for (const params of ['["x"]', '["x",{"commitment":"finalized"}]']) {
    const before = asked();
    expect(await ask(call('1', params), key)).toBe(good('1', before + 1));
    expect(await ask(call('1', params), key)).toBe(good('1', before + 2));
  }
});

describe('H3 a call that failed is sent again', () => {
  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['null', ({ send }) => send(plain(resultText('null')))],
    ['an error', ({ send }) => send(plain(errorText(-32602, 'no', 1)))],
    ['an error page', ({ send }) => send('HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno')],
    [
      'a stream that is cut',
      async ({ send, reset }) => {
        await send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"')}`);
        await Bun.sleep(10); // so that it is read before the end
        reset();
      },
    ],
    ['a long answer', ({ send }) => send(plain(resultText(`"${'a'.repeat(200_000)}"`)))],
  ])('H3 %s', async (_name, script) => {
    const key = gateway.key();
    backend.script(script);
    await ask(call('1'), key).catch(() => undefined);
    backend.script((exchange) => exchange.send(plain(good(exchange.id, 5))));
    expect(await ask(call('1'), key)).toBe(good('1', 5));
  });
});

/** Gives the next call that arrives to the test; those after it, which came too late to join it, are answered with 7. */
async function arrival(): Promise<{ exchange: RawExchange }> {
  const first = Promise.withResolvers<{ exchange: RawExchange }>();
  backend.script((exchange) => {
    first.resolve({ exchange });
    backend.script((own) => own.send(plain(good(own.id, 7))));
  });
  return first.promise;
}

test('H4 of two callers with one identical call at a time each gets its own id, and both pay (§2.3.8)', async () => {
  const [one, other] = [gateway.key('trial', 10), gateway.key('trial', 20)];
  const arrived = arrival();
  const first = gateway.post(call('"one"'), one);
  const { exchange } = await arrived;
  const second = gateway.post(call('2'), other);
  await Bun.sleep(20); // so that it has joined the first
  await exchange.send(plain(good(exchange.id, 7)));
  const answers = await Promise.all([first, second]);
  expect(await Promise.all(answers.map((answer) => answer.text()))).toEqual([good('"one"', 7), good('2', 7)]);
  expect(answers.map((answer) => answer.headers.get('x-credits-left'))).toEqual(['9', '19']);
});

test('H4 the failure of one is not the failure of another that asks the same', async () => {
  const arrived = arrival();
  const first = gateway.post(call('1'), gateway.key());
  const { exchange } = await arrived;
  const second = gateway.post(call('2'), gateway.key());
  await Bun.sleep(20); // so that it has joined the first
  await exchange.send('HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\nno');
  const [failed, served] = await Promise.all([first, second]);
  expect(failed.status).toBe(503);
  expect([served.status, await served.text()]).toEqual([200, good('2', 7)]);
});

test('H5 two accounts with the same id and the same call get the answers to their own', async () => {
  const asked = counting();
  const keys = [gateway.key(), gateway.key(), gateway.key()];
  const texts = await Promise.all(keys.map((key) => ask(call('1', '[]', 'getBlockHeight'), key)));
  expect(asked()).toBe(3);
  expect(texts.toSorted()).toEqual([good('1', 1), good('1', 2), good('1', 3)]);
});

test('H6 the backend gets exactly the call of its caller: no default is added or removed', async () => {
  const texts: string[] = [];
  backend.script((exchange) => {
    texts.push(exchange.text.slice(exchange.text.indexOf('{')));
    return exchange.send(plain(good('1', 1)));
  });
  const key = gateway.key();
  for (const params of ['["x"]', '["x",{}]', '["x",{"commitment":"confirmed"}]']) {
    await ask(call('1', params), key);
    expect(texts.at(-1)?.replace(/"[A-Z2-7]{16}"/, '1')).toBe(call('1', params));
  }
});
