import { expect, test } from 'bun:test';
import { openCaller, postText } from './raw-caller.ts';
import { CHUNKED, chunk, plain, startRawBackend } from './raw-backend.ts';

test('a raw caller writes exactly the bytes of the test, and keeps what comes', async () => {
  using server = startRawBackend((exchange) => exchange.send(plain(`"${exchange.nth}"`)));
  using caller = await openCaller(new URL(server.url));
  const text = postText('"é"', 'a-key', 'x-more: 1\r\n');
  expect(text).toContain('content-length: 4\r\nx-more: 1\r\n\r\n"é"');
  caller.send(text);
  await caller.flushed();
  expect(await caller.until('"1"')).toEndWith('\r\n\r\n"1"');
  caller.send(text);
  expect((await caller.until('HTTP/1.1 200', 2)).split('\r\n').at(-1)).toBe('"2"');
  expect(caller.received()).toBe(caller.text().length);
  expect(server.connections()).toBe(1);
});

test('the end of its connection ends every wait', async () => {
  using server = startRawBackend((exchange) => exchange.end());
  using caller = await openCaller(new URL(server.url));
  caller.send(postText('{}', 'a-key'));
  expect(await caller.until('never')).toBe('');
  expect(await caller.ended).toBe('closed');
  await caller.flushed();
});

test('a caller that has stopped reading is not read for, and reads on from there', async () => {
  let written = 0;
  using server = startRawBackend(async (exchange) => {
    await exchange.send(CHUNKED);
    for (; written < 64; written++) await exchange.send(chunk('a'.repeat(1 << 20)));
    await exchange.send('0\r\n\r\n');
  });
  using caller = await openCaller(new URL(server.url));
  caller.send(postText('{}', 'a-key'));
  await caller.until('a');
  caller.pause();
  let seen = -1;
  while (seen !== written) {
    seen = written;
    await Bun.sleep(50); // the end of movement is the event awaited
  }
  expect(written).toBeLessThan(64);
  let more = 0;
  caller.onData((bytes) => void (more += bytes.length));
  caller.resume();
  while (caller.received() < 64 << 20) await Bun.sleep(1); // bounded by the test's own timeout
  expect(more).toBeGreaterThan(50 << 20);
});

test('a reset is seen as the end by the other side', async () => {
  const gone = Promise.withResolvers<void>();
  using server = startRawBackend((exchange) => void exchange.gone.then(gone.resolve));
  using caller = await openCaller(new URL(server.url));
  caller.send(postText('{}', 'a-key'));
  while (server.calls() === 0) await Bun.sleep(1); // awaits the request's arrival
  caller.reset();
  await gone.promise;
  expect(server.open()).toBe(0);
});
