import { randomBytes } from 'node:crypto';
import { bunComplaint } from '../shared/bun-version.ts';
import { configPathFrom } from '../shared/config-path.ts';

// Nothing more is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) refuse(complaint);
const at = configPathFrom(process.argv.slice(2), 'deploys');
if (at.kind === 'unusable') refuse(...at.lines);

const { runDeploys } = await import('./run.ts');
process.exit(await runDeploys(at.path, process.env, process.env['SLUICE_SUPERVISED'] === '1', randomBytes));

function refuse(...lines: readonly string[]): never {
  for (const line of lines) console.error(line);
  process.exit(1);
}
