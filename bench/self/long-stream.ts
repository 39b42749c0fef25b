import { systemClock } from '../../shared/clock.ts';
import { memoryOf } from './proc.ts';
import { type Framing, pauseMsOf, PAUSES, programAccounts, slowBytesOf } from './program-accounts.ts';
import { scanOf } from './reader.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { startScanSubject } from './subject.ts';

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
  const seconds = number('seconds');
  const [, ...parts] = programAccounts(slowBytesOf(seconds), '1', 'length');
  const sent = Buffer.concat(parts);
  const digest = digestOf([sent]);
  await using subject = await startScanSubject();
  const residentMegabytes = () => (memoryOf(subject.pid).residentBytes / MEGABYTE).toFixed(1);
  const before = residentMegabytes();
  const rows = [['answer', 'seconds', 'bytes sent', 'bytes got', 'SHA-256', 'end']];
  progress(`streams of ${seconds} s`);
  const reading = FRAMINGS.map((framing) => readOne(subject, scanOf({ seconds }, framing), signal));
  const got = await Promise.all(reading);
  for (const [i, { isWhole, pieces, tookMs }] of got.entries())
    rows.push([
      FRAMINGS[i] ?? '',
      (tookMs / 1_000).toFixed(1),
      String(sent.length),
      String(pieces.reduce((sum, { length }) => sum + length, 0)),
      digestOf(pieces) === digest ? 'the same' : 'differs',
      isWhole ? 'whole' : 'cut',
    ]);
  table(rows);
  say(
    `${PAUSES} pauses of ${(pauseMsOf(seconds) / 1_000).toFixed(1)} s in each stream, both at once. ` +
      `RSS of the gateway: ${before} MB before, ${residentMegabytes()} MB after.`,
  );
  return got.every(({ isWhole, pieces }) => isWhole && digestOf(pieces) === digest);
}

function digestOf(pieces: readonly Uint8Array[]): string {
  const hash = new Bun.CryptoHasher('sha256');
  for (const piece of pieces) hash.update(piece);
  return hash.digest('hex');
}

/** Reads one answer to its end with a client that shares no code with the gateway and has no time limit. */
async function readOne({ url, key }: Readonly<{ url: URL; key: string }>, body: string, signal: AbortSignal) {
  const startedMs = systemClock.monotonic();
  const headers = { 'x-token': key, 'content-type': 'application/json' };
  const pieces: Uint8Array[] = [];
  const read = async () => {
    const response = await fetch(url, { method: 'POST', headers, body, signal, timeout: false });
    for await (const piece of response.body ?? []) pieces.push(piece);
    return response.ok;
  };
  // A cut rejects.
  const isWhole = await read().catch(() => false);
  return { isWhole, pieces, tookMs: systemClock.monotonic() - startedMs };
}
