import { parseArgs } from 'node:util';
import { bunComplaint } from '../shared/bun-version.ts';

// Nothing of the app is imported before the version is known: an older Bun may fail on the imports themselves.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) {
  console.error(complaint);
  process.exit(1);
}

const { values } = parseArgs({ options: { config: { type: 'string' } }, strict: true });
const supervised = process.env['SLUICE_SUPERVISED'] === '1';
if (process.env['SLUICE_GATEWAY_CHILD'] === '1') {
  const { runGateway } = await import('./run.ts');
  process.exit(await runGateway(values.config, process.env, supervised));
} else {
  const { superviseGateway } = await import('./supervise.ts');
  process.exit(await superviseGateway(import.meta.path, process.argv.slice(2), process.env, supervised));
}
