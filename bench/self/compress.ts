import { constants, createGzip, createZstdCompress, zstdCompressSync } from 'node:zlib';
import type { Transform } from 'node:stream';
import { compressed } from '../../gateway/respond/compress.ts';
import { bodyOf } from '../../gateway/upstream/cache.ts';
import { systemClock } from '../../shared/clock.ts';
import type { Coding } from '../../shared/config/kinds.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';

const LIMIT_MS = 170_000;
const PIECE_BYTES = 65_536;
const MINTS = 200;
const ACCOUNT_BYTES = 165;
const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const STREAMS = 50;
const WARM_UP_BYTES = 1_000_000;

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `What compressing answers costs: a getProgramAccounts answer of token accounts (200 mints, owners and addresses that
do not repeat, zero tails) in base64 and base64+zstd, in pieces of 64 KB. "gateway" is the code that gateway.compress turns on; the
others are what the runtime offers beside it. MB/s and CPU time are by bytes before compression.`,
  options: { megabytes: { value: 'N', help: 'length of each answer', least: 1, most: 256, preset: 64 } },
  limitMs: () => LIMIT_MS,
  measure,
};

async function measure({ signal, number, progress, table }: OwnRun): Promise<void> {
  const rows = [['', 'MB/s', 'CPU s/GB', 'size %', 'longest turn ms', 'MB/stream']];
  for (const encoding of ['base64', 'base64+zstd'] as const) {
    const bytes = accountsIn(encoding, number('megabytes') * 1_000_000);
    for (const [by, subject, create] of SUBJECTS) {
      signal.throwIfAborted();
      progress(`${encoding}, ${by}`);
      await subject(bytes.subarray(0, WARM_UP_BYTES));
      const seen = await measured(subject, bytes);
      const each = create === undefined ? '' : (await memoryOf(create, bytes)).toFixed(2);
      rows.push([
        `${encoding}, ${by}`,
        seen.megabytesPerSecond.toFixed(0),
        seen.cpuSecondsPerGigabyte.toFixed(2),
        (100 * seen.size).toFixed(1),
        seen.longestTurnMs.toFixed(1),
        each,
      ]);
    }
  }
  table(rows);
}

/** Compresses all of the bytes; gives how many there are then. */
type Subject = (bytes: Buffer) => Promise<number>;

const zstd = (level: number) => () =>
  createZstdCompress({
    params: { [constants.ZSTD_c_compressionLevel]: level },
    flush: constants.ZSTD_e_flush,
  });
const gzip = (level: number) => () => createGzip({ level, flush: constants.Z_SYNC_FLUSH });

const SUBJECTS: readonly (readonly [name: string, subject: Subject, create?: () => Transform])[] = [
  ['gateway, zstd', gatewayBy('zstd')],
  ['gateway, gzip', gatewayBy('gzip')],
  ['zlib stream, zstd 1', streamBy(zstd(1)), zstd(1)],
  ['zlib stream, zstd 3', streamBy(zstd(3)), zstd(3)],
  ['zlib stream, gzip 1', streamBy(gzip(1)), gzip(1)],
  ['zlib stream, gzip 3', streamBy(gzip(3)), gzip(3)],
  ['CompressionStream, zstd', webStreamBy('zstd')],
  ['CompressionStream, gzip', webStreamBy('gzip')],
  ['Bun.zstdCompress 1, a frame a piece', framesOf],
];

async function measured(subject: Subject, bytes: Buffer) {
  const over = new AbortController();
  const turns = longestTurn(over.signal);
  const cpu = process.cpuUsage();
  const beganMs = systemClock.monotonic();
  const length = await subject(bytes);
  const seconds = (systemClock.monotonic() - beganMs) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  over.abort();
  return {
    megabytesPerSecond: bytes.length / 1e6 / seconds,
    cpuSecondsPerGigabyte: ((user + system) / 1e6 / bytes.length) * 1e9,
    /** Of what it was. */
    size: length / bytes.length,
    longestTurnMs: await turns,
  };
}

