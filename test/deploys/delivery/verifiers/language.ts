import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { childEnv } from '../../../started/process.ts';
import { javascript, snippet } from './snippet.ts';

/**
 * A language of the page. `file` is where the snippet goes beside the program that asks it; `needs` must succeed on a
 * machine that has the language, `build` after it, and `run` answers the cases.
 */
type Language = Readonly<{
  name: string;
  file: string;
  code: string;
  needs: readonly string[];
  /** How to come by what `needs` may find lacking. */
  advice?: string;
  build?: readonly string[];
  run: readonly string[];
}>;

const javascriptOn = (name: string, program: string): Language => ({
  name: `TypeScript on ${name}`,
  file: 'verify.mjs',
  code: javascript('verify.ts'),
  needs: [program, '--version'],
  run: [program, 'main.mjs'],
});

export const LANGUAGES: readonly Language[] = [
  javascriptOn('Bun', process.execPath),
  javascriptOn('Node', 'node'),
  {
    name: 'Python',
    file: 'verify.py',
    code: snippet('verify.py'),
    needs: ['python3', '--version'],
    run: ['python3', 'main.py'],
  },
  {
    name: 'Go',
    file: 'verify.go',
    code: snippet('verify.go'),
    needs: ['go', 'version'],
    build: ['go', 'build', '-o', 'verifier', 'main.go', 'verify.go'],
    run: ['./verifier'],
  },
  {
    name: 'Rust',
    file: 'src/verify.rs',
    code: snippet('verify.rs'),
    // The crates must be in Cargo's own store already: whether a test passes is no question of the network.
    needs: ['cargo', 'fetch', '--locked', '--offline', '--target', 'host-tuple'],
    advice: 'Rust, and once `cargo fetch` in test/deploys/delivery/verifiers',
    build: ['cargo', 'build', '--locked', '--offline', '--quiet'],
    run: ['target/debug/verifier'],
  },
];

/** What a language answered to each case, or why it cannot be asked here. */
export type Asked = Readonly<
  { kind: 'answered'; answers: readonly string[] } | { kind: 'failed' | 'absent'; reason: string }
>;

/** Puts the cases, one per line, to a language's snippet in a folder of its own. Never rejects. */
export async function ask({ file, code, needs, build, run }: Language, cases: string): Promise<Asked> {
  const folder = mkdtempSync(join(tmpdir(), 'verifier-'));
  try {
    cpSync(import.meta.dir, folder, { recursive: true });
    writeFileSync(join(folder, file), code);
    const found = await runIn(folder, needs);
    if (found.code !== 0) return { kind: 'absent', reason: found.stderr };
    const built = build && (await runIn(folder, build));
    if (built !== undefined && built.code !== 0) return { kind: 'failed', reason: built.stderr };
    const { code: end, stdout, stderr } = await runIn(folder, run, cases);
    if (end !== 0 || stderr !== '') return { kind: 'failed', reason: stderr };
    return { kind: 'answered', answers: stdout.trimEnd().split('\n') };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Long enough for a compiler's first run on a slow machine. */
const RUN_MS_MAX = 90_000;

async function runIn(cwd: string, command: readonly string[], input = '') {
  const kept = ['CARGO_HOME', 'RUSTUP_HOME', 'GOCACHE'].filter((name) => process.env[name]);
  const env = childEnv({
    ...Object.fromEntries(kept.map((name) => [name, process.env[name] ?? ''])),
    CARGO_TARGET_DIR: join(cwd, 'target'),
    GOTOOLCHAIN: 'local',
    PYTHONIOENCODING: 'utf-8',
  });
  try {
    const child = Bun.spawn([...command], {
      cwd,
      env,
      stdin: Buffer.from(input),
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: RUN_MS_MAX,
    });
    const [code, stdout, stderr] = await Promise.all([
      child.exited,
      child.stdout.text(),
      child.stderr.text(),
    ]);
    return {
      code,
      stdout,
      stderr: code === 0 ? stderr : stderr.trim() || `${command[0]} ended with ${code}`,
    };
  } catch (error) {
    return { code: -1, stdout: '', stderr: error instanceof Error ? error.message : `no ${command[0]}` };
  }
}
