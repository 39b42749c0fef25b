import { afterAll, beforeAll, expect, test } from 'bun:test';
import { startBackend } from '../fakes/backend.ts';
import { openCaller } from '../fakes/raw-caller.ts';
import { startGateway } from '../started/gateway.ts';

let backend: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
beforeAll(async () => {
  backend = startBackend();
  gateway = await startGateway({
    backends: [{ name: 'a', url: backend.url }],
    gateway: { max_body_bytes: 100_000 },
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

test.each([
  ['in chunks', 'transfer-encoding: chunked', `10000\r\n${' '.repeat(65_536)}\r\n`],
  ['of 10 GB', 'content-length: 10000000000', ' '.repeat(65_536)],
])(
  'A12 an upload %s ends with its refusal: the connection is closed and no more is read',
  async (_name, length, piece) => {
    using caller = await openCaller(gateway.url);
    caller.send(`POST / HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n${length}\r\n\r\n`);
    let over = false;
    void caller.ended.then(() => (over = true));
    // Two pieces are more than the limit; who reads before it goes on sees the refusal.
    for (let i = 0; i < 2; i++) caller.send(piece);
    while (!caller.text().includes('"id":null}')) await Bun.sleep(1); // bounded by the test's own timeout
    expect(caller.text()).toStartWith('HTTP/1.1 413 ');
    let sent = 0;
    while (!over && sent < 256 << 20) {
      for (let i = 0; i < 16; i++) caller.send(piece);
      sent += 16 * 65_536;
      await caller.flushed();
      await new Promise(setImmediate); // lets the end arrive: a write to a broken connection waits for nothing
    }
    expect(sent).toBeLessThan(64 << 20);
  },
);
