import type { Command, World } from '../command.ts';
import { verifyProject } from '../verify/project.ts';
import { runStep } from '../verify/step.ts';
import { installSystemPackages, SYSTEM_PROGRAMS } from '../verify/system-packages.ts';

const MINUTE = 60_000;

export const verify: Command = {
  words: 'verify',
  operands: [],
  options: [],
  summary: 'Install what the tests need, then check types, lint and format and run every test.',
  act: async ({ world }) => {
    await prepare(world);
    return { kind: 'ended', code: await verifyProject(world) };
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
