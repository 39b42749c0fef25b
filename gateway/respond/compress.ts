import type { Transform } from 'node:stream';
import { constants, createGzip, createZstdCompress } from 'node:zlib';
import type { Coding } from '../../shared/config/kinds.ts';
import type { WritePiece } from '../upstream/http-connection.ts';
import type { StreamBody } from '../upstream/response-reader.ts';

/** The header is read no further than this; who sends a longer one gets plain answers. */
const HEADER_LENGTH_MAX = 1_024;
const WEIGHT = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/;

/**
 * The coding of `ours` that a caller weighs highest, the first of ours where they are equal (RFC 9110 12.5.3); `undefined`:
 * none, or the caller prefers the plain answer.
 */
export function codingFor(header: string | null, ours: readonly Coding[]): Coding | undefined {
  if (header === null || header.length > HEADER_LENGTH_MAX) return undefined;
  const weights = new Map(header.toLowerCase().split(',').map(weighed));
  let best: Coding | undefined;
  let most = 0;
  for (const coding of ours) {
    const weight = weights.get(coding) ?? weights.get('*') ?? 0;
    if (weight <= most) continue;
    best = coding;
    most = weight;
  }
  return (weights.get('identity') ?? 0) > most ? undefined : best;
}

function weighed(range: string): readonly [name: string, weight: number] {
  const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
  const [weight] = parameters;
  // A weight that cannot be read accepts nothing.
  const value = weight === undefined ? 1 : Number(WEIGHT.exec(weight)?.[1] ?? 0);
  return [name === 'x-gzip' ? 'gzip' : name, value];
}

/** What comes while a piece is being compressed is gathered up to so many bytes, and compressed as one. */
const GATHERED_BYTES_MAX = 65_536;
const CHUNK_BYTES = 65_536;

/**
 * Each on the runtime's threads, with all of a piece flushed before the next. Level 1: on account data level 3 gives 3 % less
 * by zstd for 1.5 to 2 times the CPU, and 23 % less by gzip for 2 to 2.5 times (`bench/self/compress.ts`).
 */
const CODERS: Readonly<Record<Coding, () => Transform>> = {
  zstd: () =>
    createZstdCompress({
      params: { [constants.ZSTD_c_compressionLevel]: 1 },
      flush: constants.ZSTD_e_flush,
      chunkSize: CHUNK_BYTES,
    }),
  gzip: () => createGzip({ level: 1, flush: constants.Z_SYNC_FLUSH, chunkSize: CHUNK_BYTES }),
};

/** Compresses what is written to it, and hands that to `write`. It waits where `write` gives a promise, and has its own writer wait. */
export class Compressor {
  readonly #coder: Transform;
  #gathered: Uint8Array[] = [];
  #bytes = 0;
  /** The piece under way. */
  #piece = Promise.withResolvers<void>();
  #isRunning = false;
  #isCancelled = false;
  /** What `write` gave last. */
  #written: unknown;
  readonly #over = Promise.withResolvers<void>();

  constructor(coding: Coding, write: WritePiece) {
    const cancel = () => this.cancel();
    this.#coder = CODERS[coding]()
      .on('end', () => this.#over.resolve())
      .on('error', cancel)
      .on('data', (piece: Buffer) => {
        this.#written = write(piece);
        if (!(this.#written instanceof Promise)) return;
        this.#coder.pause();
        this.#written.then(() => this.#coder.resume(), cancel);
      });
  }

  /** Takes a copy of a piece; gives a promise when it is long, or enough is gathered behind the one under way. */
  write(piece: Uint8Array | string): Promise<void> | undefined {
    if (this.#isCancelled) return undefined;
    this.#gathered.push(Buffer.from(piece));
    this.#bytes += piece.length;
    if (!this.#isRunning) void this.#run();
    const isEnough = piece.length >= GATHERED_BYTES_MAX || this.#bytes >= GATHERED_BYTES_MAX;
    return isEnough ? this.#piece.promise : undefined;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#bytes > 0 && !this.#isCancelled) {
      const [first] = this.#gathered;
      const piece = this.#gathered.length === 1 ? first : Buffer.concat(this.#gathered);
      this.#gathered = [];
      this.#bytes = 0;
      const { promise, resolve } = (this.#piece = Promise.withResolvers<void>());
      this.#coder.write(piece, () => resolve());
      await promise;
    }
    this.#isRunning = false;
  }

  /** Ends the compressed stream; gives whether all of it was handed over. */
  async end(): Promise<boolean> {
    while (this.#isRunning) await this.#piece.promise;
    if (!this.#isCancelled) this.#coder.end();
    await this.#over.promise;
    if (this.#written instanceof Promise) await this.#written.catch(() => undefined);
    return !this.#isCancelled;
  }

  /** Compresses no more, and leaves the compressed stream without its end. */
  cancel(): void {
    this.#isCancelled = true;
    this.#coder.destroy();
    this.#gathered = [];
    this.#bytes = 0;
    // The runtime calls back for no piece from now on.
    this.#piece.resolve();
    this.#over.resolve();
  }
}

/** The body compressed. Its compressed stream ends only when the body was complete. */
export function compressed(body: StreamBody, coding: Coding): StreamBody {
  let compressor: Compressor | undefined;
  return {
    cancel(reason) {
      compressor?.cancel();
      body.cancel(reason);
    },
    async pipe(write) {
      const own = (compressor = new Compressor(coding, write));
      const end = await body.pipe((piece) => own.write(piece));
      if (end.kind === 'complete' && (await own.end())) return end;
      own.cancel();
      return end.kind === 'cut' ? end : { kind: 'cut', reason: 'cancelled', bytes: end.bytes };
    },
  };
}
