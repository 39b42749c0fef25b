import { expect, setDefaultTimeout, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { startBackend, streamed } from '../fakes/backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { atRest, startGatewayProcess } from './gateway-process.ts';
import { shared } from '../started/shared.ts';

// What takes seconds here takes longer beside other work.
setDefaultTimeout(30_000);

const SCAN =
  '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["11111111111111111111111111111111"]}';
const MEGABYTES = 300;
const MB = 1 << 20;

const backend = shared(startBackend());
const gateway = shared(await startGatewayProcess(backend.url));

/** The SHA-256 of a streamed answer of so many megabytes to `SCAN`. */
function digestOf(megabytes: number): string {
  const hash = createHash('sha256').update('{"jsonrpc":"2.0","result":"');
  const piece = Buffer.alloc(MB, 'a');
  for (let i = 0; i < megabytes; i++) hash.update(piece);
  return hash.update('","id":1}\n').digest('hex');
}

const allLeft = async () => {
  while (backend.pending() > 0) await Bun.sleep(5); // bounded by the test's own timeout
};

test('A1 a reader of 300 MB that stops reading stops the backend, costs the gateway less than 32 MB, and reads on to the same bytes (§2.2.2)', async () => {
  await (await gateway.post(SCAN)).body?.cancel();
  let written = 0;
  backend.script((seen) => streamed(seen, MEGABYTES, (megabytes) => void (written = megabytes)));
  const before = gateway.resident();
  const reader = (await gateway.post(SCAN)).body?.getReader();
  const received = createHash('sha256');
  received.update((await reader?.read())?.value ?? '');
  expect(await atRest(() => written, 200)).toBeLessThan(64);
  expect(gateway.resident() - before).toBeLessThan(32 * MB);
  let most = 0;
  for (let piece = await reader?.read(); piece?.value !== undefined; piece = await reader?.read()) {
    received.update(piece.value);
    most = Math.max(most, gateway.resident());
  }
  expect(most - before).toBeLessThan(64 * MB);
  expect(received.digest('hex')).toBe(digestOf(MEGABYTES));
});

test('A2 fifty readers that stop reading cost the gateway at most 2 MB each', async () => {
  const READERS = 50;
  let written = 0;
  backend.script((seen) => streamed(seen, 60, () => void written++));
  const before = gateway.resident();
  const readers = await Promise.all(Array.from({ length: READERS }, () => openCaller(gateway.url)));
  for (const reader of readers) reader.send(postText(SCAN, gateway.key));
  await Promise.all(
    readers.map(async (reader) => {
      await reader.until('aaaa');
      reader.pause();
    }),
  );
  expect(await atRest(() => written)).toBeLessThan(READERS * 40);
  expect((gateway.resident() - before) / READERS).toBeLessThan(2 * MB);
  for (const reader of readers) reader.reset();
  await allLeft();
});

test('A4 five hundred callers that leave in the middle leave memory and sockets where they were', async () => {
  backend.script((seen) => streamed(seen, MEGABYTES));
  const leave = async () => {
    const leaving = new AbortController();
    await (await gateway.post(SCAN, { signal: leaving.signal })).body?.getReader().read();
    leaving.abort();
  };
  const abort = async (times: number) => {
    for (let i = 0; i < times; i += 5) await Promise.all(Array.from({ length: 5 }, leave));
    await allLeft();
    return { bytes: gateway.resident(), descriptors: await atRest(gateway.descriptors) };
  };
  const warm = await abort(100);
  const after = await abort(400);
  expect(after.bytes - warm.bytes).toBeLessThan(64 * MB);
  // Connections for probes and for reuse come and go; those of the callers would be hundreds.
  expect(after.descriptors - warm.descriptors).toBeLessThan(20);
});

test('A12 a thousand callers that leave in the middle of an upload leave memory and sockets where they were', async () => {
  const half = postText(`${SCAN}${' '.repeat(800_000)}`, gateway.key).slice(0, 400_000);
  const upload = async () => {
    using caller = await openCaller(gateway.url);
    caller.send(half);
    await caller.flushed();
    caller.reset();
    await caller.ended;
  };
  const uploads = async (rounds: number) => {
    for (let i = 0; i < rounds; i++) await Promise.all(Array.from({ length: 20 }, upload));
    return { bytes: gateway.resident(), descriptors: await atRest(gateway.descriptors) };
  };
  const warm = await uploads(10);
  const after = await uploads(40);
  // Were they kept, it would be 320 MB.
  expect(after.bytes - warm.bytes).toBeLessThan(96 * MB);
  // Connections for probes and for reuse come and go; those of the callers would be hundreds.
  expect(after.descriptors - warm.descriptors).toBeLessThan(20);
});

test('B6 a large answer in the middle of a batch passes in bounded memory, whole', async () => {
  backend.script((seen) => (seen.method === 'getProgramAccounts' ? streamed(seen, MEGABYTES) : undefined));
  const SLOT = '{"jsonrpc":"2.0","id":2,"method":"getSlot"}';
  const before = gateway.resident();
  let most = before;
  let bytes = 0;
  let end = '';
  const answer = await gateway.post(`[${SLOT},${SCAN},${SLOT}]`);
  for await (const chunk of answer.body ?? []) {
    bytes += chunk.length;
    end = Buffer.from(chunk.subarray(-100)).toString();
    most = Math.max(most, gateway.resident());
  }
  expect(bytes).toBeGreaterThan(MEGABYTES * MB);
  expect(end).toEndWith('","id":1}\n,{"jsonrpc":"2.0","result":"answer to getSlot","id":2}\n]');
  expect(most - before).toBeLessThan(64 * MB);
});

test('B6 large answers of a batch wait at their backends until it is their turn, and then pass whole', async () => {
  const CALLS = 8;
  let written = 0;
  backend.script((seen) => streamed(seen, 50, () => void written++));
  const before = gateway.resident();
  const reader = (await gateway.post(`[${Array(CALLS).fill(SCAN).join()}]`)).body?.getReader();
  let bytes = (await reader?.read())?.value?.length ?? 0;
  expect(await atRest(() => written)).toBeLessThan(CALLS * 40);
  expect(gateway.resident() - before).toBeLessThan(32 * MB);
  for (let piece = await reader?.read(); piece?.value !== undefined; piece = await reader?.read())
    bytes += piece.value.length;
  expect(bytes).toBe(CALLS * (50 * MB + '{"jsonrpc":"2.0","result":"","id":1}\n'.length + 1) + 1);
});

test('A3 after all of it the gateway answers, holds no call at its backend, and has said nothing on stderr', async () => {
  backend.script(() => undefined);
  expect((await gateway.post('{"jsonrpc":"2.0","id":1,"method":"getSlot"}')).status).toBe(200);
  await allLeft();
  await gateway[Symbol.asyncDispose]();
  expect(await gateway.stderr).toBe('');
});
