import { getAddressDecoder } from '@solana/kit';
import { BASE58 } from '../account-reader.ts';

/** How an answer says where it ends. */
export type Framing = 'length' | 'chunked';

const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const TOKEN_ACCOUNT_BYTES = 165;
const ROWS_PER_BLOCK = 2_400;
const CHUNK_BYTES = 65_536;
const STATE_OFFSET = 108;
const BEHIND_ADDRESS = '","account"';

const opening = Buffer.from('{"jsonrpc":"2.0","result":[');
const block = Buffer.from(`${Array.from({ length: ROWS_PER_BLOCK }, (_, i) => row(i)).join(',')},`);
const chunkedBlock = chunked(block);

/** Bytes of the JSON answer that `programAccounts` gives for at least `bytesMin` bytes and an id. */
export function bodyBytes(bytesMin: number, id: string): number {
  return opening.length + blocksFor(bytesMin) * block.length + closing(id).length;
}

/**
 * A getProgramAccounts answer of token accounts, head included, in pieces of about 1 MB that are shared between
 * answers. Row for row it is what Agave prints; the same block of rows repeats, unless `isDistinct` gives each row an
 * address of its own.
 */
export function* programAccounts(
  bytesMin: number,
  id: string,
  framing: Framing,
  isDistinct = false,
): Generator<Buffer> {
  const isChunked = framing === 'chunked';
  const frame = isChunked ? 'transfer-encoding: chunked' : `content-length: ${bodyBytes(bytesMin, id)}`;
  yield Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\n${frame}\r\n\r\n`);
  yield isChunked ? chunked(opening) : opening;
  for (let i = 0; i < blocksFor(bytesMin); i++) {
    const own = isDistinct ? stamped(i) : block;
    yield !isChunked ? own : isDistinct ? chunked(own) : chunkedBlock;
  }
  const end = closing(id);
  yield isChunked ? Buffer.concat([chunked(end), Buffer.from('0\r\n\r\n')]) : end;
}

/** Of a slow answer: three quarters of its time are pauses. */
export const PAUSES = 4;
const STEP_MS = 100;
const STEP_BYTES = 8_000;

/** Milliseconds of each pause of an answer that takes so many seconds. */
export function pauseMsOf(seconds: number): number {
  return (750 * seconds) / PAUSES;
}

/** Bytes that such an answer has at least. */
export function slowBytesOf(seconds: number): number {
  return STEP_BYTES * Math.max(PAUSES + 1, Math.round((250 * seconds) / STEP_MS));
}

/** An answer that takes about so many seconds: pieces of it, and milliseconds to wait before each. */
export function* slowAccounts(seconds: number, id: string, framing: Framing): Generator<Buffer | number> {
  const bytes = Buffer.concat([...programAccounts(slowBytesOf(seconds), id, framing)]);
  const steps = slowBytesOf(seconds) / STEP_BYTES;
  const size = Math.ceil(bytes.length / steps);
  for (let i = 0; i < steps; i++) {
    const isPause = i > 0 && i % Math.ceil(steps / (PAUSES + 1)) === 0;
    yield isPause ? pauseMsOf(seconds) : STEP_MS;
    yield bytes.subarray(i * size, (i + 1) * size);
  }
}

function blocksFor(bytesMin: number): number {
  return Math.max(1, Math.ceil(bytesMin / block.length));
}

/** The block with the last four digits of its addresses replaced by `n`. */
function stamped(n: number): Buffer {
  const digits = [3, 2, 1, 0].map((power) => BASE58[Math.floor(n / 58 ** power) % 58]).join('');
  const own = Buffer.from(block);
  for (let at = own.indexOf(BEHIND_ADDRESS); at !== -1; at = own.indexOf(BEHIND_ADDRESS, at + 1))
    own.write(digits, at - digits.length, 'latin1');
  return own;
}

function closing(id: string): Buffer {
  return Buffer.from(`${row(ROWS_PER_BLOCK)}],"id":${id}}\n`);
}

function row(i: number): string {
  const data = Buffer.alloc(TOKEN_ACCOUNT_BYTES);
  digest(`mint ${i % 7}`).copy(data, 0, 0, 32);
  digest(`owner ${i}`).copy(data, 32, 0, 32);
  data.writeUInt32LE(i * 1_000, 64);
  data[STATE_OFFSET] = 1;
  const address = getAddressDecoder().decode(digest(`address ${i}`), 0);
  return (
    `{"pubkey":"${address}","account":{"lamports":2039280,"data":["${data.toString('base64')}","base64"],` +
    `"owner":"${TOKEN_PROGRAM}","executable":false,"rentEpoch":18446744073709551615,"space":165}}`
  );
}

function digest(text: string): Buffer {
  return new Bun.CryptoHasher('sha512').update(text).digest();
}

function chunked(bytes: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    const part = bytes.subarray(at, at + CHUNK_BYTES);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}
