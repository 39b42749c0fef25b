import { join } from 'node:path';
import { storm } from '../../test/deploys/delivery/storm.ts';
import { createNamespace } from '../../test/deploys/delivery/namespace/network.ts';
import { runBench, tableOf } from './report.ts';
import type { StormSeen } from './webhook-storm-world.ts';

/** Two storms: of the queue and its worker, kills within some milliseconds, and of the whole app. */
const KILLS = Number(process.argv[2] ?? 100);
const LIMIT_MS = 600_000;

if (import.meta.main) {
  let isGood = false;
  const code = await runBench(import.meta.path, LIMIT_MS, async (signal) => {
    isGood = await measure(signal);
  });
  process.exit(isGood ? code : 1);
}

/** Whether nothing was lost, and nothing sent under a second id. */
async function measure(signal: AbortSignal): Promise<boolean> {
  using namespace = createNamespace();
  const reason = namespace.reasonAgainst();
  if (reason !== undefined) throw new Error(`this bench needs a network namespace: ${reason}`);
  const queue = await storm(KILLS);
  const command = namespace.inside(
    process.execPath,
    join(import.meta.dir, 'webhook-storm-world.ts'),
    String(KILLS),
  );
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit', signal });
  const app: StormSeen = JSON.parse(await child.stdout.text());
  const wrong = [...queue.lost, ...queue.doubled, ...queue.unrecorded, ...app.lost, ...app.doubled];
  const row = (name: string, seen: Omit<StormSeen, 'events'>) => [
    name,
    ...[seen.kills, seen.upgrades, seen.deliveries, seen.posts, seen.interrupted].map(String),
    ...[seen.lost.length, seen.doubled.length].map(String),
  ];
  console.log(
    tableOf([
      ['', 'kills', 'upgrades', 'deliveries', 'POSTs', 'interrupted', 'lost', 'doubled'],
      row('queue and worker', queue),
      row('the app over HTTPS', app),
    ]),
  );
  console.log(
    wrong.length === 0 ? '\nmet: nothing lost, nothing under a second id' : `\nNOT MET: ${wrong.join(', ')}`,
  );
  return wrong.length === 0;
}
