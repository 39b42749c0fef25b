import { join } from 'node:path';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { createPublication } from '../../deploys/accounts/publication.ts';
import { openHosts } from '../../gateway/replica/hosts.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { systemClock } from '../../shared/clock.ts';
import { configFrom } from '../../shared/config/config.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../shared/keys/api-key.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import type { Store } from '../../shared/store/open.ts';
import { opened, silentLog, temporaryFolder } from '../../test/started/gateway.ts';
import { startRedis } from '../../test/started/redis.ts';
import { Registry } from 'prom-client';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';

const LIMIT_MS = 500_000;
const BEAT_MS = 5;
const LOOKED_UP = 10_000;
let names = 0;
const lookedUp: string[] = [];

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `How long keys take to Redis, the longest stall on the way, and how long their first look-ups take on another host.
Needs redis-server.`,
  options: {
    keys: { value: 'N', help: 'keys of one account', least: 10_000, most: 10_000_000, preset: 1_000_000 },
  },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

/** Keys are published to a Redis by a process that has other things to do; another host looks some of them up. */
async function measure({ signal, number, progress, table, say }: OwnRun): Promise<void> {
  const keys = number('keys');
  await using redis = await startRedis();
  using one = temporaryFolder();
  using two = temporaryFolder();
  const accounts = opened(join(one.path, ACCOUNTS_FILE), { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  fill(accounts, keys);
  progress('publishing');
  const config = configFrom({ storage: { data_dir: two.path, redis: redis.url } }, {});
  if (config.kind === 'problems') throw new Error('the config has problems');
  const log = silentLog();
  const publication = createPublication({
    store: accounts,
    url: redis.url,
    clock: systemClock,
    log,
    random: (bytes) => sha256(`name ${names++}`).subarray(0, bytes),
    registry: new Registry(),
    readTerms: async () => config.config,
  });
  if (publication === undefined) throw new Error('the address is none');
  const over = new AbortController();
  const publishing = publication.run(AbortSignal.any([signal, over.signal]));
  const published = await beaten(() => {
    const state = publication.state();
    return state.kind === 'sole' && state.isWhole;
  }, signal);
  const bytes = Number(/used_memory:(\d+)/.exec(await redis.cli('INFO', 'memory'))?.[1]);

  const opening = openHosts({
    storage: config.config.storage,
    accounts: opened(join(two.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS),
    ledger: opened(join(two.path, LEDGER_FILE), LEDGER_MIGRATIONS),
    isFirst: true,
    clock: systemClock,
    log,
    random: () => 0.5,
    makeId: () => 'the only one',
  });
  if (opening.kind === 'refused' || opening.hosts === undefined) throw new Error('the file is refused');
  const host = opening.hosts.accounts;
  const following = host.tend(AbortSignal.any([signal, over.signal]));
  await beaten(() => host.source() === 'remote', signal);
  const sinceMs = systemClock.monotonic();
  for (const text of lookedUp) {
    const { kind } = await host.keys.identify({ kind: 'text', text });
    if (kind !== 'known') throw new Error(`a published key is ${kind}`);
  }
  const lookupMs = (systemClock.monotonic() - sinceMs) / lookedUp.length;
  over.abort();
  await Promise.all([publishing, following]);
  await host.close();
  table([
    [`${keys} keys`, 'seconds', 'longest stall, ms', 'bytes a key'],
    ['published', ...published, (bytes / keys).toFixed(0)],
  ]);
  say(`first look-up of a key on another host: ${lookupMs.toFixed(3)} ms, one after another`);
}

/** Waits for `is`, and tells how long it took and how long everything else waited at the most. */
async function beaten(is: () => boolean, signal: AbortSignal): Promise<[seconds: string, stallMs: string]> {
  const sinceMs = systemClock.monotonic();
  let stallMs = 0;
  while (!is() && !signal.aborted) {
    const beatMs = systemClock.monotonic();
    await Bun.sleep(BEAT_MS);
    stallMs = Math.max(stallMs, systemClock.monotonic() - beatMs - BEAT_MS);
  }
  return [((systemClock.monotonic() - sinceMs) / 1_000).toFixed(1), stallMs.toFixed(0)];
}

function fill(accounts: Store, keys: number): void {
  const insert = accounts.prepare<null, [string, Uint8Array]>(
    "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?, 1, 'k', ?, 'sluice_', '1234', 0)",
  );
  accounts.transaction(() => {
    accounts.run("INSERT INTO accounts (name, plan, created_at_ms) VALUES ('all', 'pro', 0)");
    for (let i = 0; i < keys; i++) {
      const key = makeApiKey((bytes) => sha256(`${i} ${bytes}`).subarray(0, bytes));
      if (lookedUp.length < LOOKED_UP) lookedUp.push(key);
      const hash = hashOf(key);
      insert.run(keyIdOf(hash), hash);
    }
  })();
}

function sha256(text: string): Buffer {
  return new Bun.CryptoHasher('sha256').update(text).digest();
}
