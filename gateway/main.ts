import { runApp } from '../shared/process.ts';

await runApp('gateway', process.env, async (how) => {
  // Without a handler SIGHUP ends the process. One that comes before run.ts listens for it is made up for there: the file is
  // compared with what was read.
  process.on('SIGHUP', () => undefined);
  const { startGateway } = await import('./run.ts');
  const { supervisorLinkFrom, WORKER_VARIABLE } = await import('./workers.ts');
  const link = supervisorLinkFrom(process.env[WORKER_VARIABLE], process);
  return startGateway({
    ...how,
    random: Math.random,
    fillRandom: (bytes) => crypto.getRandomValues(bytes),
    makeId: () => crypto.randomUUID(),
    link,
  });
});
