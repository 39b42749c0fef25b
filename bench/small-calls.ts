import { join } from 'node:path';
import { systemClock } from '../shared/clock.ts';
import { ROOT } from '../test/started/process.ts';
import type { Called, Load } from './caller.ts';
import { cpuSecondsOf } from './proc.ts';
import { requestOf, scanOf, startReader } from './reader.ts';
import { runBench, tableOf } from './report.ts';
import { startSubject } from './started.ts';

const LIMIT_MS = 120_000;
/** Enough to keep one process busy. */
const BUSY = { connections: 32, seconds: 5, pauseMs: 0 };
/** About 350 calls a second: what is measured is the way, not a queue. */
const LIGHT = { connections: 4, seconds: 5, pauseMs: 10 };
const STREAMS = 3;
const STREAM_BYTES_PER_SECOND = 100_000_000;
/** More than a stream reads before it is stopped. */
const STREAM_BYTES = 4_000_000_000;
const WARM_UP = { connections: 32, seconds: 2, pauseMs: 0 };
/** For the streams to find their pace. */
const SETTLE_MS = 1_000;

if (import.meta.main) process.exit(await runBench(import.meta.path, LIMIT_MS, measure));

async function measure(signal: AbortSignal): Promise<void> {
  await using subject = await startSubject();
  const direct = { url: subject.stateUrl.href, key: subject.key };
  const gateway = { url: subject.url.href, key: subject.key };
  await call({ ...direct, ...WARM_UP }, signal);
  await call({ ...gateway, ...WARM_UP }, signal);

  const floor = await call({ ...direct, ...BUSY }, signal);
  const cpuBefore = cpuSecondsOf(subject.pid);
  const busy = await call({ ...gateway, ...BUSY }, signal);
  const cpuSeconds = cpuSecondsOf(subject.pid) - cpuBefore;
  console.log(
    tableOf([
      [
        `getSlot, ${BUSY.connections} connections`,
        'calls/s',
        'calls per CPU s',
        'p50 ms',
        'p99 ms',
        'errors',
      ],
      ['backend direct', (floor.calls / BUSY.seconds).toFixed(0), '', ...timesOf(floor)],
      [
        'sluice',
        (busy.calls / BUSY.seconds).toFixed(0),
        (busy.calls / cpuSeconds).toFixed(0),
        ...timesOf(busy),
      ],
      ['ratio to direct', ratio(busy.calls, floor.calls), '', ...ratiosOf(busy, floor)],
    ]),
  );

  const idle = {
    direct: await call({ ...direct, ...LIGHT }, signal),
    sluice: await call({ ...gateway, ...LIGHT }, signal),
  };
  const streams = new AbortController();
  signal.addEventListener('abort', () => streams.abort(), { once: true });
  const request = requestOf(subject.url, subject.key, scanOf(STREAM_BYTES, 'length'));
  const pace = { kind: 'paced', bytesPerSecond: STREAM_BYTES_PER_SECOND } as const; // one of the kinds of Pace
  const readers = await Promise.all(
    Array.from({ length: STREAMS }, () => startReader(subject.url, request, pace, streams.signal)),
  );
  await systemClock.sleep(SETTLE_MS, signal);
  const bytes = () => readers.reduce((sum, reader) => sum + reader.bytes(), 0);
  const startedMs = systemClock.monotonic();
  const bytesBefore = bytes();
  const loaded = {
    direct: await call({ ...direct, ...LIGHT }, signal),
    sluice: await call({ ...gateway, ...LIGHT }, signal),
  };
  const megabytesPerSecond = (bytes() - bytesBefore) / 1_000 / (systemClock.monotonic() - startedMs);
  streams.abort();
  console.log(
    `\n${tableOf([
      ['getSlot, about 350 a second', 'p50 ms', 'p99 ms', 'errors'],
      ['backend direct, no streams', ...timesOf(idle.direct)],
      ['backend direct, streams', ...timesOf(loaded.direct)],
      ['  ratio', ...ratiosOf(loaded.direct, idle.direct)],
      ['sluice, no streams', ...timesOf(idle.sluice)],
      ['sluice, streams', ...timesOf(loaded.sluice)],
      ['  ratio', ...ratiosOf(loaded.sluice, idle.sluice)],
    ])}\n\n${STREAMS} streams through sluice, asked to be 100 MB/s each: ` +
      `${megabytesPerSecond.toFixed(0)} MB/s together.`,
  );
}

/** Runs the load generator in a process of its own. */
async function call(load: Load, signal: AbortSignal): Promise<Called> {
  const child = Bun.spawn([process.execPath, join(ROOT, 'bench/caller.ts'), JSON.stringify(load)], {
    stdout: 'pipe',
    signal,
    timeout: 2_000 * load.seconds + 10_000,
  });
  const printed = await child.stdout.text();
  if ((await child.exited) !== 0) throw new Error('the load generator failed');
  return JSON.parse(printed);
}

function timesOf({ p50Ms, p99Ms, errors }: Called): readonly string[] {
  return [p50Ms.toFixed(2), p99Ms.toFixed(2), String(errors)];
}

function ratiosOf(first: Called, second: Called): readonly string[] {
  return [ratio(first.p50Ms, second.p50Ms), ratio(first.p99Ms, second.p99Ms)];
}

function ratio(first: number, second: number): string {
  return (first / second).toFixed(2);
}
