import { join } from 'node:path';
import type { Command, World } from '../frame/command.ts';
import { createLines } from '../frame/streams.ts';

const MINUTE = 60_000;
/** Files with this name take long or repeat what a shorter test proves, at scale: storms, clusters, pictures, other languages. */
const LONG_TESTS = '**/*.long.test.{ts,tsx}';
/** Durations of test files as the runner keeps them: it starts the slowest first. */
const TIMINGS = 'node_modules/.cache/sluice-test-timings.json';
const SLOWEST_SHOWN = 5;

export const verify: Command = {
  words: 'verify',
  operands: [],
  options: ['all'],
  summary:
    'Install what the tests need, check types, lint and format, and run the tests; --all runs the long ones too.',
  act: async ({ flags, world }) => {
    await prepare(world);
    return { kind: 'ended', code: await verifyProject(world, flags.has('all')) };
  },
};

async function prepare(world: World) {
  const missing = await installSystemPackages(SYSTEM_PROGRAMS, {
    has: (command) => Bun.which(command) !== null,
    isRoot: process.getuid?.() === 0,
    run: async (title, command) => (await runStep({ title, command, msMax: 4 * MINUTE }, world)) === 0,
  });
  if (missing.length === 0) return;
  const names = missing.join(' ');
  world.out(
    `\nNot installed: ${names}. Tests that need them say so; install them with: sudo apt-get install ${names}\n`,
  );
}

type Project = Pick<World, 'root' | 'env' | 'out'>;

/**
 * Checks types, lint and format of the project at `root` and runs its tests, each whatever the others found.
 * The last line is `N passed, M failed`; gives the exit code that goes with it.
 */
export async function verifyProject(project: Project, all: boolean): Promise<0 | 1> {
  const bun = process.execPath;
  const checks = [
    { title: 'types', command: [bun, 'check', '--no-script'] },
    { title: 'lint', command: [bun, join(project.root, 'node_modules/oxlint/bin/oxlint')] },
    { title: 'format', command: [bun, 'fmt', '--no-script', '--check'] },
  ];
  let failed = 0;
  for (const check of checks)
    if ((await runStep({ ...check, msMax: 3 * MINUTE }, project)) !== 0) failed += 1;
  const tests = await runTests(project, all);
  project.out(`\n${tests.passed} passed, ${tests.failed + failed} failed\n`);
  return tests.failed + failed === 0 ? 0 : 1;
}

async function runTests({ root, env, out }: Project, all: boolean) {
  const tests = createTestSummary();
  // What a quiet machine does in a second may take a busy one six: the runner's own five would fail tests for that.
  // Most of the time the tests wait: three files at once keep two cores busy.
  const command = [process.execPath, 'test', '--parallel=3', '--timeout', '20000'];
  command.push('--timings', TIMINGS, '--update-timings');
  if (!all) command.push('--path-ignore-patterns', LONG_TESTS);
  const step = { title: 'tests', command, msMax: (all ? 45 : 20) * MINUTE };
  const code = await runStep(
    step,
    { root, out, env: all ? { ...env, SLUICE_SDK_RUST: '1' } : env },
    tests.add,
  );
  const { summary } = tests;
  if (!summary.ran) out('\nThe test runner did not come to its end.\n');
  if (summary.skipped > 0) out(`\n${summary.skipped} tests were skipped; each says why above.\n`);
  for (const failure of summary.failures) out(`\n${failure}\n`);
  out(await slowest(join(root, TIMINGS), summary.files));
  return { passed: summary.passed, failed: failuresOf(summary, code) };
}

/** The slowest of `files`, or nothing when the runner did not come to its end. */
async function slowest(timings: string, files: ReadonlySet<string>): Promise<string> {
  const kept = Bun.file(timings);
  if (!(await kept.exists())) return '';
  const { files: ms }: { files: Record<string, number> } = await kept.json();
  const rows = Object.entries(ms)
    .filter(([path]) => files.has(path))
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SLOWEST_SHOWN)
    .map(([path, each]) => `${(each / 1_000).toFixed(1).padStart(7)} s  ${path}\n`);
  return rows.length === 0 ? '' : `\nSlowest files:\n${rows.join('')}`;
}

/** One program of the verification, run to its end or to its deadline. */
type Step = Readonly<{ title: string; command: readonly string[]; msMax: number }>;

/**
 * Runs a step in the project's root and passes its output on as it comes; `line` sees every line of it. Gives the exit code,
 * or `null` when the step was killed.
 */
