import { describe, expect, test } from 'bun:test';
import { type AccountForm, encodeAccount } from '../../localnet/encode/account.ts';
import { parseJson, printJson, printJsonPieces } from '../../localnet/json/value.ts';
import { serveLocalnet } from '../../localnet/http/server.ts';
import { LOADER_V3 } from '../../localnet/protocol/address.ts';
import { addressNumber, list, object, ownedAccount, startChain, text } from './harness.ts';

const OWNER = addressNumber(1_000_000);
const BIG = addressNumber(1);
const BYTES = 10 * 1024 * 1024;
/** Incompressible, and different everywhere: a slice in the wrong place shows. */
function noise(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = 1;
  for (let at = 0; at < length; at += 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}
const data = noise(BYTES);
const PIECE_CHARACTERS_MAX = 128 * 1024;
const READERS = 12;
const GROWN_MAX = 80_000_000;

describe('the text of a large account', () => {
  const forms: AccountForm[] = [
    { encoding: 'base64', slice: undefined },
    { encoding: 'base64+zstd', slice: undefined },
    { encoding: 'jsonParsed', slice: undefined },
    { encoding: 'base64', slice: { offset: 1n, length: 500_001n } },
  ];
  test.each(forms)('is made in small pieces that are the whole together: %p', (form) => {
    const json = encodeAccount(OWNER, ownedAccount(OWNER, data), form, () => undefined);
    const pieces = [...printJsonPieces(json)];
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(PIECE_CHARACTERS_MAX);
    expect(pieces.join('') === printJson(json)).toBeTrue();
    const [encoded = null, encoding] = list(object(parseJson(pieces.join('')))['data']);
    const decoded = Buffer.from(text(encoded), 'base64');
    const plain = encoding === 'base64+zstd' ? Bun.zstdDecompressSync(decoded) : decoded;
    const expected = form.slice === undefined ? data : data.subarray(1, 500_002);
    expect(Buffer.compare(plain, expected)).toBe(0);
  });

  test('is made in small pieces inside a parsed ProgramData account, too', () => {
    const programData = data.slice(0, 1_000_000);
    programData.set([3, 0, 0, 0]);
    programData[12] = 1;
    const state = ownedAccount(LOADER_V3, programData);
    const json = encodeAccount(OWNER, state, { encoding: 'jsonParsed', slice: undefined }, () => undefined);
    const pieces = [...printJsonPieces(json)];
    expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThanOrEqual(PIECE_CHARACTERS_MAX);
    const { info = null } = object(object(object(parseJson(pieces.join('')))['data'])['parsed']);
    const [encoded = null] = list(object(info)['data']);
    expect(Buffer.compare(Buffer.from(text(encoded), 'base64'), programData.subarray(45))).toBe(0);
  });

  test.each([0, 1, 2, 3, 4_095, 4_096, 4_097, 98_303, 98_304, 98_305, 196_608, 196_609])(
    'of %i bytes is their base64',
    (length) => {
      const state = ownedAccount(OWNER, data.subarray(7, 7 + length));
      const json = encodeAccount(OWNER, state, { encoding: 'base64', slice: undefined }, () => undefined);
      const [encoded] = list(object(parseJson([...printJsonPieces(json)].join('')))['data']);
      expect(encoded === Buffer.from(state.data).toString('base64')).toBeTrue();
    },
  );
});

describe('slow readers of a large account hold little', () => {
  test.each([
    ['getProgramAccounts', `["${OWNER}",{"encoding":"base64","commitment":"processed"}]`],
    ['getAccountInfo', `["${BIG}",{"encoding":"base64","commitment":"processed"}]`],
    [
      'getMultipleAccounts',
      `[[${Array(5).fill(`"${BIG}"`).join(',')}],{"encoding":"base64","commitment":"processed"}]`,
    ],
  ])('%s', async (method, params) => {
    using net = await startChain({ accounts: [[BIG, ownedAccount(OWNER, data, 100_000_000_000n)]] });
    const onFault = (cause: unknown) => net.faults.push(cause);
    const server = serveLocalnet({ chain: net.chain, hostname: '127.0.0.1', port: 0, onFault });
    const body = `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`;
    const begin = async () => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(server.url, { method: 'POST', headers, body });
      const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader();
      await reader.read();
      return reader;
    };
    try {
      // Other work of this process can only add to what is seen: the least of a few looks is the readers' own.
      const grown: number[] = [];
      while (grown.length < 4 && !grown.some((bytes) => bytes < GROWN_MAX)) {
        Bun.gc(true);
        const before = process.memoryUsage.rss();
        const readers = await Promise.all(Array.from({ length: READERS }, begin));
        // Long enough for a server that ignores backpressure to make all of it.
        await Bun.sleep(300);
        grown.push(process.memoryUsage.rss() - before);
        await Promise.all(readers.map((reader) => reader.cancel()));
      }
      expect(Math.min(...grown)).toBeLessThan(GROWN_MAX);
      expect(net.faults).toEqual([]);
    } finally {
      await server.stop(true);
    }
  });
});
