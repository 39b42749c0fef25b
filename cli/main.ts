import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';
import { bunComplaint, exit } from '../shared/process.ts';

// Nothing else may be imported before the version is known and the packages are there.
const complaint = bunComplaint(process.versions.bun);
if (complaint !== undefined) exit([complaint]);

const root = dirname(import.meta.dirname);
const argv = process.argv.slice(2);
const { installPackages, packagesAreStale } = await import('./packages.ts');
if (argv[0] === 'start' || argv[0] === 'verify' || packagesAreStale(root)) {
  const problem = await installPackages(root, process.env, (text) => process.stderr.write(text));
  if (problem !== undefined) exit([problem]);
}

const [{ run }, { systemClock }, { firstLine, hasRoom }] = await Promise.all([
  import('./run.ts'),
  import('../shared/clock.ts'),
  import('./frame/streams.ts'),
]);
process.exitCode = await run({
  argv,
  env: process.env,
  root,
  clock: systemClock,
  random: randomBytes,
  line: () => firstLine(Bun.stdin.stream()),
  out: (text) => process.stdout.write(text),
  hasRoom: () => hasRoom(process.stdout),
  err: (text) => process.stderr.write(text),
});
