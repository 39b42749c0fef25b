import type { SQLQueryBindings } from 'bun:sqlite';
import type { BackendStatus, GatewayStatus } from '../../../shared/gateway-status.ts';
import { HOUR_MS, startWorld, type World } from './world.ts';

const METHODS = [
  ['getAccountInfo', 41_200],
  ['getProgramAccounts', 1_204],
  ['getMultipleAccounts', 18_730],
  ['sendTransaction', 9_120],
  ['getSignaturesForAddress', 2_240],
  ['getSlot', 60_010],
] as const;
const ACCOUNTS = [
  ['Meridian Labs', 'scale'],
  ['Northwind Trading', 'business'],
  ['kestrel-indexer', 'pro'],
  ['Little Fish DAO', 'trial'],
  ['Harbour Analytics GmbH', 'starter'],
  ['blank-page', 'trial'],
  ['programs only', null],
] as const;

/** A gateway's status with three backends: one well, one that fails at times, one left out. */
export function seededStatus(processes = 4): GatewayStatus {
  const backend = (name: string, more: Partial<BackendStatus> = {}): BackendStatus => ({
    name,
    profile: 'agave',
    lanes: ['rpc', 'send'],
    in: true,
    why: null,
    slot: 371_204_118,
    lag_slots: 0,
    in_flight: 41,
    max_connections: 512,
    recent_answered: 18_240,
    recent_failed: 0,
    ...more,
  });
  return {
    version: '0.1.0',
    processes,
    recent_seconds: 10,
    backends: [
      backend('fra-1'),
      backend('fra-2', { why: 'failing', slot: 371_204_116, lag_slots: 2, recent_failed: 212 }),
      backend('ams-archive', {
        in: false,
        why: 'lagging: 48 slots behind the others',
        profile: 'old-faithful',
        lanes: ['history'],
        slot: 371_204_070,
        lag_slots: 48,
        in_flight: 0,
        recent_answered: 0,
      }),
    ],
  };
}

/** The console with data as a service of some size has it. */
export function startSeeded() {
  const world = startWorld({
    gateways: ['10.0.0.2:9464', '10.0.0.3:9464'],
    statusOf: (host) => {
      if (host.startsWith('10.0.0.3')) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      return Response.json(seededStatus());
    },
    installation: {
      storeSizes: () => [
        { name: 'sluice.db', bytes: 48_234_496, walBytes: 4_120_032 },
        { name: 'ledger.db', bytes: 912_334_848, walBytes: 1_048_576 },
      ],
      readRedis: () =>
        Promise.resolve([
          { kind: 'answers', host: '10.0.0.9:6379', tookMs: 0.6 },
          { kind: 'cannot-be-reached', host: '10.0.0.10:6379', reason: 'ECONNREFUSED' },
        ]),
    },
  });
  const ids = ACCOUNTS.map(([name, plan]) => world.account(name, plan).id);
  seedUsage(world, ids);
  seedWebhooks(world, ids);
  const [first = 0, , , poor = 0, , blank = 0] = ids;
  const by = { kind: 'operator', userId: world.operator.user.id } as const;
  const given = { credits: 100_000, reason: 'hackathon, asked for by mail', once: 'a' };
  world.accounts.addCredits('Little Fish DAO', given, by);
  world.spend(poor, 350_000);
  world.spend(blank, 12_400);
  world.accounts.suspend('Harbour Analytics GmbH', by);
  const dana = world.made('dana@meridian.example', { role: 'customer', accountId: first });
  world.made('lee@meridian.example', { role: 'customer', accountId: first });
  world.store.run("UPDATE users SET totp_secret = x'00' WHERE id = ?", [dana.id]);
  world.session(dana);
  world.keys.create('Meridian Labs', 'production', { kind: 'user', userId: dana.id });
  return { ...world, ids, dana };
}

function seedUsage({ count }: World, ids: readonly number[]) {
  for (let hoursAgo = 0; hoursAgo < 24; hoursAgo++)
    for (const [i, accountId] of ids.entries())
      for (const [m, [method, most]] of METHODS.entries()) {
        const calls = Math.round(most / (i * 3 + 1) / (1 + ((hoursAgo + m) % 5) / 4));
        const [credits, errors, refused] = [calls * (m + 1), calls % 37, i === 3 ? Math.round(calls / 3) : 0];
        count([{ hoursAgo, accountId, keyId: 'k', method, calls, credits, errors, refused }]);
      }
}

const HOSTS = ['hooks.meridian', 'api.northwind', 'in.kestrel', 'hooks.meridian'].map(
  (name) => `${name}.example`,
);
const ERRORS = ['http_503', 'timeout', 'blocked_address', 'http_404'];

/** Webhooks that fail, each with one delivery that failed and two that are retried. */
function seedWebhooks({ store, clock }: World, ids: readonly number[]) {
  const now = clock.now();
  for (const [i, host] of HOSTS.entries()) {
    const webhook = `wh${i}c2b1f0e9d8a7`;
    const url = `https://${host}/hook`;
    insert(
      'webhooks',
      `id, account_id, url, host, secret_ct, secret_kid, created_at_ms, updated_at_ms, consecutive_failures,
       failing_since_ms, last_success_at_ms, paused_at_ms`,
      [webhook, ids[i % 3] ?? 1, url, host, Buffer.of(0), 1, 0, 0, 4 + i * 7],
      [now - (i + 1) * 3 * HOUR_MS, i === 2 ? null : now - (i + 2) * 4 * HOUR_MS, i === 3 ? now : null],
    );
    for (let n = 1; n <= 3; n++) {
      const id = `019ab2c4-${i}${n}00-7000-8000-00000000000${i}`;
      const isOver = n === 1;
      insert(
        'deliveries',
        `id, webhook_id, event_kind, dedupe_key, body, state, attempts, next_attempt_at_ms, created_at_ms,
         finished_at_ms`,
        [id, webhook, 'ping', id, Buffer.from('{}'), isOver ? 'failed' : 'retry_scheduled', 3],
        [isOver ? null : now + (n - 2.05) * 600_000, now - n * HOUR_MS, isOver ? now : null],
      );
      const error = ERRORS[(i + n) % 4] ?? '';
      insert(
        'attempts',
        'delivery_id, n, number, trigger, state, url, started_at_ms, signed_at, ended_at_ms, error',
        [id, n, n, 'auto', error === 'blocked_address' ? 'blocked' : 'failed', url],
        [now - n * 1_700_000, 0, now - n * 1_600_000, error],
      );
    }
  }

  function insert(table: string, columns: string, ...values: readonly SQLQueryBindings[][]) {
    const row = values.flat();
    store.run(`INSERT INTO ${table} (${columns}) VALUES (${row.map(() => '?')})`, row);
  }
}
