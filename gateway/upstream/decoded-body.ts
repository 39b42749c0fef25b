import type { Transform } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import type { Coding } from '../../shared/config/kinds.ts';
import type { StreamEnd, WritePiece } from '../http/stream-body.ts';
import type { ReplyBody } from './http-connection.ts';

/** Bytes that are decoded at a time: of fewer, going from thread to thread costs more. */
const DECODED_BYTES = 262_144;

const DECODERS: Readonly<Record<Coding, () => Transform>> = {
  gzip: () => createGunzip({ chunkSize: DECODED_BYTES }),
  zstd: () => createZstdDecompress({ chunkSize: DECODED_BYTES }),
};

/** The coding of a Content-Encoding: `identity` for none, `undefined` for one that is not decoded here. */
export function codingOf(field = 'identity'): Coding | 'identity' | undefined {
  const name = field.toLowerCase().replace(/^x-/, '');
  return name === 'identity' || name === 'gzip' || name === 'zstd' ? name : undefined;
}

/**
 * A coded body, decoded on the runtime's threads, a piece at a time. No more is decoded than its reader takes. One that
 * cannot be decoded, or whose coding ends too early, is cut.
 */
export class DecodedBody implements ReplyBody {
  readonly pieces: Buffer[] = [];
  end: StreamEnd | undefined;
  readonly #coded: ReplyBody;
  readonly #decoder: Transform;
  /** Pieces of the coded body that have been taken. */
  #taken = 0;
  /** There while a piece is being decoded; settled then, or when no more is. */
  #decoding: Promise<void> | undefined;
  #bytes = 0;
  #write: WritePiece | undefined;
  readonly #done = Promise.withResolvers<void>();
  /** Resolves when there is more, or no more comes. */
  #news = Promise.withResolvers<void>();

  constructor(coded: ReplyBody, coding: Coding) {
    this.#coded = coded;
    this.#decoder = DECODERS[coding]()
      .on('data', (piece: Buffer) => this.#take(piece))
      .on('end', () => this.#finish({ kind: 'complete', bytes: this.#bytes }))
      .on('error', () => {
        this.#finish({ kind: 'cut', reason: 'bad-framing', bytes: this.#bytes });
        this.#coded.cancel();
      });
  }

  #take(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#write === undefined) this.pieces.push(piece);
    this.#tellNews();
    const wait = this.#write?.(piece);
    if (this.#write !== undefined && !(wait instanceof Promise)) return;
    this.#decoder.pause();
    if (!(wait instanceof Promise)) return;
    this.#coded.noteUnread?.();
    const go = () => {
      this.#coded.noteRead?.();
      this.#decoder.resume();
    };
    wait.then(go, go); // a reader that fails cancels by itself
  }

  #tellNews(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  #finish(end: StreamEnd): void {
    this.end ??= end;
    this.#decoder.destroy();
    this.#done.resolve(); // the runtime calls back for no piece from now on
    this.#tellNews();
  }

  #decode(piece: Buffer): Promise<void> {
    const written = Promise.withResolvers<void>();
    this.#decoder.write(piece, () => written.resolve());
    return (this.#decoding = Promise.race([written.promise, this.#done.promise]).then(() => {
      this.#decoding = undefined;
    }));
  }

  #endWith(end: StreamEnd): void {
    if (end.kind === 'cut') this.#finish({ ...end, bytes: this.#bytes });
    else if (!this.#decoder.writableEnded) this.#decoder.end();
  }

  /** Decodes on until another piece has come or the body has ended. Never rejects. */
  async more(): Promise<void> {
    const { length } = this.pieces;
    const coded = this.#coded;
    this.#decoder.resume();
    while (this.pieces.length === length && this.end === undefined) {
      const news = this.#news.promise;
      const next = this.#decoding === undefined ? coded.pieces[this.#taken] : undefined;
      if (next !== undefined) {
        this.#taken++;
        void this.#decode(next);
      }
      if (this.#decoding !== undefined) await Promise.race([news, this.#decoding]);
      else if (coded.end === undefined) await coded.more();
      else {
        this.#endWith(coded.end);
        await news;
      }
    }
  }

  offer(evict: () => void): void {
    this.#coded.offer(evict);
  }

  /** Hands every piece to `write`, at most one ahead of a promise it gave. Single-use. Never rejects. */
  async pipe(write: WritePiece): Promise<StreamEnd> {
    for (let piece = this.pieces.shift(); piece !== undefined; piece = this.pieces.shift()) {
      const wait = write(piece);
      if (!(wait instanceof Promise)) continue;
      this.#coded.noteUnread?.();
      await Promise.race([wait.catch(() => undefined), this.#done.promise]);
      this.#coded.noteRead?.();
    }
    this.#write = write;
    this.#decoder.resume();
    await this.#decoding;
    this.#coded.pieces.splice(0, this.#taken);
    const end = await this.#coded.pipe(async (piece) => {
      const decoded = this.#decode(Buffer.from(piece));
      await Promise.resolve(); // after the connection has noted that it waits
      this.#coded.noteRead?.(); // it is not for its reader that decoding takes time
      await decoded;
    });
    if (this.end === undefined) this.#endWith(end);
    await this.#done.promise;
    return this.end ?? end;
  }

  distrust(): void {
    this.#coded.distrust?.();
  }

  /** Lets go of it and of its connection. */
  cancel(reason?: 'evicted'): void {
    this.#coded.cancel(reason);
    this.#finish({ kind: 'cut', reason: reason ?? 'cancelled', bytes: this.#bytes });
  }
}
