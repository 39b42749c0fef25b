import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Command, World } from '../frame/command.ts';
import { createLines } from '../frame/streams.ts';

const MINUTE = 60_000;
/** Files with this name take long or repeat what a shorter test proves, at scale: storms, clusters, pictures, other languages. */
const LONG_TESTS = '**/*.long.test.{ts,tsx}';
/** Durations of test files as the runner keeps them: it starts the slowest first. */
const TIMINGS = 'node_modules/.cache/sluice-test-timings.json';
const SLOWEST_SHOWN = 5;
/** Half of the time the tests wait, for processes and for what must not come; more at once run into their limits. */
const FILES_AT_ONCE = Math.min(8, 1 + availableParallelism());

export const verify: Command = {
  words: 'verify',
  operands: [],
  options: ['all'],
  summary:
    'Install what the tests need, check types, lint and format, and run the tests; --all runs the long ones too.',
  act: async ({ options, world }) => {
    const missing = await installSystemPackages({
      has: (command) => Bun.which(command) !== null,
      isRoot: process.getuid?.() === 0,
      run: async (title, command) => (await runStep({ title, command, msMax: 4 * MINUTE }, world)).code === 0,
    });
    const names = missing.join(' ');
    if (missing.length > 0)
      world.out(
        `\nNot installed: ${names}. Tests that need them say so; install them with: sudo apt-get install ${names}\n`,
      );
    return { kind: 'ended', code: await verifyProject(world, options.all !== undefined) };
  },
};

type Project = Pick<World, 'root' | 'env' | 'out'>;

/** Checks types, lint and format and runs the tests, each whatever the others found; ends with `N passed, M failed` and its exit code. */
export async function verifyProject(project: Project, all: boolean): Promise<0 | 1> {
  const bun = process.execPath;
  const checks = [
    { title: 'types', command: [bun, 'check', '--no-script'] },
    { title: 'lint', command: [bun, join(project.root, 'node_modules/oxlint/bin/oxlint')] },
    { title: 'format', command: [bun, 'fmt', '--no-script', '--check'] },
  ];
  let failed = 0;
  for (const check of checks)
    if ((await runStep({ ...check, msMax: 3 * MINUTE }, project)).code !== 0) failed += 1;
  const tests = await runTests(project, all);
  project.out(`\n${tests.passed} passed, ${tests.failed + failed} failed\n`);
  return tests.failed + failed === 0 ? 0 : 1;
}

async function runTests({ root, env, out }: Project, all: boolean) {
  // What a quiet machine does in a second may take a busy one six: the runner's own five would fail tests for that.
  const command = [process.execPath, 'test', `--parallel=${FILES_AT_ONCE}`, '--timeout', '20000'];
  command.push('--timings', TIMINGS, '--update-timings');
  if (!all) command.push('--path-ignore-patterns', LONG_TESTS);
  const step = { title: 'tests', command, msMax: (all ? 45 : 20) * MINUTE };
  const { code, lines } = await runStep(step, {
    root,
    out,
    env: all ? { ...env, SLUICE_SDK_RUST: '1' } : env,
  });
  const summary = summaryOf(lines.join('\n'), code);
  if (!summary.ran) out('\nThe test runner did not come to its end.\n');
  if (summary.skipped > 0) out(`\n${summary.skipped} tests were skipped; each says why above.\n`);
  for (const failure of summary.failures) out(`\n${failure}\n`);
  out(await slowest(join(root, TIMINGS), summary.files));
  return summary;
}

/** The slowest of `files`, or nothing when the runner did not come to its end. */
async function slowest(timings: string, files: readonly string[]): Promise<string> {
  const kept = Bun.file(timings);
  if (!(await kept.exists())) return '';
  const { files: ms }: { files: Record<string, number> } = await kept.json();
  const rows = Object.entries(ms)
    .filter(([path]) => files.includes(path))
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, SLOWEST_SHOWN)
    .map(([path, each]) => `${(each / 1_000).toFixed(1).padStart(7)} s  ${path}\n`);
  return rows.length === 0 ? '' : `\nSlowest files:\n${rows.join('')}`;
}

/** One program of the verification, run to its end or to its deadline. */
type Step = Readonly<{ title: string; command: readonly string[]; msMax: number }>;

