import { cpus, loadavg, release, totalmem } from 'node:os';
import { relative } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';

/** A table for people: every column as wide as its widest cell, the first one to the left. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, i) =>
    Math.max(...rows.map((row) => (row[i] ?? '').length)),
  );
  const lines = rows.map((row) =>
    widths
      .map((width, i) => (i === 0 ? (row[i] ?? '').padEnd(width) : (row[i] ?? '').padStart(width)))
      .join('  ')
      .trimEnd(),
  );
  return lines.join('\n');
}

/**
 * Runs a bench to its end, to `limitMs` or to Ctrl-C, under a heading that says what was measured on what. Gives the
 * exit code: 1 when it was stopped. `run` is told by its signal, and puts away what it started either way.
 */
export async function runBench(
  path: string,
  limitMs: number,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<number> {
  console.log(`${heading()}\nbun ${relative(ROOT, path)}\n`);
  const end = new AbortController();
  let stopped: string | undefined;
  const stop = (why: string) => {
    if (!end.signal.aborted) stopped = why;
    end.abort();
  };
  process.once('SIGINT', () => stop('stopped'));
  process.once('SIGTERM', () => stop('stopped'));
  void systemClock.sleep(limitMs, end.signal).then(() => stop(`not done after ${limitMs / 1_000} s`));
  const failure = await run(end.signal).then(
    () => undefined,
    (error: unknown) => error,
  );
  if (stopped === undefined && failure !== undefined) throw failure;
  end.abort();
  if (stopped !== undefined) console.error(stopped);
  return stopped === undefined ? 0 : 1;
}

function heading(): string {
  const git = ['git', 'describe', '--always', '--dirty=, with changes of its own'];
  const commit = Bun.spawnSync(git, { cwd: ROOT, stderr: 'ignore' }).stdout.toString().trim();
  const [cpu] = cpus();
  return (
    `${cpus().length} x ${cpu?.model.trim()}, ${(totalmem() / 2 ** 30).toFixed(0)} GiB, Linux ${release()}, ` +
    `load ${loadavg()[0]?.toFixed(2)} at the start\n` +
    `Bun ${Bun.version}, commit ${commit || 'unknown'}`
  );
}
