import { expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { LEDGER_FILE } from '../../shared/ledger/schema.ts';
import { queueOver } from '../deploys/outbox/queue.ts';
import { result, type SeenCall } from '../fakes/backend.ts';
import { seeded } from '../fakes/seeded.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { waited } from '../started/host.ts';
import { ROOT } from '../started/process.ts';
import { end, type Host, isPublishing, startHosts } from './hosts.ts';

/** Each is the four kinds of trouble in a random order. Most of it is waiting, so two worlds have half of them each. */
const ORDERS = 20;
const SEEDS = [20_261_124, 20_261_125];
const KINDS = ['kill', 'move', 'restore', 'clock'] as const;
const SKEW_MS_MAX = 7_200_000;
const PATIENCE_MS = 30_000;
/** How long a revoked key may work. */
const REVOKED_MS = 1_000;
/** A load balancer leaves a gateway that said so often that it drains; while it asks, the gateway waits for calls. */
const LEAVES_AFTER = 3;

const HOLD = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["held"]}';

/** Two hosts with gateways, of which one is the home of deploys, and what must hold of them whatever happens. */
async function startWorld(random: () => number) {
  const hosts = await startHosts('[plans.ample]\nrps = 1_000_000\nburst = 1_000_000\n');
  const scratch = temporaryFolder();
  const skewFile = join(scratch.path, 'skew');
  const env = { BUN_OPTIONS: `--preload ${join(ROOT, 'test/started/skewed-clock.ts')}`, SKEW_FILE: skewFile };
  let [home, away] = [hosts.host(2, env), hosts.host(2, env)];
  const revoked: string[] = [];
  let revokedMs = Number.NEGATIVE_INFINITY;
  const attempted = new Map<number, Set<string>>();
  let gate: PromiseWithResolvers<void> | undefined;
  let slot = 0;
  let skewMs = 0;
  hosts.backend.script(async (seen: SeenCall) => {
    if (seen.text.includes('held')) await gate?.promise;
    return result(seen, '1');
  });

  const number = (below: number) => Math.floor(random() * below);
  const published = () => waited(isPublishing(home), PATIENCE_MS);
  /** The status of a call that is judged: one to a process that was killed just now is lost, and one that starts says 503. */
  async function status(host: Host, key: string): Promise<number> {
    let found = 0;
    await waited(async () => {
      found = await host.status(key).catch(() => 0);
      return found !== 0 && found !== 503;
    }, PATIENCE_MS);
    return found;
  }
  const becomes = (key: string, wanted: number) =>
    waited(
      async () => (await status(home, key)) === wanted && (await status(away, key)) === wanted,
      PATIENCE_MS,
    );

  await home.startDeploys();
  await waited(isPublishing(home), PATIENCE_MS);
  const good = await home.key('payer', 'ample');
  await home.startGateway();
  await away.startGateway();
  await becomes(good.key, 200);

  /** Stops a gateway while calls wait at its backend: each has its answer. */
  async function stopGateway(host: Host): Promise<void> {
    const { backend } = hosts;
    const before = backend.seen.length;
    gate = Promise.withResolvers();
    const calls = Array.from({ length: 6 }, (_, i) =>
      host.post(good.key, HOLD.replace('held', `held ${slot} ${i}`)),
    );
    await waited(() => backend.seen.length >= before + calls.length, PATIENCE_MS);
    host.gateway().kill('SIGTERM');
    await Bun.sleep(number(500)); // anywhere in its drain
    gate.resolve();
    const statuses = await Promise.all(calls.map(async (call) => (await call).status));
    expect(statuses).toEqual(calls.map(() => 200));
    expect(await host.gateway().exited).toBe(0);
  }

  /** An upgrade as the watcher of each deploys that runs finds it. */
  function upgrade(...running: readonly Host[]): number {
    slot++;
    for (const host of running) {
      const store = host.accounts();
      const queue = queueOver(store);
      if (queue.rows("SELECT id FROM webhooks WHERE id = 'hook'").length === 0) queue.addWebhook('hook');
      queue.upgrade('A', slot, Math.floor(Date.now() + skewMs));
      store.close();
    }
    return slot;
  }

  /** Notes under which ids each upgrade was sent; gives the slots that this host has sent. */
  function sentBy(host: Host): ReadonlySet<number> {
    const store = host.accounts();
    const rows = store
      .query<{ slot: number; id: string }, []>(
        `SELECT deploy_slot AS slot, deliveries.id AS id FROM attempts
         JOIN deliveries ON deliveries.id = delivery_id JOIN events ON events.id = event_id`,
      )
      .all();
    store.close();
    for (const each of rows) attempted.getOrInsert(each.slot, new Set()).add(each.id);
    return new Set(rows.map((row) => row.slot));
  }

  async function revokeOne(): Promise<void> {
    const [made] = await home.cli('key', 'create', 'payer');
    const key = made?.['key'] ?? '';
    await becomes(key, 200);
    await home.cli('key', 'revoke', made?.['key_id'] ?? '');
    revokedMs = performance.now();
    await becomes(key, 401);
    revoked.push(key);
  }

  async function expectRevoked(): Promise<void> {
    // One process of a host may know before the other.
    await Bun.sleep(Math.max(0, revokedMs + REVOKED_MS - performance.now()));
    for (const host of [home, away])
      for (const key of revoked.slice(-5))
        expect([host === home, await status(host, key)]).toEqual([host === home, 401]);
  }

  /** A copy of what deploys keeps, as its files are when it stands. */
  async function copyOf(host: Host): Promise<string> {
    const folder = mkdtempSync(join(scratch.path, 'copy-'));
    const files = [ACCOUNTS_FILE, LEDGER_FILE, 'secret']
      .flatMap((file) => [file, `${file}-wal`])
      .map((file) => join(host.folder, file))
      .filter((path) => existsSync(path));
    // By a process of its own: a close of a database's file in this one gives up the locks of all that it has open of it,
    // and a restore would put another in its place.
    await Bun.$`cp ${files} ${folder}`.quiet();
    return folder;
  }

  /** Puts a copy in place; statements of this test itself keep a database open until they are collected. */
  const put = (copy: string, host: Host) =>
    waited(async () => {
      Bun.gc(true);
      return host.cli('restore', copy, '--overwrite').then(
        () => true,
        ({ message }: Error) => {
          if (!message.includes('is open in another process')) throw new Error(message);
          return false;
        },
      );
    }, PATIENCE_MS);

  async function kill(): Promise<void> {
    const host = random() < 0.5 ? home : away;
    const what = number(3);
    if (what === 0) {
      const { pid } = host.gateway();
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
        .trim()
        .split(' ')
        .map(Number);
      process.kill(children[number(children.length)] ?? 0, 'SIGKILL');
    } else if (what === 1) {
      await end(host.gateway(), 'SIGKILL');
      await host.startGateway();
    } else {
      await end(home.deploys(), 'SIGKILL');
      await home.startDeploys();
    }
  }

  async function move(): Promise<void> {
    await end(home.deploys(), 'SIGTERM');
    const copy = await copyOf(home);
    await stopGateway(away);
    await put(copy, away);
    [home, away] = [away, home];
    await Promise.all([home.startDeploys(), home.startGateway()]);
    await published();
    // The copy that stayed behind is started once more.
    await away.startDeploys();
    const both = upgrade(home, away);
    await waited(() => sentBy(home).has(both), PATIENCE_MS);
    expect(sentBy(away).has(both)).toBe(false);
    await end(away.deploys(), 'SIGTERM');
  }

  async function restore(): Promise<void> {
    await end(home.deploys(), 'SIGTERM');
    const backup = await copyOf(home);
    await home.startDeploys();
    await published();
    await revokeOne();
    await end(home.deploys(), 'SIGTERM');
    await stopGateway(home);
    sentBy(home);
    await put(backup, home);
    await Promise.all([home.startDeploys(), home.startGateway()]);
    await expectRevoked();
    await home.cli('deploys', 'take-over');
  }

  async function setClock(): Promise<void> {
    skewMs = (2 * random() - 1) * SKEW_MS_MAX;
    writeFileSync(skewFile, String(Math.floor(skewMs)));
  }

  /** Does it, and gives what `/health` of each gateway said meanwhile, each change of it; nothing of one that is down. */
  async function watched(act: () => Promise<void>): Promise<ReadonlyMap<string, readonly string[]>> {
    const said = new Map<string, string[]>();
    const goodbyes = new Map<ReturnType<Host['gateway']>, number>();
    let isOver = false;
    const look = async ({ folder, gateway }: Host) => {
      const all = said.getOrInsert(folder, []);
      const asked = gateway();
      const count = goodbyes.get(asked) ?? 0;
      if (count >= LEAVES_AFTER) return;
      await fetch(new URL('/health', asked.url), { keepalive: false }).then(
        async (answer) => {
          const now = `${answer.status} ${await answer.text()}`;
          if (now.includes('draining')) goodbyes.set(asked, count + 1);
          // The backend is in this process, and a busy machine may keep it from its probes.
          if (now.includes('no answer within')) return;
          if (all.at(-1) !== now) all.push(now);
        },
        () => undefined,
      );
    };
    const watching = (async () => {
      while (!isOver) {
        await Promise.all([home, away].map(look));
        await Bun.sleep(50); // the processes need the machine too
      }
    })();
    try {
      await act();
    } finally {
      isOver = true;
      await watching;
    }
    return said;
  }

  return {
    acts: { kill, move, restore, clock: setClock },
    /** What must hold again after each. */
    async settle(): Promise<void> {
      await published();
      await becomes(good.key, 200);
      await expectRevoked();
      const now = upgrade(home);
      await waited(() => sentBy(home).has(now), PATIENCE_MS);
    },
    revokeOne,
    attempted,
    revoked,
    watched,
    async [Symbol.asyncDispose]() {
      await hosts[Symbol.asyncDispose]();
      scratch[Symbol.dispose]();
    },
  };
}

