import { closeSync, constants, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { crewConfig } from '../../../test/started/crew.ts';
import { addKey, opened, temporaryFolder } from '../../../test/started/gateway.ts';
import { freePort } from '../../../test/started/ports.ts';
import { childEnv } from '../../../test/started/process.ts';
import { admitted, offering, slowMs } from '../load.ts';
import { atLeast, atMost, exactly, type Finding, said } from '../finding.ts';
import { CALL, startBackend } from '../subject.ts';

const PER_SECOND = 500;
/** A line of log is asked for so often. */
const LINE_MS = 100;
const READY_MS = 20_000;
const END_MS = 30_000;
/** Shorter times than this are the machine's mood. */
const FLOOR_MS = 5;

/**
 * One process whose standard output and error are a pipe that is read, and then is full and not read: neither callers nor /health
 * nor the end wait for its reader.
 */
export async function blockLog(seconds: number, signal: AbortSignal): Promise<readonly Finding[]> {
  await using parts = new AsyncDisposableStack();
  const backend = parts.use(await startBackend());
  const folder = parts.use(temporaryFolder());
  const url = `http://127.0.0.1:${freePort()}`;
  const { args, path, metricsPort } = crewConfig(folder.path, {
    backendUrl: backend.url.href,
    processes: 1,
    listen: url.slice('http://'.length),
    extra: '[plans.soaked]\nrps = 1_000_000\n',
  });
  const accounts = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const key = addKey(accounts, 'soaked');
  accounts.close();
  const pipe = openPipe(join(folder.path, 'log'));
  parts.defer(pipe.close);
  const child = Bun.spawn([process.execPath, ...args], {
    env: childEnv({ SLUICE_SUPERVISED: '1' }),
    stdin: 'pipe',
    stdout: pipe.writing,
    stderr: pipe.writing,
  });
  parts.defer(async () => {
    child.kill('SIGKILL');
    await child.exited;
  });
  await until(signal, () => pipe.read().includes('"ready"'));

  const over = new AbortController();
  const text = await Bun.file(path).text();
  let isRead = true;
  /** A config that is refused again and again is a line each. */
  const logging = (async () => {
    while (!over.signal.aborted) {
      child.kill('SIGHUP');
      if (isRead) pipe.read();
      await systemClock.sleep(LINE_MS, over.signal);
    }
  })();
  parts.defer(async () => {
    over.abort();
    await logging;
  });
  const load = { url, key, bodies: [CALL], perSecond: PER_SECOND, connections: 16, seconds };
  const dropped = async () => {
    const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    return Number(/^sluice_gateway_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]);
  };
  writeFileSync(path, `${text}unknown = 1\n`);
  const read = await offering(load, signal);
  isRead = false;
  writeFileSync(path, text + Array.from({ length: 1_000 }, (_, i) => `unknown_${i} = 1\n`).join(''));
  await until(signal, async () => (await dropped()) > 0);
  writeFileSync(path, `${text}unknown = 1\n`);
  const unread = await offering(load, signal);
  const { status } = await fetch(`${url}/health`);
  const lines = await dropped();
  over.abort();
  await logging;
  const sinceMs = systemClock.monotonic();
  child.kill('SIGTERM');
  const code = await Promise.race([child.exited, systemClock.sleep(END_MS, signal).then(() => 'none')]);
  const endedMs = systemClock.monotonic() - sinceMs;
  return [
    said('p99 while the log is read, ms', slowMs(read).toFixed(1)),
    atMost('p99 while it is not, ms', slowMs(unread), Math.max(FLOOR_MS, 2 * slowMs(read)), 1),
    atLeast('answered while it is not', admitted(unread), 0.95 * PER_SECOND * seconds),
    exactly('not answered', unread.length - admitted(unread), 0),
    atLeast('lines dropped', lines, 1),
    exactly('status of /health', status, 200),
    exactly('exit code after SIGTERM', Number(code), 0),
    atMost('seconds until then', endedMs / 1_000, 10, 1),
  ];
}

/** Resolves when `is` says so; rejects when that takes too long. */
async function until(signal: AbortSignal, is: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = systemClock.monotonic() + READY_MS;
  while (!(await is())) {
    if (signal.aborted || systemClock.monotonic() > endMs) throw new Error('the log was not as awaited');
    await systemClock.sleep(LINE_MS, signal);
  }
}

/** A pipe of the system whose reader is this process, when it likes. */
function openPipe(path: string) {
  Bun.spawnSync(['mkfifo', path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writing = openSync(path, constants.O_WRONLY);
  const bytes = Buffer.alloc(65_536);
  return {
    writing,
    /** What can be read now. */
    read(): string {
      let text = '';
      try {
        for (let count; (count = readSync(reading, bytes)) > 0;) text += bytes.toString('latin1', 0, count);
      } catch {
        // It is empty.
      }
      return text;
    },
    close() {
      closeSync(reading);
      closeSync(writing);
    },
  };
}
