import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { CHUNKED, chunk, type RawExchange } from '../fakes/raw-backend.ts';
import { jsonText } from '../gateway/json/json-text.ts';
import { callText, rawPair, resultText } from './pair.ts';

const CALL = callText(1, 'getProgramAccounts');

const { backend, gateway } = await rawPair();
const key = gateway.key('scale');

/** An answer, where it is cut into chunks (as shares of its length), and whether its first chunk comes by itself. */
const cutAnswer = fc.record({
  result: jsonText,
  cuts: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 6 }),
  apart: fc.boolean(),
});

const bytesOf = (result: string, id: number | string) => Buffer.from(`${resultText(result, id)}\n`);

/** Sends `bytes` as chunks that end at the cuts, also in the middle of a character, and a last chunk. */
async function sendInPieces(exchange: RawExchange, bytes: Buffer, cuts: readonly number[], apart: boolean) {
  const ends = [...cuts.map((share) => Math.ceil(share * bytes.length)), bytes.length];
  let from = 0;
  for (const end of ends.toSorted((a, b) => a - b)) {
    if (end === from) continue;
    const size = Buffer.from(`${(end - from).toString(16)}\r\n`);
    const head = from === 0 ? Buffer.from(CHUNKED) : Buffer.alloc(0);
    await exchange.send(Buffer.concat([head, size, bytes.subarray(from, end), Buffer.from('\r\n')]));
    if (from === 0 && apart) await Bun.sleep(1); // so that the gateway reads the first chunk by itself
    from = end;
  }
  await exchange.send('0\r\n\r\n');
}

test('A13 an answer arrives byte for byte, wherever its chunks are cut: in escapes, characters, numbers', async () => {
  await fc.assert(
    fc.asyncProperty(cutAnswer, async ({ result, cuts, apart }) => {
      backend.script((exchange) => sendInPieces(exchange, bytesOf(result, exchange.id), cuts, apart));
      const answer = await gateway.post(CALL, key);
      expect(answer.status).toBe(200);
      expect(Buffer.from(await answer.arrayBuffer()).equals(bytesOf(result, 1))).toBe(true);
    }),
    { numRuns: 150 },
  );
});

test('A15 streams of one key at the same time do not mix', async () => {
  const LETTERS = [...'abcdefgh'];
  backend.script(async (exchange) => {
    const letter = /"params":\["(.)"\]/.exec(exchange.text)?.[1] ?? '?';
    await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":"')}`);
    for (let i = 0; i < 64; i++) await exchange.send(chunk(letter.repeat(65_536)));
    await exchange.send(`${chunk('","id":1}')}0\r\n\r\n`);
  });
  const bodies = await Promise.all(
    LETTERS.map(async (letter) =>
      (await gateway.post(callText(1, 'getProgramAccounts', `["${letter}"]`), key)).text(),
    ),
  );
  for (const [i, letter] of LETTERS.entries())
    expect(bodies[i] === resultText(`"${letter.repeat(64 * 65_536)}"`)).toBe(true);
});
