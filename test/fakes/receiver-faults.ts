import { gzipSync } from 'node:zlib';
import type { ReceiverScript, Visit } from './receiver.ts';

/** Accepts, and never answers. Without a certificate: a TLS handshake that stalls. */
export const silent: ReceiverScript = () => {};

/** Breaks the connection at once. */
export const resets: ReceiverScript = (visit) => visit.reset();

/** Answers these bytes, and then waits. */
export function says(bytes: string): ReceiverScript {
  return (visit) => visit.send(Buffer.from(bytes, 'latin1'));
}

/** Answers these pieces one by one, some turns of the loop apart, so that a sender in this process reads each alone. */
export function saysEach(pieces: readonly string[]): ReceiverScript {
  return async (visit) => {
    for (const piece of pieces) {
      await visit.send(piece);
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  };
}

/** Answers these bytes and then breaks the connection (RST), once they have had the time to arrive. */
export function saysAndResets(bytes: string): ReceiverScript {
  return async (visit) => {
    await visit.send(bytes);
    setTimeout(() => visit.reset(), 20);
  };
}

/** Answers these bytes and then ends the connection (FIN). */
export function saysAndEnds(bytes: string): ReceiverScript {
  return async (visit) => {
    await visit.send(bytes);
    visit.end();
  };
}

/** An answer of some status, with headers of its own, each ended by CRLF. */
export function status(code: number, headers = ''): string {
  return `HTTP/1.1 ${code} X\r\ncontent-length: 0\r\n${headers}\r\n`;
}

/** Says it in pieces, one for every `next`; a drip in the test's own time. */
export function createDrip(pieces: Iterable<string>) {
  const rest = pieces[Symbol.iterator]();
  const came = Promise.withResolvers<Visit>();
  return {
    script: came.resolve as ReceiverScript, // the promise takes the visit, and the script gives nothing
    visit: came.promise,
    async next(): Promise<void> {
      const { value, done } = rest.next();
      if (done !== true) await (await came.promise).send(value);
    },
  };
}

/** Repeats `head` and then `piece` for ever, as fast as it is read; `bytesMax` bounds a test that goes wrong. */
export function endless(head: string, piece: string | Uint8Array, bytesMax = 10_000_000_000): ReceiverScript {
  return async (visit) => {
    await visit.send(head);
    for (let bytes = 0; bytes < bytesMax && !visit.isGone(); bytes += piece.length) {
      await visit.send(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
}

/** A body without end, in chunks of 64 KiB. */
export const endlessBody = endless(
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n',
  `10000\r\n${'x'.repeat(0x10000)}\r\n`,
);

/** Interim answers without end. */
export const endlessInterim = endless('', 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'.repeat(1_000));

/** A head without end. */
export const endlessHead = endless('HTTP/1.1 200 OK\r\n', `x-more: ${'y'.repeat(1_000)}\r\n`);

/** 10 MB of nothing in 10 kB, as a receiver sends it that ignores `accept-encoding`. */
export const gzipBomb: ReceiverScript = async (visit) => {
  const bomb = gzipSync(new Uint8Array(10_000_000));
  await visit.send(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
  await visit.send(bomb);
};
