import { request } from 'node:http';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../../test/started/gateway.ts';
import { ROOT, startProcess } from '../../test/started/process.ts';
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
  await using gateway = await startInFront(backend.url);
  const residentMegabytes = () => (memoryOf(gateway.pid).residentBytes / MEGABYTE).toFixed(1);
  const before = residentMegabytes();
  const rows = [['answer', 'seconds', 'bytes sent', 'bytes got', 'SHA-256', 'end']];
  progress(`streams of ${number('seconds')} s`);
  const got = await Promise.all(
    FRAMINGS.map((framing) => readOne(gateway.url, gateway.key, framing, signal)),
  );
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

/** A gateway process with its default idle limit in front of one backend, and a key without limits. */
async function startInFront(backend: URL) {
  const folder = temporaryFolder();
  const config = join(folder.path, 'gateway.toml');
  writeFileSync(
    config,
    `[storage]\ndata_dir = "${folder.path}"\n` +
      '[gateway]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n' +
      `[[backends]]\nname = "slow"\nurl = "${backend.href}"\n[plans.bench]\nrps = 100\nburst = 100\nscans = 8\n`,
  );
  const gateway = await startProcess([join(ROOT, 'gateway/main.ts'), '--config', config], folder.path);
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'bench');
  accounts.close();
  return {
    url: gateway.url,
    pid: gateway.pid,
    key,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
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
