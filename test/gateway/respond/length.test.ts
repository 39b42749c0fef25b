import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { CHUNKED, chunk, ECHOED_ID, type RawExchange, startRawBackend } from '../../fakes/raw-backend.ts';
import { openCaller, postText } from '../../fakes/raw-caller.ts';
import { startGateway } from '../../started/gateway.ts';

const CALL = { jsonrpc: '2.0', id: 1, method: 'getBlock', params: [1] };
const answerOf = (bytes: number) => {
  const [head, tail] = ['{"jsonrpc":"2.0","result":"', '","id":1}'];
  return head + 'x'.repeat(bytes - head.length - tail.length) + tail;
};
/** The same with the id that the backend got, and so many bytes longer. */
const sentOf = (body: string) => body.replace('"id":1', `"id":${ECHOED_ID}`);
const LONGER = ECHOED_ID.length - 1;
const head = (length: number, field = '') =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n${field}content-length: ${length}\r\n\r\n`;

describe('the length of an answer whose backend said it', () => {
  let backend: ReturnType<typeof startRawBackend>;
  let gateway: Awaited<ReturnType<typeof startGateway>>;
  beforeAll(async () => {
    backend = startRawBackend(() => undefined);
    gateway = await startGateway({ backends: [{ name: 'a', url: backend.url }] });
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    backend[Symbol.dispose]();
  });

  /** Its second half comes once the caller has the head. */
  async function ask(first: string | Buffer, rest: string | Buffer) {
    const begun = Promise.withResolvers<void>();
    backend.script(async ({ send }: RawExchange) => {
      await send(first);
      await begun.promise;
      await send(rest);
    });
    const answer = await gateway.post(CALL, gateway.key());
    begun.resolve();
    return { length: answer.headers.get('content-length'), text: await answer.text() };
  }

  test.each([70_000, 1_200_000, 40_000_000])('reaches the caller with %p bytes (§2.2.4)', async (bytes) => {
    const body = answerOf(bytes);
    const half = bytes >> 1;
    const answer = await ask(head(bytes + LONGER) + body.slice(0, half), sentOf(body).slice(half));
    expect([answer.length, answer.text === body]).toEqual([String(bytes), true]);
  });

  test('is not made up where the backend said none (§2.2.4)', async () => {
    const body = answerOf(200_000);
    const answer = await ask(CHUNKED + chunk(body.slice(0, 90_000)), `${chunk(body.slice(90_000))}0\r\n\r\n`);
    expect(answer).toEqual({ length: null, text: body });
  });

  test('is not reached by one that is no answer at its end', async () => {
    const body = `${sentOf(answerOf(200_000)).slice(0, -1)},`;
    const begun = Promise.withResolvers<void>();
    backend.script(async ({ send }: RawExchange) => {
      await send(head(body.length) + body.slice(0, 100_000));
      await begun.promise;
      await send(body.slice(100_000));
    });
    using caller = await openCaller(gateway.url);
    caller.send(postText(JSON.stringify(CALL), gateway.key()));
    await caller.until('xxx');
    begun.resolve();
    await caller.ended;
    const [, sent = ''] = caller.text().split('\r\n\r\n');
    expect(caller.text()).toContain('content-length: 200000\r\n');
    expect(sent.length).toBeLessThan(200_000);
  });
});
