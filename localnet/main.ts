import { randomBytes } from 'node:crypto';
import { bunComplaint, configPathFrom } from '../shared/process.ts';

// Nothing more is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) refuse(complaint);
const at = configPathFrom(process.argv.slice(2), 'localnet');
if (at.kind === 'unusable') refuse(...at.lines);

const { settleOutputs } = await import('../shared/log.ts');
const { runLocalnet } = await import('./run.ts');
const supervised = process.env['SLUICE_SUPERVISED'] === '1';
const code = await runLocalnet({ path: at.path, env: process.env, supervised, random: randomBytes });
await settleOutputs();
process.exit(code);

function refuse(...lines: readonly string[]): never {
  for (const line of lines) process.stderr.write(`${line}\n`);
  process.exit(1);
}
