import { randomBytes } from 'node:crypto';
import { runApp } from '../shared/process.ts';

await runApp('deploys', process.env, async (how) => {
  // Without a handler SIGHUP ends the process. One that comes before run.ts listens for it is made up for there: the file is
  // compared with what was read.
  process.on('SIGHUP', () => undefined);
  const { runDeploys } = await import('./run.ts');
  return runDeploys(how, randomBytes);
});
