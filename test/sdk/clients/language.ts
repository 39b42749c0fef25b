import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { temporaryFolder } from '../../started/gateway.ts';
import { ROOT } from '../../started/process.ts';

/** What was installed or compiled once stays here, under the hash of what it was made from. */
const CACHE = join(homedir(), '.cache/sluice-sdk');
const EXAMPLES = join(ROOT, 'examples');
const INSTALL_MS_MAX = 60_000;
/** A first build compiles Go's own packages, and 250 crates where Rust is asked for. */
const BUILD_MS_MAX = 600_000;
const RUN_MS_MAX = 60_000;

type Variables = Readonly<Record<string, string>>;

/** A client that is ready: its example and its probe, each run to the end. */
type Ready = Readonly<{ example: readonly string[]; probe: readonly string[]; env?: Variables }>;

type Outcome = Readonly<
  | { kind: 'ran'; example: string; seen: Readonly<Record<string, unknown>> }
  | { kind: 'absent'; reason: string }
>;

/**
 * A language with its unmodified client from its registry. `install` throws why it cannot be had here, `build` what is wrong
 * with the example or the probe; both get a folder with the two.
 */
export type Language = Readonly<{
  name: string;
  folder: string;
  install(folder: string): Promise<unknown>;
  build(folder: string): Promise<Ready>;
}>;

export const PYTHON: Language = {
  name: 'solana-py',
  folder: 'python',
  async install(folder) {
    const packages = await packagesOfPython(folder);
    if (existsSync(packages)) return;
    const unfinished = `${packages}.${process.pid}`;
    const pip = ['python3', '-m', 'pip', 'install', '-q', '--target', unfinished];
    await output([...pip, '-r', 'requirements.txt', '-c', 'constraints.txt'], folder);
    renameSync(unfinished, packages);
  },
  build: async (folder) => ({
    example: ['python3', 'send.py'],
    probe: ['python3', 'probe.py'],
    env: { PYTHONPATH: await packagesOfPython(folder), PYTHONDONTWRITEBYTECODE: '1' },
  }),
};

async function packagesOfPython(folder: string): Promise<string> {
  const version = await output(['python3', '--version'], folder);
  const [required, constraints] = ['requirements.txt', 'constraints.txt'].map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  );
  return join(CACHE, `python-${hashOf(`${version}${required}${constraints}`)}`);
}

/** The probe needs packages that the example does not, of the versions that solana-go asks for. */
const GO_ENV = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod' };

export const GO: Language = {
  name: 'solana-go',
  folder: 'go',
  install: (folder) => output(['go', 'list', '-deps', '.'], folder, GO_ENV),
  async build(folder) {
    await output(['go', 'build', '-o', 'send', '.'], folder, GO_ENV, BUILD_MS_MAX);
    return { example: ['./send'], probe: ['./send'] };
  },
};

export const RUST: Language = {
  name: 'solana-rpc-client',
  folder: 'rust',
  async install(folder) {
    const made = folderOfRust(folder);
    if (!existsSync(join(made, 'target/debug/probe')) && !process.env['SLUICE_SDK_RUST'])
      throw new Error('it compiles for two minutes, once: SLUICE_SDK_RUST=1 bun test test/sdk/clients');
    mkdirSync(join(made, 'src/bin'), { recursive: true });
    cpSync(folder, made, { recursive: true });
    await output(['cargo', 'fetch', '--locked', '--quiet'], made);
  },
  async build(folder) {
    const made = folderOfRust(folder);
    const main = readFileSync(join(folder, 'src/main.rs'), 'utf8');
    const example = main.replace(
      /#\[tokio::main.*\]\nasync fn main/,
      '#[allow(dead_code)]\nasync fn example',
    );
    writeFileSync(join(made, 'src/bin/probe.rs'), example + readFileSync(join(folder, 'probe.rs'), 'utf8'));
    const env = { CARGO_PROFILE_DEV_DEBUG: '0' };
    await output(['cargo', 'build', '--locked', '--quiet'], made, env, BUILD_MS_MAX);
    return { example: [join(made, 'target/debug/send')], probe: [join(made, 'target/debug/probe')] };
  },
};

function folderOfRust(folder: string): string {
  return join(CACHE, `rust-${hashOf(readFileSync(join(folder, 'Cargo.lock')))}`);
}

/** Installs a language's client and runs its example and its probe with `env`. */
export async function run(
  { folder, install, build }: Language,
  env: () => Promise<Variables>,
): Promise<Outcome> {
  using copy = temporaryFolder();
  cpSync(join(EXAMPLES, folder), copy.path, { recursive: true });
  cpSync(import.meta.dir, copy.path, { recursive: true });
  try {
    await install(copy.path);
  } catch (error) {
    return { kind: 'absent', reason: error instanceof Error ? error.message : String(error) };
  }
  const ready = await build(copy.path);
  const variables = { ...(await env()), ...ready.env };
  const example = await output(ready.example, copy.path, variables, RUN_MS_MAX);
  const seen = await output(ready.probe, copy.path, { ...variables, PROBE: '1' }, RUN_MS_MAX);
  return { kind: 'ran', example, seen: JSON.parse(seen) };
}

/** What a command printed; throws what it complained of. */
async function output(
  command: readonly string[],
  cwd: string,
  env: Variables = {},
  timeout = INSTALL_MS_MAX,
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout,
  });
  const [code, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  if (code !== 0) throw new Error(stderr.trim() || `${command.join(' ')} ended with ${code}`);
  return stdout;
}

function hashOf(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
