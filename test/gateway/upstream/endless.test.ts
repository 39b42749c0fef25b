import { expect, test } from 'bun:test';
import { createHttpClient } from '../../../gateway/upstream/http-client.ts';
import { systemClock } from '../../../shared/clock.ts';
import { CHUNKED, chunk, startRawBackend } from '../../fakes/raw-backend.ts';

const HINTS = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(200);

/** Sends requests over kept connections. */
function senderTo(url: string) {
  const client = createHttpClient({
    url: new URL(url),
    headers: new Map(),
    clock: systemClock,
    idleMs: 60_000,
  });
  const request = {
    body: Buffer.from('{}'),
    acceptEncoding: 'identity',
    dueMs: 60_000,
    kind: 'light',
  } as const;
  return () => client.send(request, new AbortController().signal);
}

/** How a request ends whose backend says `begin`, and then `more` again and again for as long as it is listened to. */
async function ended(begin: string, more: string) {
  using backend = startRawBackend(async (exchange) => {
    let isGone = false;
    void exchange.gone.then(() => (isGone = true));
    await exchange.send(begin);
    while (!isGone) {
      await exchange.send(more);
      await Bun.sleep(1); // so that it is read apart from the next
    }
  });
  const outcome = await senderTo(backend.url)();
  const end = outcome.kind === 'reply' ? await outcome.body.pipe(() => undefined) : outcome;
  while (backend.open() > 0) await Bun.sleep(1); // the end of the connection is the event awaited
  return end;
}

test('interim heads without end are no reply, and the connection is closed', async () => {
  expect(await ended('', HINTS)).toMatchObject({ kind: 'no-answer', stale: false });
});

test('trailers without end cut the body, and the connection is closed', async () => {
  const end = await ended(`${CHUNKED}${chunk('abc')}0\r\n`, 'x: y\r\n'.repeat(200));
  expect(end).toEqual({ kind: 'cut', reason: 'bad-framing', bytes: 3 });
});

test('interim heads before an end of the connection are a beginning: the request is not sent again', async () => {
  using backend = startRawBackend(async (exchange) => {
    if (exchange.nth === 1) return exchange.send('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    await exchange.send('HTTP/1.1 103 Early Hints\r\n\r\n');
    await Bun.sleep(5); // so that it is read before the end
    return exchange.end();
  });
  const send = senderTo(backend.url);
  const first = await send();
  if (first.kind === 'reply') await first.body.pipe(() => undefined);
  expect(await send()).toMatchObject({ kind: 'no-answer', stale: false });
  expect(backend.calls()).toBe(2);
});
