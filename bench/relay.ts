import { systemClock } from '../shared/clock.ts';
import { cpuSecondsOf } from './proc.ts';
import { bodyBytes, type Framing } from './program-accounts.ts';
import { requestOf, scanOf, startReader } from './reader.ts';
import { runBench, tableOf } from './report.ts';
import { startHaproxy, startSubject } from './started.ts';
import { ratios, spread } from './statistics.ts';

/** One way of an answer to its reader; `pid` is whose CPU time is counted. */
type Way = Readonly<{ name: string; url: URL; pid: number | undefined }>;
type Figures = { megabytesPerSecond: number[]; cpuPerGigabyte: number[] };

const ANSWER_BYTES = 400_000_000;
const ALTERNATIONS = 9;
const LIMIT_MS = 180_000;

if (import.meta.main) process.exit(await runBench(import.meta.path, LIMIT_MS, measure));

async function measure(signal: AbortSignal): Promise<void> {
  await using subject = await startSubject();
  await using haproxy = await startHaproxy(subject.folder, subject.scanUrl);
  if (haproxy === undefined) console.log('haproxy is not installed: measured without it\n');
  const ways: Way[] = [
    { name: 'direct', url: subject.scanUrl, pid: undefined },
    { name: 'sluice', url: subject.url, pid: subject.pid },
    ...(haproxy === undefined ? [] : [{ name: 'haproxy', url: haproxy.url, pid: haproxy.pid }]),
  ];
  const rows = [['answer', 'way', 'MB/s', 'CPU s/GB', 'MB/s to haproxy', 'CPU to haproxy']];
  for (const framing of ['length', 'chunked'] satisfies Framing[]) {
    const figures = await alternate(ways, framing, subject.key, signal);
    const peer = figures.get('haproxy');
    for (const [name, { megabytesPerSecond, cpuPerGigabyte }] of figures) {
      const compared = name === 'sluice' && peer !== undefined;
      rows.push([
        framing,
        name,
        spread(megabytesPerSecond),
        spread(cpuPerGigabyte, 2),
        compared ? spread(ratios(megabytesPerSecond, peer.megabytesPerSecond), 2) : '',
        compared ? spread(ratios(cpuPerGigabyte, peer.cpuPerGigabyte), 2) : '',
      ]);
    }
  }
  console.log(tableOf(rows));
  console.log(
    `\n${ALTERNATIONS} answers of ${ANSWER_BYTES / 1e6} MB each way, in turn: median (lowest-highest).`,
  );
}

async function alternate(ways: readonly Way[], framing: Framing, key: string, signal: AbortSignal) {
  const figures = new Map<string, Figures>();
  for (const { name } of ways) figures.set(name, { megabytesPerSecond: [], cpuPerGigabyte: [] });
  for (const way of ways) await relayOnce(way, framing, key, signal); // warm before anything counts
  for (let i = 0; i < ALTERNATIONS; i++) {
    for (const way of ways) {
      const { seconds, cpuSeconds } = await relayOnce(way, framing, key, signal);
      const { megabytesPerSecond, cpuPerGigabyte } = figures.get(way.name) ?? impossible(way.name);
      megabytesPerSecond.push(ANSWER_BYTES / 1e6 / seconds);
      if (cpuSeconds !== undefined) cpuPerGigabyte.push((cpuSeconds * 1e9) / ANSWER_BYTES);
    }
  }
  return figures;
}

async function relayOnce({ name, url, pid }: Way, framing: Framing, key: string, signal: AbortSignal) {
  const cpuBefore = pid === undefined ? undefined : cpuSecondsOf(pid);
  const startedMs = systemClock.monotonic();
  const request = requestOf(url, key, scanOf(ANSWER_BYTES, framing));
  const reader = await startReader(url, request, { kind: 'free' }, signal);
  const status = await reader.over;
  const seconds = (systemClock.monotonic() - startedMs) / 1_000;
  if (status !== 200 || reader.bytes() < bodyBytes(ANSWER_BYTES, '1')) {
    throw new Error(`${name} gave status ${status} and ${reader.bytes()} bytes`);
  }
  return {
    seconds,
    cpuSeconds: pid === undefined || cpuBefore === undefined ? undefined : cpuSecondsOf(pid) - cpuBefore,
  };
}

function impossible(name: string): never {
  throw new Error(`nothing is kept for ${name}`);
}
