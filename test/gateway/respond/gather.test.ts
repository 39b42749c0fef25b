import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Beat } from '../../../gateway/respond/batch.ts';
import { createGather } from '../../../gateway/respond/gather.ts';
import { bodyOf } from '../../../gateway/upstream/cache.ts';
import { CHUNKED, chunk, type RawExchange, startRawBackend } from '../../fakes/raw-backend.ts';
import { startGateway } from '../../started/gateway.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getBlock', params: [1] };
const answerOf = (bytes: number) => {
  const [head, tail] = ['{"jsonrpc":"2.0","result":"', '","id":1}'];
  return head + 'x'.repeat(bytes - head.length - tail.length) + tail;
};
const head = (length: number) =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;

describe('the length of an answer whose backend said it', () => {
  let backend: ReturnType<typeof startRawBackend>;
  let gateway: Awaited<ReturnType<typeof startGateway>>;
  /** A busy machine is late for no answer. */
  const virtual = createVirtualClock();
  beforeAll(async () => {
    backend = startRawBackend(() => undefined);
    gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] }, virtual.clock);
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    backend[Symbol.dispose]();
  });

  async function ask(script: (exchange: RawExchange) => unknown, onBegun?: () => void) {
    backend.script(script);
    const answer = await gateway.post(CALL, gateway.key());
    onBegun?.();
    return { length: answer.headers.get('content-length'), text: await answer.text() };
  }

  /** In two parts, so that it has not come whole when its first byte has. */
  const inParts =
    (body: string, isLate = false) =>
    async ({ send }: RawExchange) => {
      await send(head(body.length) + body.slice(0, 30_000));
      await Bun.sleep(1);
      while (isLate && virtual.sleeping() === 0) await Bun.sleep(1);
      if (isLate) virtual.advance(50);
      await send(body.slice(30_000));
    };

  test.each([70_000, 1_000_000])('reaches the caller with %p bytes', async (bytes) => {
    const body = answerOf(bytes);
    expect(await ask(inParts(body))).toEqual({ length: String(bytes), text: body });
  });

  test('is left out of what is longer, comes late, or was of no known length; its bytes are the same', async () => {
    const [long, late] = [answerOf(1_200_000), answerOf(200_000)];
    expect(await ask(inParts(long))).toEqual({ length: null, text: long });
    expect(await ask(inParts(late, true))).toEqual({ length: null, text: late });
    // The rest comes once the answer is under way: what has come whole by then has a length in any case.
    const begun = Promise.withResolvers<void>();
    const chunked = async ({ send }: RawExchange) => {
      await send(CHUNKED + chunk(late.slice(0, 90_000)));
      await begun.promise;
      await send(`${chunk(late.slice(90_000))}0\r\n\r\n`);
    };
    expect(await ask(chunked, begun.resolve)).toEqual({ length: null, text: late });
  });
});

const NEVER: Beat = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve()));

test('answers that are put together hold 64 MB in all, until their callers have read them or left', async () => {
  const MB = 1_048_576;
  const gather = createGather(NEVER);
  const make = (count: number) =>
    Promise.all(Array.from({ length: count }, () => gather(bodyOf([Buffer.alloc(MB)]), MB)));
  const made = await make(65);
  const streams = made.filter((each) => each instanceof ReadableStream);
  expect(made.findIndex((each) => !(each instanceof ReadableStream))).toBe(64);
  for (const left of streams.slice(0, 32)) await left.cancel();
  for (const read of streams.slice(32)) expect((await new Response(read).bytes()).length).toBe(MB);
  expect((await make(64)).every((each) => each instanceof ReadableStream)).toBe(true);
});
