import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../deploys/api/programs.ts';
import type { ProgramsAnswer } from '../deploys/api/schema.ts';
import { internetPolicy } from '../deploys/delivery/policy.ts';
import { DEPLOYS_MIGRATIONS } from '../deploys/store/schema.ts';
import { WEBHOOKS_MAX } from '../deploys/webhooks/create.ts';
import { createSeal } from '../deploys/webhooks/seal.ts';
import { createWebhooks } from '../deploys/webhooks/webhooks.ts';
import { upgradeProgram } from '../localnet/upgrade.ts';
import { systemClock } from '../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../shared/keys/schema.ts';
import { Secret } from '../shared/secret.ts';
import { nthPublic } from '../test/deploys/delivery/namespace/network.ts';
import { random } from '../test/deploys/outbox/queue.ts';
import { addKey, opened, temporaryFolder } from '../test/started/gateway.ts';
import { ROOT, startProcess } from '../test/started/process.ts';
import { cpuSecondsOf, memoryOf } from './proc.ts';
import { hostOf } from './webhook-receivers.ts';

/** What came of one upgrade. Instants count from the reading that saw it, in milliseconds. */
export type Drained = Readonly<{
  delivered: number;
  posts: number;
  /** When each healthy receiver had its first POST. */
  firstMs: readonly number[];
  drainedMs: number;
  /** How long each request for the programs took while deliveries drained. */
  programsMs: readonly number[];
  cpuSeconds: number;
  residentBytes: number;
}>;

const POLL_SECONDS = 5;
/** Between two requests for the programs; a key may send 60 a minute, so many take turns. */
const ASK_MS = 40;
const ASKING_KEYS = 30;
const DRAIN_MS_MAX = 90_000;

if (import.meta.main) {
  const [webhooks = 0, delayMs = 0, hanging = 0] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify(await drain(webhooks, delayMs, hanging)));
  process.exit(0);
}

/** One upgrade for `webhooks` receivers that take `delayMs`, the first `hanging` of which never answer. */
async function drain(webhooks: number, delayMs: number, hanging: number): Promise<Drained> {
  using folder = temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  const environment = { NODE_EXTRA_CA_CERTS: at('ca.pem') };
  const receiverArgs = [at('ca.pem'), String(delayMs), String(hanging)];
  await using _receivers = await startProcess(
    [join(ROOT, 'bench/webhook-receivers.ts'), ...receiverArgs],
    folder.path,
  );
  const secret = new Secret(Buffer.from(random(32)).toString('base64'));
  const keys = await seed(at(ACCOUNTS_FILE), webhooks, secret);
  const storage = `[storage]\ndata_dir = "${folder.path}"\nsecret = "${secret.reveal()}"\n`;
  writeFileSync(
    at('chain.toml'),
    `${storage}[localnet]\nlisten = "127.0.0.1:0"\nslot_ms = 50\nrooted_lag = 2\n`,
  );
  await using chain = await startProcess(
    [join(ROOT, 'localnet/main.ts'), '--config', at('chain.toml')],
    folder.path,
  );
  writeFileSync(
    at('deploys.toml'),
    `${storage}[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n` +
      `rpc_urls = ["${chain.url.href}"]\npoll_seconds = ${POLL_SECONDS}\n`,
  );
  await using app = await startProcess(
    [join(ROOT, 'deploys/main.ts'), '--config', at('deploys.toml')],
    folder.path,
    environment,
  );
  const programId = await firstUpgradeable(app.url, keys);
  const cpuBefore = cpuSecondsOf(app.pid);
  const { signal } = new AbortController();
  const upgraded = await upgradeProgram({ rpcUrl: chain.url.href, programId, clock: systemClock, signal });
  if (upgraded.kind !== 'upgraded') throw new Error(JSON.stringify(upgraded));

  const store = opened(at(ACCOUNTS_FILE), {});
  const open = store.prepare<{ all: number; done: number; at: number; detected: number }, []>(`
    SELECT count(*) AS 'all', sum(d.state = 'delivered') AS done, max(d.finished_at_ms) AS at,
      min(e.created_at_ms) AS detected FROM deliveries d JOIN events e ON e.id = d.event_id`);
  const programsMs: number[] = [];
  let row = open.get();
  const endMs = systemClock.monotonic() + DRAIN_MS_MAX;
  for (let i = 0; systemClock.monotonic() < endMs; i++) {
    const sentAtMs = systemClock.monotonic();
    await programsOf(app.url, keys[i % keys.length] ?? '');
    // Requests before the deploy was seen tell nothing about the drain.
    if ((row?.all ?? 0) > 0) programsMs.push(systemClock.monotonic() - sentAtMs);
    await systemClock.sleep(Math.max(0, sentAtMs + ASK_MS - systemClock.monotonic()), signal);
    // Not at every turn: on a machine with two cores the looking would be part of what is looked at.
    if (i % 10 === 0) row = open.get();
    if (row && row.all === webhooks && row.done === webhooks - hanging) break;
  }
  const { detected = 0, at: last = Number.NaN, done = 0 } = row ?? {};
  const seen = await seenByReceivers(environment.NODE_EXTRA_CA_CERTS);
  store.close();
  return {
    delivered: done,
    posts: seen.posts,
    firstMs: seen.firstAtMs.flatMap(([n, atMs]) => (n < hanging ? [] : [atMs - detected])),
    drainedMs: last - detected,
    programsMs,
    cpuSeconds: cpuSecondsOf(app.pid) - cpuBefore,
    residentBytes: memoryOf(app.pid).residentBytes,
  };
}