/** For how long the event loop was kept from a timer at most. */
async function longestTurn(signal: AbortSignal): Promise<number> {
  let longestMs = 0;
  while (!signal.aborted) {
    const beganMs = systemClock.monotonic();
    await systemClock.sleep(1, signal);
    longestMs = Math.max(longestMs, systemClock.monotonic() - beganMs);
  }
  return longestMs;
}

/** A piece of the answer in each of many streams, none of which ends. */
async function memoryOf(create: () => Transform, bytes: Buffer): Promise<number> {
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  const streams = Array.from({ length: STREAMS }, () => create().resume());
  for (const stream of streams) await written(stream, bytes.subarray(0, 16 * PIECE_BYTES));
  const megabytesEach = (process.memoryUsage.rss() - before) / 1e6 / STREAMS;
  for (const stream of streams) stream.destroy();
  return Math.max(0, megabytesEach);
}

function written(stream: Transform, piece: Uint8Array): Promise<void> {
  return new Promise((resolve) => stream.write(piece, () => resolve()));
}

function gatewayBy(coding: Coding): Subject {
  return async (bytes) => {
    let length = 0;
    await compressed(bodyOf([bytes]), coding).pipe((piece) => void (length += piece.length));
    return length;
  };
}

function streamBy(create: () => Transform): Subject {
  return async (bytes) => {
    const stream = create();
    let length = 0;
    stream.on('data', (piece: Buffer) => (length += piece.length));
    const ended = new Promise((resolve) => stream.on('end', resolve));
    for (let at = 0; at < bytes.length; at += PIECE_BYTES)
      await written(stream, bytes.subarray(at, at + PIECE_BYTES));
    stream.end();
    await ended;
    return length;
  };
}

function webStreamBy(format: 'zstd' | 'gzip'): Subject {
  return async (bytes) => {
    const stream = new CompressionStream(format);
    const writer = stream.writable.getWriter();
    const write = async () => {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES)
        await writer.write(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES)));
      await writer.close();
    };
    const writing = write();
    let length = 0;
    for await (const piece of stream.readable) length += piece.length;
    await writing;
    return length;
  };
}

async function framesOf(bytes: Buffer): Promise<number> {
  let length = 0;
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    const frame = await Bun.zstdCompress(bytes.subarray(at, at + PIECE_BYTES), { level: 1 });
    length += frame.length;
  }
  return length;
}

function accountsIn(encoding: 'base64' | 'base64+zstd', bytesMin: number): Buffer {
  const parts = ['{"jsonrpc":"2.0","result":{"context":{"apiVersion":"3.0.0","slot":368000000},"value":['];
  for (let i = 0, length = 0; length < bytesMin; i++) {
    const row = rowOf(i, encoding);
    length += row.length + 1;
    parts.push(row, length < bytesMin ? ',' : '');
  }
  return Buffer.from(`${parts.join('')}]},"id":1}\n`);
}

/** A token account by its number: few mints have most of the accounts. */
function rowOf(i: number, encoding: 'base64' | 'base64+zstd'): string {
  const own = digest(`account ${i}`);
  const data = Buffer.alloc(ACCOUNT_BYTES);
  digest(`mint ${Math.floor(MINTS * (own.readUInt16LE(0) / 65_536) ** 3)}`).copy(data, 0, 0, 32);
  digest(`owner ${i}`).copy(data, 32, 0, 32);
  own.copy(data, 64, 2, 6);
  data[108] = 1; // initialized
  const bytes = encoding === 'base64' ? data : zstdCompressSync(data);
  const address = [...own.subarray(20)].map((byte) => BASE58[byte % 58]).join('');
  return (
    `{"pubkey":"${address}","account":{"lamports":2039280,"data":["${bytes.toString('base64')}","${encoding}"],` +
    '"owner":"TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA","executable":false,"rentEpoch":18446744073709551615,"space":165}}'
  );
}

function digest(text: string): Buffer {
  return new Bun.CryptoHasher('sha512').update(text).digest();
}

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));