export async function runStep(
  { title, command, msMax }: Step,
  { root, env, out }: Project,
  line: (text: string) => void = () => {},
): Promise<number | null> {
  out(`\n== ${title}\n`);
  const child = Bun.spawn([...command], {
    cwd: root,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: msMax,
    killSignal: 'SIGKILL',
  });
  await Promise.all([pass(child.stdout), pass(child.stderr), child.exited]);
  if (child.signalCode !== null)
    out(`${title} was killed (${child.signalCode}); the limit is ${msMax / 1_000} s.\n`);
  return child.exitCode;

  async function pass(stream: ReadableStream<Uint8Array>) {
    const decoder = new TextDecoder();
    const feed = createLines(line);
    for await (const bytes of stream) {
      out(decoder.decode(bytes, { stream: true }));
      feed(bytes);
    }
  }
}

/** A program that the tests drive, the names it goes by and the Debian package that brings it. */
type SystemProgram = Readonly<{ names: readonly string[]; package: string }>;

export const SYSTEM_PROGRAMS: readonly SystemProgram[] = [
  { names: ['redis-server'], package: 'redis-server' },
  { names: ['chromium', 'chromium-browser', 'google-chrome'], package: 'chromium' },
];

/** What this file asks of the machine. `run` gives whether the command succeeded. */
type Machine = Readonly<{
  has(command: string): boolean;
  isRoot: boolean;
  run(title: string, command: readonly string[]): Promise<boolean>;
}>;

/**
 * Installs the programs that are missing through apt, as root or with a sudo that asks no password.
 * Gives the packages that are missing still, each to be named to the user. Never rejects.
 */
export async function installSystemPackages(
  programs: readonly SystemProgram[],
  machine: Machine,
): Promise<readonly string[]> {
  const missing = () =>
    programs.filter(({ names }) => !names.some(machine.has)).map((program) => program.package);
  const wanted = missing();
  if (wanted.length === 0 || !machine.has('apt-get')) return wanted;
  const asRoot = machine.isRoot ? [] : ['sudo', '-n'];
  if (!machine.isRoot && !(machine.has('sudo') && (await machine.run('sudo', ['sudo', '-n', 'true']))))
    return wanted;
  const apt = [...asRoot, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q'];
  if (!(await machine.run('package lists (apt-get update)', [...apt, 'update']))) return wanted;
  for (const name of wanted)
    await machine.run(`package ${name} (apt-get install)`, [
      ...apt,
      'install',
      '-y',
      '--no-install-recommends',
      name,
    ]);
  return missing();
}

/** Lines kept of what was printed before a failure, and failures kept. */
const LINES_MAX = 40;
const FAILURES_MAX = 20;

/** What `bun test` said of itself. */
type TestSummary = {
  passed: number;
  failed: number;
  skipped: number;
  /** Whether it came to its end. */
  ran: boolean;
  /** The first failed tests and files, each with its file and the lines that led to it. */
  failures: string[];
  files: Set<string>;
};

/** Reads the runner's output line by line. Colours are ignored. */
export function createTestSummary() {
  const summary: TestSummary = {
    passed: 0,
    failed: 0,
    skipped: 0,
    ran: false,
    failures: [],
    files: new Set(),
  };
  let file = '';
  let recent: string[] = [];

  function add(line: string) {
    const text = Bun.stripANSI(line);
    if (/^Ran \d+ tests? across \d+ files?\./.test(text)) summary.ran = true;
    const [, digits, what] = /^ *(\d+) (pass|fail|skip|todo)$/.exec(text) ?? [];
    if (what !== undefined) count(what, Number(digits));
    else collect(text);
  }

  function count(what: string, number: number) {
    unhandledError();
    if (what === 'pass') summary.passed = number;
    else if (what === 'fail') summary.failed = number;
    else summary.skipped += number;
  }

  function collect(text: string) {
    const opened = /^(\S+\.test\.tsx?):$/.exec(text)?.[1];
    if (opened !== undefined) {
      unhandledError();
      file = opened;
      summary.files.add(file);
      recent = [];
      return;
    }
    recent = [...recent, text].slice(-LINES_MAX);
    // At its end the runner lists every failure again, without what led to it.
    if (text.startsWith('(fail)') && !recent.some((each) => /^\d+ tests? failed:$/.test(each))) failure();
    if (/^\((?:pass|skip|todo)\)/.test(text)) recent = [];
  }

  /** An error outside of every test has no line `(fail)`. */
  function unhandledError() {
    if (recent.some((each) => each.startsWith('# Unhandled error'))) failure();
  }

  function failure() {
    if (summary.failures.length < FAILURES_MAX) summary.failures.push([`${file}:`, ...recent].join('\n'));
    recent = [];
  }

  return { summary, add };
}

/** Failures to report: what the runner counted, and one more when it crashed or left with an error it did not count. */
export function failuresOf({ ran, failed }: TestSummary, exitCode: number | null): number {
  return failed + (!ran || (exitCode !== 0 && failed === 0) ? 1 : 0);
}
