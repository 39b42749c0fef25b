import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { bunComplaint } from '../shared/bun-version.ts';

// Nothing of the app is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) {
  console.error(complaint);
  process.exit(1);
}

const { runLocalnet } = await import('./run.ts');
const supervised = process.env['SLUICE_SUPERVISED'] === '1';
process.exit(await runLocalnet({ path: configPath(), env: process.env, supervised, random: randomBytes }));

function configPath(): string | undefined {
  try {
    return parseArgs({ options: { config: { type: 'string' } }, strict: true }).values.config;
  } catch (error) {
    console.error(error instanceof Error ? error.message : 'The arguments cannot be read.');
    console.error('Usage: bun localnet/main.ts [--config FILE]');
    process.exit(1);
  }
}
