import { createLines } from '../lines.ts';
import type { LogFile } from './log-file.ts';
import { readyUrl } from './ready-line.ts';

/** What a child says: its address once it listens, its last lines on stderr, and when it has said everything. */
export type Output = Readonly<{ url: Promise<string>; lastLines: readonly string[]; ended: Promise<void> }>;

type Streams = Readonly<{ stdout: ReadableStream<Uint8Array>; stderr: ReadableStream<Uint8Array> }>;

const LAST_LINES_MAX = 20;

/** Reads both streams of `app` to their ends, keeps all of it in `log` and closes that. */
export function readOutput({ stdout, stderr }: Streams, app: string, log: LogFile): Output {
  const found = Promise.withResolvers<string>();
  const lastLines: string[] = [];
  const readOut = createLines((line) => {
    const url = readyUrl(line, app);
    if (url !== undefined) found.resolve(url);
  });
  const readErr = createLines((line) => {
    lastLines.push(line);
    if (lastLines.length > LAST_LINES_MAX) lastLines.shift();
  });

  async function pump(stream: ReadableStream<Uint8Array>, read: (bytes: Uint8Array) => void) {
    for await (const bytes of stream) {
      log.append(bytes);
      read(bytes);
    }
  }

  const ended = Promise.all([pump(stdout, readOut), pump(stderr, readErr)]).then(log.close);
  return { url: found.promise, lastLines, ended };
}
