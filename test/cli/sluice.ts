import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { run } from '../../cli/run.ts';
import { systemClock } from '../../shared/clock.ts';

/** The project's root: the folder of package.json. */
export const ROOT = join(import.meta.dir, '../..');
export const MAIN = join(ROOT, 'cli/main.ts');

/** What a command said and how it ended. */
export type Ended = Readonly<{ code: number | null; out: string; err: string }>;

/** The environment without what a package runner put there, so that a command runs as if started by hand. */
export function plainEnv(extra: Record<string, string> = {}): Record<string, string> {
  const plain = Object.entries(process.env).flatMap(([name, value]) =>
    value === undefined || /^(npm_|SLUICE_|NODE_ENV)/.test(name) ? [] : [[name, value] as const],
  );
  return { ...Object.fromEntries(plain), ...extra };
}

/** Runs `sluice` in `cwd`, without a process of its own; `input` is what its user types. */
export async function sluice(
  cwd: string,
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
): Promise<Ended> {
  const [before, [out, err]] = [process.cwd(), [[], []] as [string[], string[]]];
  process.chdir(cwd);
  try {
    const code = await run({
      argv: args,
      env: plainEnv(env),
      root: ROOT,
      clock: systemClock,
      random: randomBytes,
      line: () => Promise.resolve(input.split(/\r?\n/)[0] ?? ''),
      out: (text) => out.push(text),
      hasRoom: () => Promise.resolve(true),
      err: (text) => err.push(text),
    });
    return { code, out: out.join(''), err: err.join('') };
  } finally {
    process.chdir(before);
  }
}

/** The same as a process of its own. */
export async function sluiceAlone(cwd: string, args: readonly string[]): Promise<Ended> {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    cwd,
    env: plainEnv(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, out, err };
}

/** The objects of a `--json` answer, one per line. */
export function objectsOf({ out }: Ended): unknown[] {
  return out
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}
