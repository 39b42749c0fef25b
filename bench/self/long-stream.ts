import { request } from 'node:http';
import { systemClock } from '../../shared/clock.ts';
import { startCrew } from '../../test/started/crew.ts';
import { memoryOf } from './proc.ts';
import type { Framing } from './program-accounts.ts';
import { scanOf } from './reader.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { type SlowStream, slowStream, startSlowBackend } from './slow-stream.ts';

/** What a reader got: `whole` is what HTTP says of the end, `digest` the SHA-256 of the bytes. */
type Got = Readonly<{ whole: boolean; bytes: number; digest: string; seconds: number }>;

/** A pause must stay below the gateway's default idle limit of 120 s. */
const SECONDS_MAX = 620;
const LIMIT_BEYOND_MS = 60_000;
const MEGABYTE = 1e6;
const FRAMINGS = ['length', 'chunked'] satisfies Framing[];

const BENCH: OwnBench = {
  path: import.meta.path,
  about: 'Whether two streams of so long, with pauses that nearly reach the idle limit, arrive whole.',
  options: {
    seconds: { value: 'S', help: 'of each stream', least: 1, most: SECONDS_MAX, preset: 600 },
  },
  limitMs: ({ number }) => number('seconds') * 1_000 + LIMIT_BEYOND_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

/** Whether both streams arrived as they were sent. */
async function measure({ signal, number, progress, table, say }: OwnRun): Promise<boolean> {
  const stream = slowStream(number('seconds'));
  using backend = startSlowBackend(stream, signal);
  // With its default idle limit.
  const extra = '[plans.bench]\nrps = 100\nburst = 100\nscans = 8\n';
  await using gateway = await startCrew({ backendUrl: backend.url.href, processes: 1, extra });
  const key = gateway.key('bench');
  const residentMegabytes = () => (memoryOf(gateway.pid).residentBytes / MEGABYTE).toFixed(1);
  const before = residentMegabytes();
  const rows = [['answer', 'seconds', 'bytes sent', 'bytes got', 'SHA-256', 'end']];
  progress(`streams of ${number('seconds')} s`);
  const got = await Promise.all(FRAMINGS.map((framing) => readOne(gateway.url, key, framing, signal)));
  for (const [i, { whole, bytes, digest, seconds: took }] of got.entries()) {
    const same = digest === stream.digest ? 'the same' : 'differs';
    const end = whole ? 'whole' : 'cut';
    rows.push([FRAMINGS[i] ?? '', took.toFixed(1), String(stream.bytes), String(bytes), same, end]);
  }
  table(rows);
  say(
    `Four pauses of ${(stream.pauseMs / 1_000).toFixed(1)} s in each stream, both at once. ` +
      `RSS of the gateway: ${before} MB before, ${residentMegabytes()} MB after.`,
  );
  return got.every((one) => isAsSent(one, stream));
}

function isAsSent({ whole, digest }: Got, stream: SlowStream): boolean {
  return whole && digest === stream.digest;
}

/** Reads one answer to its end with a client that shares no code with the gateway and knows no time limit. */
function readOne(url: URL, key: string, framing: Framing, signal: AbortSignal): Promise<Got> {
  const { promise, resolve, reject } = Promise.withResolvers<Got>();
  const startedMs = systemClock.monotonic();
  const hash = new Bun.CryptoHasher('sha256');
  let bytes = 0;
  const headers = { 'x-token': key, 'content-type': 'application/json' };
  const asked = request(url, { method: 'POST', headers, signal }, (response) => {
    response.on('data', (piece: Buffer) => {
      hash.update(piece);
      bytes += piece.length;
    });
    response.on('error', () => undefined); // a cut: `complete` says it
    response.on('close', () => {
      const seconds = (systemClock.monotonic() - startedMs) / 1_000;
      resolve({ whole: response.complete, bytes, digest: hash.digest('hex'), seconds });
    });
  });
  asked.on('error', reject);
  asked.end(scanOf(0, framing));
  return promise;
}
