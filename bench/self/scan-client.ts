import { join } from 'node:path';
import { systemClock } from '../../shared/clock.ts';
import { ROOT } from '../../test/started/process.ts';
import type { Result } from '../result.ts';
import { memoryOf } from './proc.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { startScanSubject } from './subject.ts';

const LIMIT_MS = 600_000;
const LOOK_MS = 250;
/** What a scan of any length may hold beyond its first second: the runtime collects when it likes. */
const GROWTH_BYTES_MAX = 200_000_000;
const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const FORMS = [
  ['JSON', []],
  ['lines', ['--ndjson']],
] as const;

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `What bun run bench scan takes to read and check one answer through the gateway, as JSON and as lines.
About a minute for 1,000 MB.`,
  options: { mb: { value: 'N', help: 'megabytes of the answer', least: 1, most: 20_000, preset: 1_000 } },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

/** Whether both scans were complete, in memory that their length does not change. */
async function measure({ signal, number, progress, table }: OwnRun): Promise<boolean> {
  await using subject = await startScanSubject(number('mb') * 1e6);
  const rows = [['form', 'outcome', 'accounts', 'MB', 'MB/s', 'RSS MB, first second', 'RSS MB, peak']];
  let isComplete = true;
  for (const [form, options] of FORMS) {
    progress(form);
    const to = ['--url', subject.url.href, '--key', subject.key, '--programs', TOKEN_PROGRAM, '--calls', '1'];
    const child = Bun.spawn(
      [process.execPath, join(ROOT, 'bench/main.ts'), 'scan', ...to, ...options, '--json', '-'],
      { stdout: 'pipe', signal },
    );
    const over = new AbortController();
    const watching = watched(child.pid, over.signal);
    const text = await child.stdout.text();
    over.abort();
    const [first, peak] = await watching;
    const result: Result = JSON.parse(text);
    const [scan] = result.scans ?? [];
    isComplete &&= scan?.outcome === 'complete' && peak - first < GROWTH_BYTES_MAX;
    const megabytes = (scan?.bytes ?? 0) / 1e6;
    rows.push([
      form,
      scan?.outcome ?? 'none',
      String(scan?.accounts),
      megabytes.toFixed(0),
      (megabytes / (scan?.seconds ?? Number.NaN)).toFixed(1),
      (first / 1e6).toFixed(0),
      (peak / 1e6).toFixed(0),
    ]);
  }
  table(rows);
  return isComplete;
}

/** Resident bytes of a process: the most in its first second, and in all of its life until `over` aborts. */
async function watched(pid: number, over: AbortSignal): Promise<readonly [first: number, peak: number]> {
  const startMs = systemClock.monotonic();
  let [first, peak] = [0, 0];
  while (!over.aborted) {
    const { residentBytes } = memoryOf(pid);
    if (residentBytes > peak) peak = residentBytes;
    if (systemClock.monotonic() - startMs < 1_000) first = peak;
    await systemClock.sleep(LOOK_MS, over);
  }
  return [first, peak];
}
