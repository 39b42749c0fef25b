import { join } from 'node:path';
import { storm } from '../../test/deploys/delivery/storm.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { printedInside } from './webhook-started.ts';
import type { StormSeen } from './webhook-storm-world.ts';

const LIMIT_MS = 600_000;

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `Two storms of SIGKILL, of the queue with its worker and of the whole app: nothing may be lost or doubled.
About five minutes; needs root or unprivileged user namespaces.`,
  options: { kills: { value: 'N', help: 'in each storm', least: 1, most: 1_000, preset: 100 } },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

/** Whether nothing was lost, and nothing sent under a second id. */
async function measure({ signal, number, progress, table, say }: OwnRun): Promise<boolean> {
  const kills = number('kills');
  progress('the app over HTTPS');
  const world = join(import.meta.dir, 'webhook-storm-world.ts');
  const app: StormSeen = await printedInside(world, [kills], signal);
  progress('the queue and its worker');
  const queue = await storm(kills);
  const wrong = [...queue.lost, ...queue.doubled, ...queue.unrecorded, ...app.lost, ...app.doubled];
  const row = (name: string, seen: Omit<StormSeen, 'events'>) => [
    name,
    ...[seen.kills, seen.upgrades, seen.deliveries, seen.posts, seen.interrupted].map(String),
    ...[seen.lost.length, seen.doubled.length].map(String),
  ];
  table([
    ['', 'kills', 'upgrades', 'deliveries', 'POSTs', 'interrupted', 'lost', 'doubled'],
    row('queue and worker', queue),
    row('the app over HTTPS', app),
  ]);
  say(wrong.length === 0 ? 'met: nothing lost, nothing under a second id' : `NOT MET: ${wrong.join(', ')}`);
  return wrong.length === 0;
}