/** Accounts with webhooks, and keys that ask for programs. */
async function seed(path: string, webhooks: number, secret: Secret): Promise<string[]> {
  const store = opened(path, { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const keys = Array.from({ length: ASKING_KEYS }, () => addKey(store, null));
  const { create } = createWebhooks({
    store,
    clock: systemClock,
    seal: createSeal([secret], random),
    policy: { ...internetPolicy([]), resolve: async () => [nthPublic(1)] },
    isWatched: () => true,
    enqueue: { ping: () => ({ kind: 'no-webhook' }) },
    wake: () => {},
    random,
  });
  const { signal } = new AbortController();
  for (let n = 0; n < webhooks; n++) {
    const accountId = 1 + Math.floor(n / WEBHOOKS_MAX);
    if (n % WEBHOOKS_MAX === 0 && accountId > keys.length) addKey(store, null);
    const by = { accountId, actor: { kind: 'command-line' } } as const;
    const created = await create(by, { url: `https://${hostOf(n)}/hook` }, signal);
    if (created.kind !== 'created') throw new Error(created.kind);
  }
  store.close();
  return keys;
}

async function programsOf(base: URL, key: string): Promise<ProgramsAnswer | undefined> {
  const response = await fetch(new URL(PROGRAMS_PATH, base), { headers: { 'x-token': key } });
  const answer = (await response.json()) as ProgramsAnswer; // held to the schema in test/contract
  if (response.status === 503) return undefined;
  if (response.status !== 200) throw new Error(`${response.status}: ${JSON.stringify(answer)}`);
  return answer;
}

async function firstUpgradeable(base: URL, keys: readonly string[]): Promise<string> {
  for (let i = 0; ; i++) {
    const answer = await programsOf(base, keys[i % keys.length] ?? '');
    const last = answer?.programs.findLast(({ status }) => status === 'upgradeable');
    if (last !== undefined) return last.program_id;
    await systemClock.sleep(100, new AbortController().signal);
  }
}

async function seenByReceivers(caPath: string) {
  const options = { tls: { ca: readFileSync(caPath, 'utf8') } };
  const response = await fetch(`https://${hostOf(0)}/`, options);
  return (await response.json()) as { posts: number; firstAtMs: [number, number][] }; // what webhook-receivers.ts gives
}
