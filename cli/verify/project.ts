import { join } from 'node:path';
import type { World } from '../command.ts';
import { runStep, type Step } from './step.ts';
import { createTestSummary, failuresOf } from './test-summary.ts';

const MINUTE = 60_000;
const TESTS_MS_MAX = 30 * MINUTE;

/**
 * Checks types, lint and format of the project at `root` and runs its tests, each whatever the others found.
 * The last line is `N passed, M failed`; gives the exit code that goes with it.
 */
export async function verifyProject(world: Pick<World, 'root' | 'env' | 'out'>): Promise<0 | 1> {
  let failed = 0;
  for (const step of checksOf(world.root)) if ((await runStep(step, world)).code !== 0) failed += 1;
  const tests = await runTests(world);
  world.out(`\n${tests.passed} passed, ${tests.failed + failed} failed\n`);
  return tests.failed + failed === 0 ? 0 : 1;
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

async function runTests(
  world: Pick<World, 'root' | 'env' | 'out'>,
): Promise<Readonly<{ passed: number; failed: number }>> {
  const tests = createTestSummary();
  // What a quiet machine does in a second may take a busy one six: the runner's own five would fail tests for that.
  // Half of the time the tests wait: two files at once take two thirds of it on two cores.
  const command = [process.execPath, 'test', '--parallel=2', '--timeout', '20000'];
  const { code } = await runStep({ title: 'tests', command, msMax: TESTS_MS_MAX }, world, tests.add);
  const summary = tests.summary();
  if (!summary.ran) world.out('\nThe test runner did not come to its end.\n');
  if (summary.skipped > 0) world.out(`\n${summary.skipped} tests were skipped; each says why above.\n`);
  for (const failure of summary.failures) world.out(`\n${failure}\n`);
  return { passed: summary.passed, failed: failuresOf(summary, code) };
}
