import { bunComplaint } from '../shared/bun-version.ts';
import { configPathFrom } from '../shared/config-path.ts';

// Nothing more is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) refuse(complaint);
const at = configPathFrom(process.argv.slice(2), 'gateway');
if (at.kind === 'unusable') refuse(...at.lines);

const { runGateway } = await import('./run.ts');
process.exit(await runGateway(at.path, process.env, process.env['SLUICE_SUPERVISED'] === '1', Math.random));

function refuse(...lines: readonly string[]): never {
  for (const line of lines) console.error(line);
  process.exit(1);
}