function shuffled<T>(items: readonly T[], random: () => number): readonly T[] {
  return items
    .map((item) => [random(), item] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);
}

/** Some orders in a world of their own; gives how much was seen in it. */
async function hold(seed: number, orders: number): Promise<Readonly<{ sent: number; revoked: number }>> {
  const random = seeded(seed);
  await using world = await startWorld(random);
  for (let order = 0; order < orders; order++) {
    for (const kind of shuffled(KINDS, random)) {
      const said = await world.watched(async () => {
        await world.acts[kind]();
        await world.settle();
      });
      // Well, then troubled, then well again: nothing else is said twice.
      for (const all of said.values())
        expect([seed, order, kind, ...all]).toEqual([
          seed,
          order,
          kind,
          ...all.slice(0, new Set(all).size + 1),
        ]);
    }
    await world.revokeOne();
  }
  expect([...world.attempted].filter(([, ids]) => ids.size > 1)).toEqual([]);
  return { sent: world.attempted.size, revoked: world.revoked.length };
}

test(
  'M25 in twenty random orders of kills, moves, restores and clock changes no revoked key works, no event has two ids, no call is lost in a stop, and /health does not flap',
  async () => {
    const seen = await Promise.all(SEEDS.map((seed) => hold(seed, ORDERS / SEEDS.length)));
    for (const { sent, revoked } of seen) {
      expect(sent).toBeGreaterThan((ORDERS * KINDS.length) / SEEDS.length);
      expect(revoked).toBeGreaterThan(ORDERS / SEEDS.length);
    }
  },
  10 * 60_000,
);
