import { beforeEach, describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { divided } from '../../gateway/upstream/batched-reads.ts';
import { CHUNKED, framedChunk, plain, type RawExchange } from '../fakes/raw-backend.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { batchText, echoNumber, errorText, lostText, rawPair, resultText } from './pair.ts';

const virtual = createVirtualClock();
const plans = { scale: { rps: 10_000, burst: 10_000, max_batch: 500 } };
const { backend, gateway } = await rawPair({ plans }, virtual.clock);
gateway.maintain();
/** How many reads each exchange with the backend had, in order. */
const sizes: number[] = [];
beforeEach(() => {
  virtual.advance(700_000.5); // whatever failed before is forgiven, and batches are tried again
  sizes.length = 0;
});

type Part = Readonly<{ id: string; number: number }>;

/** The reads of a request, by the parameters and the ids that the gateway gave them. */
const readsIn = ({ text }: RawExchange): readonly Part[] =>
  [...text.matchAll(/"id":("[A-Z2-7]{16}"),"method":"getBlockHeight","params":\[(\d+)\]/g)].map(
    ([, id = '', n]) => ({
      id,
      number: Number(n),
    }),
  );
const isBatch = ({ text }: RawExchange) => text.includes('\r\n\r\n[');
const answerTo = ({ id, number }: Part) => resultText(number, id);

/** Answers batches by a script, and single reads with their number. */
function batches(script: (exchange: RawExchange, reads: readonly Part[]) => unknown): void {
  backend.script((exchange) => {
    const reads = readsIn(exchange);
    sizes.push(reads.length);
    return isBatch(exchange) ? script(exchange, reads) : echoNumber(exchange);
  });
}
const honest = (exchange: RawExchange, reads: readonly Part[]) =>
  exchange.send(plain(`[${reads.map(answerTo).join()}]`));
const ask = async (...ids: readonly number[]) =>
  (await gateway.post(batchText(...ids), gateway.key())).text();
const answers = (...ids: readonly number[]) => `[${ids.map((id) => resultText(id, id)).join()}]`;
const [four, alone] = [[1, 2, 3, 4] as const, [1, 1, 1, 1]];
const failed = () => gateway.gateway.status().backends[0]?.recent_failed;

describe('B14 light reads of a batch', () => {
  test('B14 are one exchange with a backend, and each caller of two has its own', async () => {
    batches(honest);
    expect(await Promise.all([ask(...four), ask(5, 6)])).toEqual([answers(...four), answers(5, 6)]);
    expect(sizes.toSorted()).toEqual([2, 4]);
  });

  test('B14 are as many exchanges as are full, in the order of the batch', async () => {
    batches(honest);
    const ids = Array.from({ length: 70 }, (_, i) => i);
    expect(await ask(...ids)).toBe(answers(...ids));
    expect(sizes.reduce((sum, n) => sum + n, 0)).toBe(70);
    expect(Math.max(...sizes)).toBe(32);
  });

  test.each<[string, (reads: readonly Part[]) => string]>([
    ['another order', (reads) => `[${reads.map(answerTo).toReversed().join()}]`],
    ['white space', (reads) => ` [ ${reads.map(answerTo).join(' ,\n ')} ]\n`],
    [
      'ids that stand first',
      (reads) =>
        `[${reads.map(({ id, number }) => `{"id":${id},"jsonrpc":"2.0","result":${number}}`).join()}]`,
    ],
  ])('B14 are told apart by their ids in %s', async (_, textOf) => {
    batches((exchange, reads) => exchange.send(plain(textOf(reads))));
    expect(JSON.parse(await ask(...four))).toEqual(JSON.parse(answers(...four)));
    expect(sizes).toEqual([4]);
  });

  test('B14 have their own errors, and data that looks like an answer is none', async () => {
    const own = ({ id, number }: Part) =>
      number === 2
        ? errorText(-32602, `\\"id\\":${id.slice(1, -1)}`, id)
        : `{"jsonrpc":"2.0","result":{"jsonrpc":"2.0","result":0,"id":"AAAAAAAAAAAAAAAA"},"id":${id}}`;
    batches((exchange, reads) => exchange.send(plain(`[${reads.map(own).join()}]`)));
    const [one, two, three] = JSON.parse(await ask(1, 2, 3));
    expect([one.result.result, two.error.code, three.id]).toEqual([0, -32602, 3]);
    expect([sizes, failed()]).toEqual([[3], 0]);
  });

  test('B14 come in pieces, in chunks, and up to a quarter of a megabyte', async () => {
    const wide = ({ id, number }: Part) => resultText(`"${number}${'x'.repeat(50_000)}"`, id);
    batches(async (exchange, reads) => {
      const text = `[${reads.map(wide).join()}]`;
      await exchange.send(`${CHUNKED}${framedChunk(text.slice(0, 70_000))}`);
      await exchange.send(`${framedChunk(text.slice(70_000))}0\r\n\r\n`);
    });
    const all = JSON.parse(await ask(...four));
    expect(all.map(({ result }: { result: string }) => result.length)).toEqual(Array(4).fill(50_001));
    expect(sizes).toEqual([4]);
  });
});

describe('B14 a backend that does not answer a batch as one gets its reads alone, and no mark', () => {
  test.each<[string, (exchange: RawExchange, reads: readonly Part[]) => unknown]>([
    ['one error', ({ send }) => send(plain(errorText(-32600, 'batches are not supported')))],
    ['one answer', ({ send, id }) => send(plain(resultText(1, id)))],
    ['400', ({ send }) => send('HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n')],
    ['413', ({ send }) => send('HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n')],
    ['502', ({ send }) => send('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n<html>')],
    ['a reset', ({ reset }) => reset()],
    ['no HTTP', ({ send }) => send('SSH-2.0-OpenSSH_9.2\r\n\r\n')],
    ['an empty array', ({ send }) => send(plain('[]'))],
    [
      'an array that is cut',
      ({ send }, reads) => send(plain(`[${reads.map(answerTo).join()}`.slice(0, -70))),
    ],
    [
      'a body cut short',
      async ({ send, end }, reads) => (
        await send(plain(`[${reads.map(answerTo).join()}]`).slice(0, -1)),
        end()
      ),
    ],
    [
      'ids of others',
      ({ send }, reads) =>
        send(plain(`[${reads.map(({ number }) => resultText(number, '"AAAAAAAAAAAAAAAA"')).join()}]`)),
    ],
    ['no JSON', ({ send }) => send(plain('<html></html>'))],
  ])('B14 %s', async (_, script) => {
    batches(script);
    expect(await ask(...four)).toBe(answers(...four));
    const [together, ...single] = sizes;
    expect([together, new Set(single), failed()]).toEqual([4, new Set([1]), 0]);
  });

  test('B14 for ten minutes, and then it is tried again', async () => {
    batches(({ send }) => send(plain(errorText(-32600, 'no'))));
    expect(await ask(...four)).toBe(answers(...four));
    batches(honest);
    expect(await ask(...four)).toBe(answers(...four));
    expect(sizes).toEqual([4, ...alone, ...alone]);
    virtual.advance(600_000.5);
    expect(await ask(...four)).toBe(answers(...four));
    expect(sizes.at(-1)).toBe(4);
  });

  test('B14 one that is missing is sent alone, and the others have their answers', async () => {
    batches((exchange, reads) => exchange.send(plain(`[${reads.slice(1).map(answerTo).join()}]`)));
    expect(await ask(...four)).toBe(answers(...four));
    expect(sizes).toEqual([4, 1]);
  });

  test('B14 an answer too long to be held is given up, and its reads are sent alone', async () => {
    batches(({ send }, reads) =>
      send(plain(`[${reads.map(({ id }) => resultText(`"${'x'.repeat(400_000)}"`, id)).join()}]`)),
    );
    expect(await ask(...four)).toBe(answers(...four));
    expect(sizes).toEqual([4, ...alone]);
  });

  test('B14 behind an element that nobody asked for, the connection is closed', async () => {
    batches(({ send }, reads) =>
      send(plain(`[${reads.map(answerTo).join()},${resultText(9, '"AAAAAAAAAAAAAAAA"')}]`)),
    );
    const before = backend.connections();
    expect(await ask(...four)).toBe(answers(...four));
    batches(honest);
    expect(await ask(...four)).toBe(answers(...four));
    expect(backend.connections() - before).toBeGreaterThan(0);
  });
});

test('B14 a limit of the backend is a failure of all, not a reason to send each', async () => {
  batches(({ send }) => send('HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n'));
  expect(await ask(1, 2)).toBe(`[${lostText(1)},${lostText(2)}]`);
  expect(sizes).toEqual([2]);
});

test('B14 whatever an array holds and in whatever order, each id gets its element or none', () => {
  const ids = ['A', 'B', 'C', 'D'].map((letter) => Buffer.from(`"${letter.repeat(16)}"`));
  const value = fc.oneof(
    fc.jsonValue().map((json) => JSON.stringify(json)),
    fc.constantFrom(...ids.map((id) => `{"jsonrpc":"2.0","result":1,"id":${id}}`)),
    fc.constantFrom(...ids.map((id) => JSON.stringify(`","id":${id}}`))),
  );
  const element = fc.record({
    at: fc.nat(5),
    value,
    isError: fc.boolean(),
    isFirst: fc.boolean(),
    gap: fc.constantFrom('', ' ', '\n'),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(element, { selector: ({ at }) => at, maxLength: 6 }),
      fc.nat(),
      (elements, cut) => {
        const texts = elements.map(({ at, value: result, isError, isFirst, gap }) => {
          const id = `"id":${ids[at] ?? '"ZZZZZZZZZZZZZZZZ"'}`;
          const member = isError
            ? `"error":{"code":-1,"message":"m","data":${result}}`
            : `"result":${result}`;
          return `${gap}{"jsonrpc":"2.0",${isFirst ? `${id},${member}` : `${member},${id}`}}${gap}`;
        });
        const whole = Buffer.from(`[${texts.join()}]`);
        const { found, isWhole } = divided(whole, ids);
        expect(ids.map((_, at) => found[at]?.element.toString())).toEqual(
          ids.map((_, at) => texts[elements.findIndex((each) => each.at === at)]?.trim()),
        );
        expect(isWhole).toBe(elements.length > 0 && elements.every(({ at }) => at < ids.length));
        // What was cut off gives no element that the whole does not give.
        const part = divided(whole.subarray(0, cut % whole.length), ids).found;
        for (const at of ids.keys())
          expect([undefined, found[at]?.element.toString()]).toContain(part[at]?.element.toString());
      },
    ),
    { numRuns: 1_000 },
  );
});
