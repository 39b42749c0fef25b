import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createReadings } from '../../../deploys/watch/readings.ts';
import { systemClock } from '../../../shared/clock.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { queueOver } from '../outbox/queue.ts';

/** What is left after a storm; each list of what went wrong is empty when nothing did. */
export type Aftermath = Readonly<{
  kills: number;
  upgrades: number;
  deliveries: number;
  posts: number;
  interrupted: number;
  /** Upgrades that were stored, and webhooks that were not told of them. */
  lost: readonly string[];
  /** Upgrades that a webhook heard of under two ids, or ids with two bodies. */
  doubled: readonly string[];
  /** Posts without an attempt that was written before them. */
  unrecorded: readonly string[];
}>;

const WEBHOOKS = ['one', 'two', 'three'];
/** Leases are over by then, and first retries due. */
const AHEAD_MS = 40_000;
/** A child is killed within so long of its first line. */
const LIFE_MS_MAX = 90;

type Post = Readonly<{ id: string; webhook: string; slot: number; body: string }>;

/** Starts a child, kills it with SIGKILL at a random point of its work, and does so again, `rounds` times. */
export async function storm(rounds: number): Promise<Aftermath> {
  using folder = temporaryFolder();
  const [database, receiver] = [join(folder.path, 'sluice.db'), join(folder.path, 'posts')];
  const first = opened(database, DEPLOYS_MIGRATIONS);
  for (const id of WEBHOOKS) queueOver(first).addWebhook(id);
  first.close();
  const told = new Set<number>();
  for (let round = 0; round < rounds; round++) {
    const args = [database, receiver, String(round * AHEAD_MS)];
    for (const slot of await killed(args)) told.add(slot);
  }

  using store = opened(database, DEPLOYS_MIGRATIONS);
  const queue = queueOver(store);
  // What a killed child had no time to print is stored all the same when its reading is.
  const newest = Math.max(0, ...[...createReadings(store).deploySlots().values()].map(Number));
  const stored = Array.from({ length: newest - 1 }, (_, i) => i + 2);
  const open = drain(queue, systemClock.now() + rounds * AHEAD_MS);
  const lines = existsSync(receiver) ? readFileSync(receiver, 'utf8').trimEnd().split('\n') : [];
  const posts = lines.map((line) => postFrom(line, queue));
  const count = (sql: string) => Number(queue.values(sql)[0]?.[0]);
  return {
    kills: rounds,
    upgrades: stored.length,
    deliveries: count('SELECT count(*) FROM deliveries'),
    posts: posts.length,
    interrupted: count("SELECT count(*) FROM attempts WHERE state = 'interrupted'"),
    lost: [
      ...open,
      ...[...told].filter((slot) => slot > newest).map((slot) => `slot ${slot} was not stored`),
      ...stored.flatMap((slot) => untold(slot, queue)),
    ],
    doubled: doubledIn(posts),
    unrecorded: unrecordedIn(posts, queue),
  };
}

type Queue = ReturnType<typeof queueOver>;

/** Runs a child to its random end; gives the slots it said were stored. */
async function killed(args: readonly string[]): Promise<number[]> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'storm-child.ts'), ...args], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  let printed = '';
  const decoder = new TextDecoder();
  for await (const chunk of child.stdout) {
    if (printed === '') setTimeout(() => child.kill('SIGKILL'), Math.random() * LIFE_MS_MAX);
    printed += decoder.decode(chunk, { stream: true });
  }
  await child.exited;
  if (child.signalCode !== 'SIGKILL') throw new Error(`the child ended by itself with ${child.exitCode}`);
  return printed.slice(0, printed.lastIndexOf('\n')).split('\n').map(Number);
}

/** A last process that lives: every receiver answers. Gives what did not come to an end. */
function drain(queue: Queue, fromMs: number): string[] {
  queue.store.run(
    'INSERT OR IGNORE INTO block_times SELECT deploy_slot, 1700000000 + deploy_slot FROM events',
  );
  for (let nowMs = fromMs; ; nowMs += 7_200_000) {
    while (queue.outbox.release(nowMs) === 'more');
    queue.outbox.reap(nowMs, new Set());
    for (
      let claims = queue.outbox.claim(nowMs, []);
      claims.length > 0;
      claims = queue.outbox.claim(nowMs, [])
    )
      for (const claim of claims) queue.end(claim, answered(200), nowMs);
    if (queue.outbox.nextDueAtMs(nowMs) === undefined) break;
  }
  const left = queue.rows(`
    SELECT id, state FROM deliveries d WHERE state != 'delivered' AND NOT (state = 'failed' AND
      (SELECT count(*) FROM attempts a WHERE a.delivery_id = d.id AND a.state IN ('failed', 'interrupted')) = 6)`);
  return left.map((row) => JSON.stringify(row));
}

function untold(slot: number, queue: Queue): string[] {
  const told = queue.values(
    `SELECT webhook_id FROM deliveries WHERE event_id = (SELECT id FROM events WHERE deploy_slot = ${slot})`,
  );
  return WEBHOOKS.filter((id) => !told.flat().includes(id)).map((id) => `slot ${slot} for ${id}`);
}

function doubledIn(posts: readonly Post[]): string[] {
  const [idOf, bodyOf] = [new Map<string, string>(), new Map<string, string>()];
  return posts.flatMap(({ id, webhook, slot, body }) => {
    const about = `slot ${slot} for ${webhook}`;
    const isOther = (idOf.get(about) ?? id) !== id || (bodyOf.get(id) ?? body) !== body;
    idOf.set(about, id);
    bodyOf.set(id, body);
    return isOther ? [about] : [];
  });
}

function unrecordedIn(posts: readonly Post[], queue: Queue): string[] {
  const counts = new Map<string, number>();
  for (const { id } of posts) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts].flatMap(([id, count]) => {
    const attempts = queue.attemptsOf(id);
    // The sixth may be made again under its number.
    return count <= attempts.length || attempts.length === 6 ? [] : [`${count} posts of ${id}`];
  });
}

function postFrom(line: string, queue: Queue): Post {
  const [id = '', body = ''] = line.split(' ');
  const { data } = JSON.parse(Buffer.from(body, 'base64').toString());
  return { id, webhook: queue.find(id)?.webhookId ?? 'nobody', slot: data.deploy_slot, body };
}
