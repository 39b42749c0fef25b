import type { Writable } from 'node:stream';

/**
 * Resolves when `stream` has room for more: true, or false when its reader has gone, as `head` does. From the first
 * call on, a reader that goes is no error.
 */
export function taken(stream: Writable): Promise<boolean> {
  if (!stream.listeners('error').includes(noError)) stream.on('error', noError);
  if (stream.destroyed || stream.errored !== null) return Promise.resolve(false);
  if (!stream.writableNeedDrain) return Promise.resolve(true);
  return new Promise((resolve) => {
    const ended = (is: boolean) => {
      stream.off('drain', drained);
      stream.off('error', gone);
      resolve(is);
    };
    const drained = () => ended(true);
    const gone = () => ended(false);
    stream.on('drain', drained);
    stream.on('error', gone);
  });
}

function noError(): void {
  // The reader has had what it wanted.
}
