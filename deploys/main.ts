import { randomBytes } from 'node:crypto';
import { bunComplaint, configPathFrom } from '../shared/process.ts';

// Nothing more is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) refuse(complaint);
const at = configPathFrom(process.argv.slice(2), 'deploys');
if (at.kind === 'unusable') refuse(...at.lines);

// Without a handler SIGHUP ends the process. One that comes before run.ts listens for it is made up for there: the file is
// compared with what was read.
process.on('SIGHUP', () => undefined);
const { settleOutputs } = await import('../shared/log.ts');
const { fileComplaint } = await import('../shared/store/private.ts');
const { runDeploys } = await import('./run.ts');
const supervised = process.env['SLUICE_SUPERVISED'] === '1';
const code = await runDeploys(at.path, process.env, supervised, randomBytes).catch((error) =>
  refuse(fileComplaint(error)),
);
await settleOutputs();
process.exit(code);

function refuse(...lines: readonly string[]): never {
  for (const line of lines) process.stderr.write(`${line}\n`);
  process.exit(1);
}
