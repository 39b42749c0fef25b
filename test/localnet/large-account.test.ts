import { describe, expect, test } from 'bun:test';
import { type AccountForm, encodeAccount } from '../../localnet/encode/account.ts';
import { parseJson, printJson, printJsonPieces } from '../../localnet/json/value.ts';
import { LOADER_V3 } from '../../localnet/protocol/address.ts';
import { addressNumber, list, object, ownedAccount, text } from './harness.ts';

const OWNER = addressNumber(1_000_000);
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

  test.each([0, 1, 2, 3, 4_096, 4_097, 98_304, 98_305, 196_609])('of %i bytes is their base64', (length) => {
    const state = ownedAccount(OWNER, data.subarray(7, 7 + length));
    const json = encodeAccount(OWNER, state, { encoding: 'base64', slice: undefined }, () => undefined);
    expect(printJson(json)).toContain(`"data":["${Buffer.from(state.data).toString('base64')}","base64"]`);
  });
});
