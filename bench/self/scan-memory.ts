import { systemClock } from '../../shared/clock.ts';
import { descriptorsOf, memoryOf } from './proc.ts';
import { type Pace, type Reader, scanOf, startReader } from './reader.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { startScanSubject } from './subject.ts';

/** What is seen of the gateway at one moment: megabytes that are resident, and those of no file; descriptors; calls in flight. */
type Seen = readonly [resident: number, anonymous: number, descriptors: number, inFlight: number];
type Subject = Awaited<ReturnType<typeof startScanSubject>>;

const LIMIT_MS = 180_000;
const GIGABYTE = 1_000_000_000;
const WARM_UP_BYTES = 20_000_000;
const WATCHED_MS = 10_000;
const SAMPLE_MS = 250;
const SLOW_READERS = 100;
const SLOW_BYTES_PER_SECOND = 50_000;
const SLOW_ANSWER_BYTES = 100_000_000;
const ABORTED = 500;
const ABORTED_AT_ONCE = 50;
const IDLE_WAIT_MS = 10_000;
const FREE: Pace = { kind: 'free' };

const BENCH: OwnBench = {
  path: import.meta.path,
  about: 'Memory of the gateway under a paused reader, 100 slow ones and 500 that hang up. About 40 s.',
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure({ signal, progress, table }: OwnRun): Promise<void> {
  await using subject = await startScanSubject();
  for (let i = 0; i < 5; i++) await (await scan(subject, WARM_UP_BYTES, FREE, signal)).over;
  const rows = [
    ['gateway process', 'RSS MB', 'RssAnon MB', 'sockets and files', 'calls in flight', 'MB/reader'],
  ];
  const note = (name: string, seen: Seen, perReader = '') => {
    const [resident, anonymous, ...counts] = seen;
    rows.push([name, resident.toFixed(1), anonymous.toFixed(1), ...counts.map(String), perReader]);
  };
  const perReader = ([peak]: Seen, [before]: Seen, readers: number) => ((peak - before) / readers).toFixed(2);

  const before = await idle(subject, signal);
  note('idle, after 5 answers of 20 MB', before);
  progress('a paused reader');
  const paused = await watched(subject, 1, GIGABYTE, { kind: 'paused' }, signal);
  note('peak, 1 paused reader of 1 GB', paused, perReader(paused, before, 1));
  const between = await idle(subject, signal);
  note('idle after it', between);
  const pace: Pace = { kind: 'paced', bytesPerSecond: SLOW_BYTES_PER_SECOND };
  progress(`${SLOW_READERS} slow readers`);
  const slow = await watched(subject, SLOW_READERS, SLOW_ANSWER_BYTES, pace, signal);
  note(`peak, ${SLOW_READERS} readers of 50 KB/s`, slow, perReader(slow, between, SLOW_READERS));
  note('idle after them', await idle(subject, signal));
  for (let i = 0; i < ABORTED; i += ABORTED_AT_ONCE) {
    progress(`${i} of ${ABORTED} hung up`);
    await abortWave(subject, signal);
  }
  note(`idle after ${ABORTED} aborted streams`, await idle(subject, signal));
  table(rows);
}

function scan({ url, key }: Subject, bytes: number, pace: Pace, signal: AbortSignal) {
  return startReader(url, key, scanOf({ bytes }, 'length'), pace, signal);
}

/** The highest of each figure while `count` readers are held for `WATCHED_MS`; then they are dropped. */
async function watched(subject: Subject, count: number, bytes: number, pace: Pace, signal: AbortSignal) {
  const readers = await Promise.all(Array.from({ length: count }, () => scan(subject, bytes, pace, signal)));
  let peak: Seen = [0, 0, 0, 0];
  for (let passedMs = 0; passedMs < WATCHED_MS; passedMs += SAMPLE_MS) {
    const seen = await look(subject);
    const most = (i: 0 | 1 | 2 | 3) => Math.max(seen[i], peak[i]);
    peak = [most(0), most(1), most(2), most(3)];
    await systemClock.sleep(SAMPLE_MS, signal);
  }
  for (const reader of readers) await drop(reader);
  return peak;
}

async function abortWave(subject: Subject, signal: AbortSignal): Promise<void> {
  const opening = Array.from({ length: ABORTED_AT_ONCE }, () => scan(subject, GIGABYTE, FREE, signal));
  for (const reader of await Promise.all(opening)) {
    await reader.begun;
    await drop(reader);
  }
}

/** Hangs up, and makes sure that there was an answer: a refused reader costs no memory. */
async function drop(reader: Reader): Promise<void> {
  reader.abort();
  const status = await reader.over;
  if (status !== 200) throw new Error(`a reader got status ${status}`);
}

/** What is seen once no call is under way, or after `IDLE_WAIT_MS`: a permit that never comes back shows. */
async function idle(subject: Subject, signal: AbortSignal): Promise<Seen> {
  const endMs = systemClock.monotonic() + IDLE_WAIT_MS;
  while ((await subject.inFlight()) > 0 && systemClock.monotonic() < endMs) {
    await systemClock.sleep(SAMPLE_MS, signal);
  }
  await systemClock.sleep(2_000, signal); // for the collector and for sockets that are closing
  return look(subject);
}

async function look({ pid, inFlight }: Subject): Promise<Seen> {
  const { residentBytes, anonymousBytes } = memoryOf(pid);
  return [residentBytes / 1e6, anonymousBytes / 1e6, descriptorsOf(pid), await inFlight()];
}
