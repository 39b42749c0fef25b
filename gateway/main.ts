import { bunComplaint, configPathFrom } from '../shared/process.ts';

// Nothing more is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) exit([complaint]);
const at = configPathFrom(process.argv.slice(2), 'gateway');
if (at.kind === 'unusable') exit(at.lines);

// Without a handler SIGHUP ends the process. One that comes before run.ts listens for it is made up for there: the file is
// compared with what was read.
process.on('SIGHUP', () => undefined);
const { settleOutputs } = await import('../shared/log.ts');
const { fileComplaint } = await import('../shared/store/private.ts');
const { startGateway } = await import('./run.ts');
const { supervisorLinkFrom, WORKER_VARIABLE } = await import('./workers.ts');
const complaints = await startGateway({
  configPath: at.path,
  env: process.env,
  supervised: process.env['SLUICE_SUPERVISED'] === '1',
  random: Math.random,
  makeId: () => crypto.randomUUID(),
  link: supervisorLinkFrom(process.env[WORKER_VARIABLE], process),
}).catch((error) => [fileComplaint(error)]);
await settleOutputs();
exit(complaints);

function exit(complaints: readonly string[]): never {
  for (const line of complaints) process.stderr.write(`${line}\n`);
  process.exit(complaints.length === 0 ? 0 : 1);
}
