import { join } from 'node:path';
import type { Command, World } from '../command.ts';
import { runStep, type Step } from '../verify/step.ts';
import { installSystemPackages, SYSTEM_PROGRAMS } from '../verify/system-packages.ts';
import { failuresOf, summaryAfter, type TestSummary } from '../verify/test-summary.ts';

const MINUTE = 60_000;

export const verify: Command = {
  words: 'verify',
  operands: [],
  options: [],
  summary: 'Install what the tests need, then check types, lint and format and run every test.',
  act: async ({ world }) => {
    await prepare(world);
    let failed = 0;
    for (const step of checksOf(world.root)) if ((await runStep(step, world)).code !== 0) failed += 1;
    const tests = await runTests(world);
    world.out(`\n${tests.passed} passed, ${tests.failed + failed} failed\n`);
    return { kind: 'ended', code: tests.failed + failed === 0 ? 0 : 1 };
  },
};

async function prepare(world: World) {
  const missing = await installSystemPackages(SYSTEM_PROGRAMS, {
    has: (command) => Bun.which(command) !== null,
    isRoot: process.getuid?.() === 0,
    run: async (title, command) => (await runStep({ title, command, msMax: 4 * MINUTE }, world)).code === 0,
  });
  if (missing.length === 0) return;
  const names = missing.join(' ');
  world.out(
    `\nNot installed: ${names}. Tests that need it say so; install it with: sudo apt-get install ${names}\n`,
  );
}

/** Every check before the tests; each that fails counts as one failure. */
function checksOf(root: string): readonly Step[] {
  const bun = process.execPath;
  return [
    { title: 'types', command: [bun, 'check', '--no-script'], msMax: 3 * MINUTE },
    { title: 'lint', command: [bun, join(root, 'node_modules/oxlint/bin/oxlint')], msMax: 2 * MINUTE },
    { title: 'format', command: [bun, 'fmt', '--no-script', '--check'], msMax: 2 * MINUTE },
  ];
}

async function runTests(world: World): Promise<Readonly<{ passed: number; failed: number }>> {
  let summary: TestSummary | undefined;
  const step = { title: 'tests', command: [process.execPath, 'test', '--coverage'], msMax: 12 * MINUTE };
  const { code } = await runStep(step, world, (line) => {
    summary = summaryAfter(summary, line);
  });
  if (summary === undefined || !summary.ran) world.out('\nThe test runner did not come to its end.\n');
  if (summary !== undefined && summary.skipped > 0)
    world.out(`\n${summary.skipped} tests were skipped; each says why above.\n`);
  return { passed: summary?.passed ?? 0, failed: failuresOf(summary ?? summaryAfter(undefined, ''), code) };
}
