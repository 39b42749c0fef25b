import { beforeEach, describe, expect, test } from 'bun:test';
import { plain, type RawExchange } from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { atRest } from './gateway-process.ts';
import { batchText, callText, echoNumber, numberOf, lostText, rawPair, resultText } from './pair.ts';

const virtual = createVirtualClock();
const plans = { scale: { rps: 10_000, burst: 10_000, max_batch: 500 } };
const { backend, gateway } = await rawPair({ plans }, virtual.clock);
gateway.maintain();
beforeEach(() => virtual.advance(10_000)); // whatever failed before is forgiven

/** The answer to three calls, of which the script answers the second. */
async function answerWith(script: (exchange: RawExchange) => unknown): Promise<string> {
  backend.script((exchange) => (numberOf(exchange) === 2 ? script(exchange) : echoNumber(exchange)));
  return (await gateway.post(batchText(1, 2, 3), gateway.key())).text();
}
const beside = (second: string) => `[${resultText(1, 1)},${second},${resultText(3, 3)}]`;

describe('B8 a call that fails in a way of its own has one error object, and the others their answers', () => {
  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['an error page', ({ send }) => send('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>')],
    ['a reset', ({ reset }) => reset()],
    ['a body cut short', async ({ send, end }) => (await send(plain(resultText(2, 2)).slice(0, -1)), end())],
    ['what is not HTTP', ({ send }) => send('SSH-2.0-OpenSSH_9.2\r\n\r\n')],
    ['an incomplete object', ({ send }) => send(plain('{"jsonrpc":"2.0","result":[1'))],
  ])('B8 %s', async (_name, script) => expect(await answerWith(script)).toBe(beside(lostText(2))));

  test("B8 the backend's own error", async () => {
    const failed = (id: number | string) =>
      `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid param","data":{"x":18446744073709551615}},"id":${id}}`;
    expect(await answerWith(({ send, id }) => send(plain(failed(id))))).toBe(beside(failed(2)));
  });
});

describe('B10 the calls of a batch', () => {
  const many = (calls: number) =>
    `[${Array.from({ length: calls }, (_, i) => callText(i, 'getIdentity', `[${i}]`)).join()}]`;

  test('B10 run eight at a time, but for light reads, and another key is answered at the same time', async () => {
    const held: RawExchange[] = [];
    backend.script((exchange) =>
      numberOf(exchange) === 777 ? echoNumber(exchange) : void held.push(exchange),
    );
    const before = backend.calls();
    const busy = gateway.post(many(20), gateway.key());
    await backend.called(before + 8);
    expect(await (await gateway.post(callText(777), gateway.key())).text()).toBe(resultText(777, 777));
    expect(await atRest(() => held.length, 20)).toBe(8);
    backend.script(echoNumber);
    for (const exchange of held) await echoNumber(exchange);
    expect(await (await busy).json()).toHaveLength(20);
  });
});
