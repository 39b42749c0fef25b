import { describe, expect, test } from 'bun:test';
import { openCaller } from '../fakes/raw-caller.ts';
import { callText, pair } from './pair.ts';

const { gateway } = await pair({ gateway: { max_body_bytes: 100_000 } });

const PIECE = ' '.repeat(65_536);
const CHUNK = `10000\r\n${PIECE}\r\n`;
const CHUNKED = 'transfer-encoding: chunked';
const HUGE = 'content-length: 10000000000';
const headOf = (length: string, key: string) =>
  `POST / HTTP/1.1\r\nhost: a\r\nx-token: ${key}\r\ncontent-type: application/json\r\n${length}\r\n\r\n`;

test.each([
  ['in chunks', 413, CHUNKED, CHUNK],
  ['of 10 GB', 413, HUGE, PIECE],
  ['in chunks without a valid key', 401, CHUNKED, CHUNK],
  ['of 10 GB without a valid key', 401, HUGE, PIECE],
])(
  'A12 F5 an upload %s ends with its refusal: the connection is closed and no more is read',
  async (_name, status, length, piece) => {
    using caller = await openCaller(gateway.url);
    caller.send(headOf(length, status === 401 ? 'sluice_nobody' : gateway.key()));
    let over = false;
    void caller.ended.then(() => (over = true));
    // Two pieces are more than the limit; a caller that reads before it continues sees the refusal.
    for (let i = 0; i < 2; i++) caller.send(piece);
    while (!caller.text().includes('"id":null}')) await Bun.sleep(1); // bounded by the test's own timeout
    expect(caller.text()).toStartWith(`HTTP/1.1 ${status} `);
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

describe('A16 of a body without a valid key 64 KB are read', () => {
  const CALL = callText(7, 'getSlot');
  const post = (key: string, bytes: number) => gateway.post(CALL.padEnd(bytes), key);

  test('up to there the refusal has its id, above it has not', async () => {
    for (const [bytes, id] of [
      [65_536, 7],
      [65_537, null],
    ] as const) {
      const answer = await post('sluice_nobody', bytes);
      expect([answer.status, await answer.json()]).toMatchObject([401, { error: { code: -401 }, id }]);
    }
  });

  test('above it the refusal comes before the body, with a length and in chunks', async () => {
    using measured = await openCaller(gateway.url);
    measured.send(headOf('content-length: 65537', 'sluice_nobody'));
    expect(await measured.until('"id":null}')).toStartWith('HTTP/1.1 401 ');
    using chunked = await openCaller(gateway.url);
    chunked.send(`${headOf(CHUNKED, 'sluice_nobody')}${CHUNK}1\r\n`);
    chunked.send(' ');
    expect(await chunked.until('"id":null}')).toStartWith('HTTP/1.1 401 ');
  });

  test('the connection of one that is refused and sent whole takes the next request', async () => {
    using caller = await openCaller(gateway.url);
    caller.send(`${headOf('content-length: 90000', 'sluice_nobody')}${CALL.padEnd(90_000)}`);
    await caller.until('"id":null}');
    caller.send(`${headOf(`content-length: ${CALL.length}`, gateway.key())}${CALL}`);
    expect(await caller.until('"answer to getSlot"')).toContain('HTTP/1.1 200 ');
  });

  test('a known caller sends as much as the config allows, also with a key that is seen for the first time', async () => {
    const key = gateway.key();
    for (const bytes of [90_000, 100_000]) expect((await post(key, bytes)).status).toBe(200);
    using caller = await openCaller(gateway.url);
    caller.send(headOf(CHUNKED, gateway.key()));
    caller.send(`${CHUNK}${(20_000).toString(16)}\r\n${CALL.padEnd(20_000)}\r\n0\r\n\r\n`);
    expect(await caller.until('"answer to getSlot"')).toContain('HTTP/1.1 200 ');
    expect((await post(key, 100_001)).status).toBe(413);
  });
});
