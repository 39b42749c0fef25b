import { join } from 'node:path';
import type { World } from '../command.ts';
import { runStep, type Step } from './step.ts';
import { failuresOf, summaryAfter, type TestSummary } from './test-summary.ts';

const MINUTE = 60_000;

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
  let summary: TestSummary | undefined;
  // What a quiet machine does in a second may take a busy one six: the runner's own five would fail tests for that.
  const command = [process.execPath, 'test', '--coverage', '--timeout', '20000'];
  const step = { title: 'tests', command, msMax: 16 * MINUTE };
  const { code } = await runStep(step, world, (line) => {
    summary = summaryAfter(summary, line);
  });
  if (summary === undefined || !summary.ran) world.out('\nThe test runner did not come to its end.\n');
  if (summary !== undefined && summary.skipped > 0)
    world.out(`\n${summary.skipped} tests were skipped; each says why above.\n`);
  return { passed: summary?.passed ?? 0, failed: failuresOf(summary ?? summaryAfter(undefined, ''), code) };
}
