import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Longest line that is put together; the rest of a longer one is dropped, in characters. */
const LINE_LENGTH_MAX = 8_192;
/** Far more than a password may have; what comes after is not read. */
const INPUT_BYTES_MAX = 4_096;
const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines, holding at most one unfinished line. */
export function createLines(each: (line: string) => void): (bytes: Uint8Array) => void {
  const decoder = new TextDecoder();
  let unfinished = '';
  return function feed(bytes) {
    const [first = '', ...others] = decoder.decode(bytes, { stream: true }).split('\n');
    unfinished = (unfinished + first).slice(0, LINE_LENGTH_MAX);
    for (const other of others) {
      each(unfinished);
      unfinished = other.slice(0, LINE_LENGTH_MAX);
    }
  };
}

/** The first line of `stream`, without its end. */
export async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (chunk.includes(NEWLINE) || bytes > INPUT_BYTES_MAX) break;
  }
  const [line = ''] = Buffer.concat(chunks).toString('utf8').split('\n', 1);
  return line.replace(/\r$/, '');
}

/** Gives true when `stream` has room for more, false when its reader has gone, as `head` does; that is no error from then on. */
export async function hasRoom(stream: Writable): Promise<boolean> {
  if (!stream.listeners('error').includes(ignore)) stream.on('error', ignore);
  if (stream.destroyed || stream.errored !== null) return false;
  if (!stream.writableNeedDrain) return true;
  const drained = once(stream, 'drain');
  return await drained.then(
    () => true,
    () => false,
  );
}

function ignore(): void {}
