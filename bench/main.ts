import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release, type } from 'node:os';
import { dirname } from 'node:path';
import { bunComplaint } from '../shared/process.ts';

// Nothing else may be imported before the version is known and the packages are there.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) end(1, complaint);
const { installPackages, packagesAreStale } = await import('../cli/packages.ts');
const root = dirname(import.meta.dirname);
const say = (text: string) => process.stderr.write(text);
const problem = packagesAreStale(root) ? await installPackages(root, process.env, say) : undefined;
if (problem !== undefined) end(1, problem.trimEnd());

const [
  { argumentsFrom },
  { comparisonOf },
  { pageOf },
  { csvOf, resultFrom, textOf },
  { run },
  { systemClock },
  { stopSignal },
] = await Promise.all([
  import('./arguments.ts'),
  import('./comparison.ts'),
  import('./page.ts'),
  import('./result.ts'),
  import('./run.ts'),
  import('../shared/clock.ts'),
  import('../shared/process.ts'),
]);

const FORMS = {
  json: (result) => `${JSON.stringify(result, undefined, 1)}\n`,
  csv: csvOf,
  html: pageOf,
} satisfies Record<string, (result: Parameters<typeof pageOf>[0]) => string>;

const parsed = argumentsFrom(process.argv.slice(2));
switch (parsed.kind) {
  case 'help':
    process.stdout.write(`${parsed.text}\n`);
    break;
  case 'problems':
    end(
      2,
      ...parsed.sentences,
      `See: bun run bench ${parsed.command === undefined ? '' : `${parsed.command} `}--help`,
    );
    break;
  case 'compare':
    compare(parsed.paths);
    break;
  case 'run':
    process.exit(await measure(parsed));
}

async function measure({ options, outputs }: Extract<typeof parsed, { kind: 'run' }>): Promise<number> {
  for (const path of Object.values(outputs))
    if (path !== '-' && !isDone(path, () => closeSync(openSync(path, 'a')))) return 2;
  const isTerminal = process.stderr.isTTY;
  const width = process.stderr.columns || 80;
  const clear = () => isTerminal && process.stderr.write('\r\x1b[K');
  const signal = stopSignal(false);
  const result = await run(options, {
    clock: systemClock,
    random: (count) => new Uint8Array(randomBytes(count)),
    turn: () => new Promise((resolve) => void setImmediate(resolve)),
    machine: `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown'}, ${type()} ${release()}, Bun ${Bun.version}`,
    signal,
    progress: (line) => isTerminal && process.stderr.write(`\r\x1b[K${line.slice(0, width - 1)}`),
  });
  clear();
  if ('sentence' in result) {
    process.stderr.write(`${result.sentence}\n`);
    return signal.aborted ? 130 : result.isMistake ? 2 : 1;
  }
  const isOut = Object.values(outputs).includes('-');
  if (!isOut) await Bun.write(Bun.stdout, textOf(result));
  for (const name of ['json', 'csv', 'html'] as const) {
    const path = outputs[name];
    if (path === undefined) continue;
    const text = FORMS[name](result);
    // Whole, before this process ends.
    if (path === '-') await Bun.write(Bun.stdout, text);
    else if (!isDone(path, () => writeFileSync(path, text))) return 1;
  }
  return signal.aborted ? 130 : result.failures.length > 0 ? 1 : 0;
}

/** Whether a file could be opened or written; says why not. */
function isDone(path: string, write: () => void): boolean {
  try {
    write();
    return true;
  } catch (error) {
    process.stderr.write(
      `${path} cannot be written: ${error instanceof Error ? error.message : String(error)}\n`,
    );
    return false;
  }
}

function compare(paths: readonly [string, string]): void {
  const results = paths.map((path) => {
    try {
      const result = resultFrom(readFileSync(path, 'utf8'));
      return typeof result === 'string' ? end(2, `${path} ${result}.`) : result;
    } catch {
      return end(2, `${path} cannot be read.`);
    }
  });
  const [a, b] = results;
  if (a === undefined || b === undefined) return;
  const comparison = comparisonOf(a, b);
  if (comparison.kind === 'unlike') end(1, 'These two cannot be compared.', ...comparison.sentences);
  process.stdout.write(`${comparison.text}\n`);
}

function end(code: number, ...lines: readonly string[]): never {
  for (const line of lines) process.stderr.write(`${line}\n`);
  process.exit(code);
}
