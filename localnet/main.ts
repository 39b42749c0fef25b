import { randomBytes } from 'node:crypto';
import { runApp } from '../shared/process.ts';

await runApp('localnet', process.env, async (how) => {
  const { runLocalnet } = await import('./run.ts');
  return runLocalnet(how, randomBytes);
});
