import { beforeEach, describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { atRest } from './gateway-process.ts';
import { shared } from '../started/shared.ts';

// Not a read that identical ones share.
const call = (id: number, method = 'getBlockHeight') => `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`;
const batch = (...ids: readonly number[]) => `[${ids.map((id) => call(id)).join()}]`;
const good = (id: number) => `{"jsonrpc":"2.0","result":${id},"id":${id}}`;
const lost = (id: number) =>
  `{"jsonrpc":"2.0","error":{"code":-503,"message":"No backend available"},"id":${id}}`;
const idOf = ({ text }: RawExchange) => Number(/"id":(\d+)/.exec(text)?.[1]);

/** More than the calls of one batch at a time, fewer than those of two. */
const CONNECTIONS = 12;
const virtual = createVirtualClock();
const backend = shared(startRawBackend(() => undefined));
const gateway = shared(
  await startGateway(
    {
      backends: [{ name: 'a', url: backend.url, max_connections: CONNECTIONS }],
      plans: { scale: { rps: 10_000, burst: 10_000, max_batch: 500 } },
    },
    virtual.clock,
  ),
);
gateway.maintain();
beforeEach(() => virtual.advance(10_000)); // whatever failed before is forgiven

const answer = (exchange: RawExchange) => exchange.send(plain(good(idOf(exchange))));

describe('B8 a call that fails in a way of its own has one error object, and the others their answers', () => {
  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['an error page', ({ send }) => send('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>')],
    ['a reset', ({ reset }) => reset()],
    ['a body cut short', async ({ send, end }) => (await send(plain(good(2)).slice(0, -1)), end())],
    ['what is not HTTP', ({ send }) => send('SSH-2.0-OpenSSH_9.2\r\n\r\n')],
    ['an incomplete object', ({ send }) => send(plain('{"jsonrpc":"2.0","result":[1'))],
  ])('B8 %s', async (_name, script) => {
    backend.script((exchange) => (idOf(exchange) === 2 ? script(exchange) : answer(exchange)));
    const text = await (await gateway.post(batch(1, 2, 3), gateway.key())).text();
    expect(text).toBe(`[${good(1)},${lost(2)},${good(3)}]`);
  });

  test("B8 the backend's own error", async () => {
    const failed =
      '{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid param","data":{"x":18446744073709551615}},"id":2}';
    backend.script((exchange) => (idOf(exchange) === 2 ? exchange.send(plain(failed)) : answer(exchange)));
    const text = await (await gateway.post(batch(1, 2, 3), gateway.key())).text();
    expect(text).toBe(`[${good(1)},${failed},${good(3)}]`);
  });
});

describe('B10 the calls of a batch', () => {
  const many = (calls: number) => batch(...Array.from({ length: calls }, (_, i) => i));

  test('B10 run eight at a time, and another key is answered meanwhile', async () => {
    const held: RawExchange[] = [];
    backend.script((exchange) => (idOf(exchange) === 777 ? answer(exchange) : void held.push(exchange)));
    const busy = gateway.post(many(20), gateway.key());
    while (held.length < 8) await Bun.sleep(1); // awaits their arrival
    expect(await (await gateway.post(call(777), gateway.key())).text()).toBe(good(777));
    expect(await atRest(() => held.length, 20)).toBe(8);
    backend.script(answer);
    for (const exchange of held) await answer(exchange);
    expect(await (await busy).json()).toHaveLength(20);
  });

  test('B10 of batches that fill their backend delay another key by a few calls only', async () => {
    const held: RawExchange[] = [];
    let served = 0;
    let before: number | undefined;
    backend.script((exchange) => {
      if (idOf(exchange) !== 777) return void held.push(exchange);
      before = served;
      return answer(exchange);
    });
    const busy = [gateway.post(many(50), gateway.key()), gateway.post(many(50), gateway.key())];
    while (held.length < CONNECTIONS) await Bun.sleep(1); // awaits their arrival
    const other = gateway.post(call(777), gateway.key());
    while (served < 100) {
      const next = held.shift();
      if (next === undefined) await Bun.sleep(0);
      else {
        served++;
        await answer(next);
        await Bun.sleep(1); // a turn of the loop, so that the next is begun
      }
    }
    expect(await (await other).text()).toBe(good(777));
    for (const each of busy) expect(await (await each).json()).toHaveLength(50);
    expect(before).toBeLessThan(2 * CONNECTIONS);
  });
});

describe('B11 what is no answer to a call is not passed on as one', () => {
  test.each<[string, string]>([
    ['a text', '"ok"'],
    ['a number', '7'],
    ['two objects', `${good(2)}${good(2)}`],
    ['an error page', '<html></html>'],
  ])('B11 %s', async (_name, body) => {
    for (const reply of [plain(body), `${CHUNKED}${chunk(body)}0\r\n\r\n`]) {
      backend.script((exchange) => (idOf(exchange) === 2 ? exchange.send(reply) : answer(exchange)));
      const text = await (await gateway.post(batch(1, 2, 3), gateway.key())).text();
      expect(text).toBe(`[${good(1)},${lost(2)},${good(3)}]`);
    }
  });
});
