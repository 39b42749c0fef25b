import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnv, ROOT } from '../../test/started/process.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';

/** How often each line of each file was run: what an lcov tracefile says (geninfo(1): SF, DA). */
type Hits = ReadonlyMap<string, ReadonlyMap<number, number>>;

const REQUESTS = 400;
const LIMIT_MS = 120_000;
const PRODUCT = /^(gateway|shared)\//;
/** Coverage counts the declaration of a number or a text of a module at each use of it; no request runs it. */
const CONSTANT = /^(?:export )?const \w+ = (?:-?[\w.]+|'[^']*');/;
const WAYS = [
  { title: 'a getAccountInfo', batch: 1, filesMax: 25, linesMax: 600 },
  { title: 'a batch of 20', batch: 20, filesMax: 30, linesMax: 700 },
];

/** Prints the files and lines of the gateway that one request runs: the coverage of many requests less that of none. */
async function trace({ progress, say }: OwnRun): Promise<void> {
  for (const { title, batch, filesMax, linesMax } of WAYS) {
    progress(title);
    const run = linesRun(await coverageOf(0, batch), await coverageOf(REQUESTS, batch), REQUESTS);
    const files = [...run]
      .filter(([path]) => PRODUCT.test(path))
      .map(([path, lines]) => [path, withoutConstants(path, lines)] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    const total = files.reduce((sum, [, lines]) => sum + lines.length, 0);
    say(`${title}: ${files.length} files (bar ${filesMax}), ${total} lines (bar ${linesMax})`);
    for (const [path, lines] of files)
      say(`  ${path.padEnd(40)} ${String(lines.length).padStart(3)}  ${rangesOf(lines)}`);
    say('');
  }
}

function withoutConstants(path: string, lines: readonly number[]): readonly number[] {
  const source = readFileSync(join(ROOT, path), 'utf8').split('\n');
  return lines.filter((line) => !CONSTANT.test(source[line - 1] ?? ''));
}

async function coverageOf(requests: number, batch: number): Promise<Hits> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-trace-'));
  const name = `^batch ${batch}, requests ${requests}$`;
  const options = [
    '--test-name-pattern',
    name,
    '--coverage',
    '--coverage-reporter=lcov',
    `--coverage-dir=${folder}`,
  ];
  const child = Bun.spawn([process.execPath, 'test', ...options, './bench/self/traced.ts'], {
    cwd: ROOT,
    env: childEnv(),
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: LIMIT_MS,
  });
  const [code, errors] = await Promise.all([child.exited, child.stderr.text(), child.stdout.text()]);
  if (code !== 0) throw new Error(errors);
  const text = readFileSync(join(folder, 'lcov.info'), 'utf8');
  rmSync(folder, { recursive: true });
  return hitsFrom(text);
}

/** Reads the SF and DA records of a tracefile. */
export function hitsFrom(text: string): Hits {
  const files = new Map<string, Map<number, number>>();
  let lines = new Map<number, number>();
  for (const record of text.split('\n')) {
    if (record.startsWith('SF:')) files.set(record.slice(3), (lines = new Map()));
    const [, line, hits] = /^DA:(\d+),(\d+)/.exec(record) ?? [];
    if (line !== undefined) lines.set(Number(line), Number(hits));
  }
  return files;
}

/**
 * The lines that `requests` more requests ran, by file: those whose count grew by at least half of that. What runs by
 * time, as probes and timers, grows by less.
 */
export function linesRun(
  before: Hits,
  after: Hits,
  requests: number,
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, readonly number[]>();
  for (const [path, lines] of after) {
    const grown = [...lines].filter(
      ([line, hits]) => hits - (before.get(path)?.get(line) ?? 0) >= requests / 2,
    );
    if (grown.length > 0)
      found.set(
        path,
        grown.map(([line]) => line).toSorted((a, b) => a - b),
      );
  }
  return found;
}

/** Line numbers as ranges: `3-5,9`. */
export function rangesOf(lines: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const line of lines) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === line - 1) last[1] = line;
    else ranges.push([line, line]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

const BENCH: OwnBench = {
  path: import.meta.path,
  about: 'The files and lines of the gateway that one call and one batch of 20 run. About 3 s.',
  limitMs: () => LIMIT_MS,
  measure: trace,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));