/** Runs a step in the project's root and passes its output on. Gives its lines and its exit code, `null` when it was killed. */
async function runStep({ title, command, msMax }: Step, { root, env, out }: Project) {
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
  const lines: string[] = [];
  await Promise.all([pass(child.stdout), pass(child.stderr), child.exited]);
  if (child.signalCode !== null)
    out(`${title} was killed (${child.signalCode}); the limit is ${msMax / 1_000} s.\n`);
  return { code: child.exitCode, lines };

  async function pass(stream: ReadableStream<Uint8Array>) {
    const decoder = new TextDecoder();
    const feed = createLines((line) => lines.push(line));
    for await (const bytes of stream) {
      out(decoder.decode(bytes, { stream: true }));
      feed(bytes);
    }
  }
}

/**
 * Programs that the tests drive: the commands that will do and the Debian packages that bring one, the best first. Chromium without
 * its windows takes a third of the CPU time of the whole one.
 */
export const BROWSERS = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];
const SYSTEM_PROGRAMS = [
  { names: ['redis-server'], packages: ['redis-server'] },
  { names: BROWSERS, packages: ['chromium-headless-shell', 'chromium'] },
];

/** The parts of the machine that are needed. `run` gives whether the command succeeded. */
type Machine = Readonly<{
  has(command: string): boolean;
  isRoot: boolean;
  run(title: string, command: readonly string[]): Promise<boolean>;
}>;

/** Installs missing programs by apt, as root or by a sudo without password; gives the packages that are missing still. Never rejects. */
export async function installSystemPackages({ has, isRoot, run }: Machine): Promise<readonly string[]> {
  const isThere = ({ names }: Readonly<{ names: readonly string[] }>) => names.some(has);
  const missing = () =>
    SYSTEM_PROGRAMS.flatMap((program) => (isThere(program) ? [] : program.packages.slice(-1)));
  const wanted = missing();
  if (wanted.length === 0 || !has('apt-get')) return wanted;
  const sudo = isRoot ? [] : ['sudo', '-n'];
  if (!isRoot && !(has('sudo') && (await run('sudo', [...sudo, 'true'])))) return wanted;
  const apt = [...sudo, 'env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', '-q'];
  if (!(await run('package lists (apt-get update)', [...apt, 'update']))) return wanted;
  const install = [...apt, 'install', '-y', '--no-install-recommends'];
  for (const program of SYSTEM_PROGRAMS)
    for (const name of program.packages)
      if (!isThere(program)) await run(`package ${name} (apt-get install)`, [...install, name]);
  return missing();
}

/** Lines kept of what was printed before a failure, and failures kept. */
const LINES_MAX = 40;
const FAILURES_MAX = 20;

/**
 * Reads what `bun test` said of itself, without its colours, by its exit code. `failures` are the first failed tests and files,
 * each with its file and the lines that led to it. A run that crashed, or left with an error that it did not count, has
 * one failure more than it counted.
 */
export function summaryOf(output: string, exitCode: number | null) {
  const text = Bun.stripANSI(output);
  const count = (what: string) =>
    Number(
      text
        .match(new RegExp(`^ *\\d+ ${what}$`, 'gm'))
        ?.at(-1)
        ?.match(/\d+/) ?? 0,
    );
  const ran = /^Ran \d+ tests? across \d+ files?\./m.test(text);
  const failed = count('fail');
  // At its end the runner lists every failure again, without what led to it, and counts.
  const [report = ''] = text.split(/^(?:\d+ tests? failed:| *\d+ (?:pass|skip|todo|fail))$/m, 1);
  const sections = report
    .split(/^(?=\S+\.test\.tsx?:$)/m)
    .filter((section) => /^\S+\.test\.tsx?:\n/.test(section));
  return {
    ran,
    passed: count('pass'),
    failed: failed + (!ran || (exitCode !== 0 && failed === 0) ? 1 : 0),
    skipped: count('skip') + count('todo'),
    files: sections.map((section) => section.slice(0, section.indexOf(':\n'))),
    failures: sections.flatMap(failuresIn).slice(0, FAILURES_MAX),
  };
}

/** The failed tests of a file, and an error outside of every test, which has no line `(fail)`. */
function failuresIn(section: string): readonly string[] {
  const [file = '', ...lines] = section.trimEnd().split('\n');
  const tests = lines.join('\n').split(/(?<=^\((?:pass|fail|skip|todo)\).*)\n/m);
  return tests
    .filter((test) => /^\(fail\)/m.test(test) || /^# Unhandled error(?![^]*^\()/m.test(test))
    .map((test) => [file, ...test.split('\n').slice(-LINES_MAX)].join('\n'));
}
