import { afterAll, beforeAll, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { startBackend, streamed } from '../fakes/backend.ts';
import { addKey, JSON_HEADERS, opened, temporaryFolder } from '../started/gateway.ts';
import { residentBytes, ROOT, type Started, startProcess } from '../started/process.ts';

const SCAN =
  '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["11111111111111111111111111111111"]}';
const MEGABYTES = 300;

const folder = temporaryFolder();
let backend: ReturnType<typeof startBackend>;
let gateway: Started & AsyncDisposable;
let pid: number;
let key: string;
beforeAll(async () => {
  backend = startBackend();
  const config = join(folder.path, 'sluice.toml');
  writeFileSync(
    config,
    `[gateway]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n[storage]\ndata_dir = "${folder.path}"\n` +
      `[[backends]]\nname = "a"\nurl = "${backend.url}"\n`,
  );
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  key = addKey(accounts, 'scale');
  accounts.close();
  gateway = await startProcess([join(ROOT, 'gateway/main.ts'), '--config', config], folder.path);
  pid = gateway.pid;
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const scan = (signal?: AbortSignal) =>
  fetch(gateway.url, {
    method: 'POST',
    body: SCAN,
    headers: { ...JSON_HEADERS, 'x-token': key },
    ...(signal === undefined ? {} : { signal }),
  });

test('an answer of 300 MB passes with the same bytes, its first byte before the backend has finished, in bounded memory', async () => {
  await (await scan()).body?.cancel();
  const firstByte = Promise.withResolvers<void>();
  const sent = createHash('sha256');
  backend.script((seen) =>
    // Half-way the backend waits for the caller to have seen the first byte: if the gateway held the answer, this would never end.
    streamed(seen, MEGABYTES, async (written) => {
      if (written === MEGABYTES / 2) await firstByte.promise;
    }),
  );
  sent.update('{"jsonrpc":"2.0","result":"');
  for (let i = 0; i < MEGABYTES; i++) sent.update(Buffer.alloc(1 << 20, 'a'));
  sent.update('","id":1}\n');

  const before = residentBytes(pid);
  let most = before;
  let bytes = 0;
  const received = createHash('sha256');
  const answer = await scan();
  for await (const chunk of answer.body ?? []) {
    firstByte.resolve();
    received.update(chunk);
    bytes += chunk.length;
    most = Math.max(most, residentBytes(pid));
  }
  expect(bytes).toBeGreaterThan(MEGABYTES << 20);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  expect(most - before).toBeLessThan(64 << 20);
});

test('a reader that stops reading stops the backend, and costs the gateway less than 32 MB', async () => {
  let written = 0;
  backend.script((seen) => streamed(seen, MEGABYTES, (megabytes) => void (written = megabytes)));
  const before = residentBytes(pid);
  const socket = connect(Number(gateway.url.port), gateway.url.hostname);
  socket.write(
    `POST / HTTP/1.1\r\nhost: a\r\nx-token: ${key}\r\ncontent-type: application/json\r\ncontent-length: ${SCAN.length}\r\n\r\n${SCAN}`,
  );
  await new Promise((resolve) => socket.once('data', resolve));
  socket.pause();
  let seen = -1;
  while (seen !== written) {
    seen = written;
    await Bun.sleep(200); // the end of movement is the event awaited
  }
  expect(written).toBeLessThan(64);
  expect(residentBytes(pid) - before).toBeLessThan(32 << 20);
  socket.destroy();
});

test("a caller that leaves ends the backend's request, before the first byte and after it", async () => {
  const idle = async () => {
    while (backend.pending() > 0) await Bun.sleep(5); // bounded by the test's own timeout
  };
  await idle();
  const arrived = Promise.withResolvers<AbortSignal>();
  backend.script(({ request }) => {
    arrived.resolve(request.signal);
    return new Promise(() => undefined);
  });
  const early = new AbortController();
  const never = scan(early.signal).catch((error: Error) => error.name);
  const upstream = await arrived.promise;
  early.abort();
  expect(await never).toBe('AbortError');
  if (!upstream.aborted) await new Promise((resolve) => upstream.addEventListener('abort', resolve));

  backend.script((seen) => streamed(seen, MEGABYTES));
  const late = new AbortController();
  const answer = await scan(late.signal);
  await answer.body?.getReader().read();
  late.abort();
  await idle();
  expect(backend.pending()).toBe(0);
});

test('when the backend dies in the middle the caller sees a broken connection, never a clean end', async () => {
  backend.script((seen) =>
    streamed(seen, 50, (written) => {
      if (written === 20) throw new Error('the node is gone');
    }),
  );
  const answer = await scan();
  expect(answer.status).toBe(200);
  await expect(answer.text()).rejects.toThrow();
});

test('when a large answer of a batch breaks off, the batch breaks off', async () => {
  backend.script((seen) =>
    streamed(seen, 50, (written) => {
      if (written === 20) throw new Error('the node is gone');
    }),
  );
  const answer = await fetch(gateway.url, {
    method: 'POST',
    body: `[${SCAN},${SCAN}]`,
    headers: { ...JSON_HEADERS, 'x-token': key },
  });
  expect(answer.status).toBe(200);
  await expect(answer.text()).rejects.toThrow();
});

test('a caller that leaves a batch ends every one of its backend requests', async () => {
  backend.script((seen) => streamed(seen, MEGABYTES));
  const leave = new AbortController();
  const answer = await fetch(gateway.url, {
    method: 'POST',
    body: `[${SCAN},${SCAN},${SCAN}]`,
    headers: { ...JSON_HEADERS, 'x-token': key },
    signal: leave.signal,
  });
  await answer.body?.getReader().read();
  leave.abort();
  while (backend.pending() > 0) await Bun.sleep(5); // bounded by the test's own timeout
  expect(backend.pending()).toBe(0);
});

test('after all of it the gateway still answers', async () => {
  backend.script(() => undefined);
  const answer = await fetch(gateway.url, {
    method: 'POST',
    body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    headers: { ...JSON_HEADERS, 'x-token': key },
  });
  expect(answer.status).toBe(200);
});
