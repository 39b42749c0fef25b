import { describe, expect, test } from 'bun:test';
import { request } from 'node:http';
import type { StreamBody } from '../../../gateway/upstream/response-reader.ts';
import { streamSingle } from '../../../gateway/respond/respond.ts';

const TOTAL_BYTES = 12_000_000;
const SIZES = [1, 700, 65_536, 524_288, 9_000, 262_144];
const PERIOD = 251;
const PATTERN = Buffer.from(Array.from({ length: PERIOD + 524_288 }, (_, i) => i % PERIOD));

/** A body that overwrites each piece as soon as it was written. */
function scribbling(): StreamBody {
  return {
    cancel: () => undefined,
    async pipe(write) {
      let bytes = 0;
      for (let i = 0; bytes < TOTAL_BYTES; i++) {
        const length = Math.min(SIZES[i % SIZES.length] ?? 1, TOTAL_BYTES - bytes);
        const from = bytes % PERIOD;
        const piece = Buffer.from(PATTERN.subarray(from, from + length));
        bytes += length;
        const asked = write(piece);
        piece.fill(0xff);
        await asked;
      }
      return { kind: 'complete', bytes };
    },
  };
}

/** Reads to the end, pausing after every piece when `isSlow`; gives how many bytes came and how many were wrong. */
function read(url: URL, isSlow: boolean): Promise<{ bytes: number; wrong: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ bytes: number; wrong: number }>();
  const asked = request(url, (response) => {
    let bytes = 0;
    let wrong = 0;
    response.on('data', (piece: Buffer) => {
      const from = bytes % PERIOD;
      if (!piece.equals(PATTERN.subarray(from, from + piece.length))) wrong += piece.length;
      bytes += piece.length;
      if (!isSlow) return;
      response.pause();
      setTimeout(() => response.resume(), 1);
    });
    response.on('close', () => resolve({ bytes, wrong }));
  });
  asked.on('error', reject);
  asked.end();
  return promise;
}

describe('a streamed answer', () => {
  test('reaches fast and slow readers byte for byte, though the memory of its pieces is used again at once', async () => {
    await using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () => new Response(streamSingle(scribbling(), () => undefined)),
    });
    const readers = [false, true, true, false].map((isSlow) => read(server.url, isSlow));
    for (const got of await Promise.all(readers)) expect(got).toEqual({ bytes: TOTAL_BYTES, wrong: 0 });
  });
});
