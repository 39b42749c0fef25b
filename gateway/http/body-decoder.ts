import type { Framing } from './response-head.ts';

/** What became of some bytes from the connection. */
export type Decoded =
  /** All of them belong to a body that goes on. */
  | 'more'
  /** The body ended with them. */
  | 'end'
  /** The body ended before them: something follows that no request asked for. */
  | 'surplus'
  /** They break the framing. */
  | 'bad';

/**
 * Takes a body out of its framing. `push` gives what the bytes hold of the body to `onBody`, in one piece that lies in
 * their own memory: chunks are moved together in it, because a write to the caller costs more than the move.
 */
export type BodyDecoder = Readonly<{ push(bytes: Buffer, onBody: (piece: Buffer) => void): Decoded }>;

export function createBodyDecoder(framing: Framing): BodyDecoder {
  switch (framing.kind) {
    case 'length':
      return lengthDecoder(framing.bytes);
    case 'chunked':
      return chunkedDecoder();
    case 'until-close':
      return { push: (bytes, onBody) => (onBody(bytes), 'more') };
  }
}

function lengthDecoder(total: number): BodyDecoder {
  let left = total;
  return {
    push(bytes, onBody) {
      const piece = bytes.length > left ? bytes.subarray(0, left) : bytes;
      left -= piece.length;
      if (piece.length > 0) onBody(piece);
      if (piece.length < bytes.length) return 'surplus';
      return left === 0 ? 'end' : 'more';
    },
  };
}

/** Chunk-size lines and trailer lines are short; longer ones are an attack or a mistake. */
const LINE_BYTES_MAX = 1_024;
/** All trailer lines together: they are read past, and must not keep a connection that has said all. */
const TRAILER_BYTES_MAX = 4_096;

/**
 * The chunked coding (RFC 9112 7.1). States: `size` reads a chunk's size line, `data` its bytes, `gap` the line end
 * after them, `trailer` the lines after the last chunk, up to the empty one.
 */
function chunkedDecoder(): BodyDecoder {
  let state: 'size' | 'data' | 'gap' | 'trailer' = 'size';
  let line = '';
  let left = 0;
  let trailerBytes = 0;
  /** Where in the bytes under way the body's part of them lies. */
  let start = 0;
  let end = 0;

  /** Adds bytes up to the next line feed to `line`; gives the index after it, or -1 when it has not come. */
  function takeLine(bytes: Buffer, at: number): number {
    const feed = bytes.indexOf(0x0a, at);
    line += bytes.toString('latin1', at, feed === -1 ? bytes.length : feed + 1);
    return feed === -1 ? -1 : feed + 1;
  }

  /** Moves what these bytes hold of a chunk to the end of the body's part; gives the index after it. */
  function takeData(bytes: Buffer, at: number): number {
    const length = Math.min(left, bytes.length - at);
    if (end === 0) start = end = at;
    else bytes.copyWithin(end, at, at + length);
    end += length;
    left -= length;
    return at + length;
  }

  function push(bytes: Buffer, onBody: (piece: Buffer) => void): Decoded {
    start = end = 0;
    const decoded = decode(bytes);
    if (end > start) onBody(bytes.subarray(start, end));
    return decoded;
  }

  function decode(bytes: Buffer): Decoded {
    let i = 0;
    while (i < bytes.length) {
      if (state === 'data') {
        i = takeData(bytes, i);
        if (left === 0) state = 'gap';
        continue;
      }
      const next = takeLine(bytes, i);
      if (line.length > LINE_BYTES_MAX) return 'bad';
      if (next === -1) return 'more';
      if (!line.endsWith('\r\n')) return 'bad';
      const text = line.slice(0, -2);
      line = '';
      i = next;
      if (state === 'gap') {
        if (text !== '') return 'bad';
        state = 'size';
      } else if (state === 'trailer') {
        if (text === '') return i === bytes.length ? 'end' : 'surplus';
        trailerBytes += text.length + 2; // the line end counts too
        if (trailerBytes > TRAILER_BYTES_MAX) return 'bad';
      } else {
        const [, digits] = /^([0-9a-fA-F]{1,12})[\t ]*(?:;.*)?$/.exec(text) ?? [];
        if (digits === undefined) return 'bad';
        left = Number.parseInt(digits, 16);
        state = left === 0 ? 'trailer' : 'data';
      }
    }
    return 'more';
  }

  return { push };
}
