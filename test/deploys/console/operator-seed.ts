import type { BackendStatus, GatewayStatus } from '../../../shared/gateway-status.ts';
import { startOperatorWorld } from './operator-world.ts';

const HOUR_MS = 3_600_000;
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

/** The operators' pages with data as a service of some size has it. */
export function startSeededOperatorWorld() {
  const world = startOperatorWorld({
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
  world.accounts.addCredits(
    'Little Fish DAO',
    { credits: 100_000, reason: 'hackathon, asked for by mail', once: 'a' },
    { kind: 'operator', userId: world.operator.user.id },
  );
  world.ledger.run('INSERT INTO spent VALUES (?, ?, ?, 0)', [poor, 'n1', 350_000]);
  world.ledger.run('INSERT INTO spent VALUES (?, ?, ?, 0)', [blank, 'n1', 12_400]);
  world.accounts.suspend('Harbour Analytics GmbH', { kind: 'operator', userId: world.operator.user.id });
  const user = world.made('dana@meridian.example', { role: 'customer', accountId: first });
  world.made('lee@meridian.example', { role: 'customer', accountId: first });
  world.store.run("UPDATE users SET totp_secret = x'00' WHERE id = ?", [user.id]);
  world.session(user);
  world.keys.create('Meridian Labs', 'production', { kind: 'user', userId: user.id });
  return { ...world, ids, customer: user };
}

function seedUsage({ ledger, clock }: ReturnType<typeof startOperatorWorld>, ids: readonly number[]) {
  const now = Math.floor(clock.now() / HOUR_MS);
  for (let ago = 0; ago < 24; ago++)
    for (const [i, id] of ids.entries())
      for (const [m, [method, calls]] of METHODS.entries()) {
        const scaled = Math.round(calls / (i * 3 + 1) / (1 + ((ago + m) % 5) / 4));
        ledger.run(
          `INSERT INTO usage_hours
             (hour, account_id, key_id, method, node, calls, credits, refunded, errors, bytes_out, refused,
              charged, returned)
           VALUES (?, ?, 'k', ?, 'n1', ?, ?, 0, ?, 0, ?, 0, 0)`,
          [
            now - ago,
            id,
            method,
            scaled,
            scaled * (m + 1),
            scaled % 37,
            i === 3 ? Math.round(scaled / 3) : 0,
          ],
        );
      }
}

function seedWebhooks({ store, clock }: ReturnType<typeof startOperatorWorld>, ids: readonly number[]) {
  const hosts = [
    'hooks.meridian.example',
    'api.northwind.example',
    'in.kestrel.example',
    'hooks.meridian.example',
  ];
  const errors = ['http_503', 'timeout', 'blocked_address', 'http_404'];
  for (const [i, host] of hosts.entries()) {
    const [webhook, account] = [`wh${i}c2b1f0e9d8a7`, ids[i % 3] ?? 1];
    store.run(
      `INSERT INTO webhooks (id, account_id, url, host, secret_ct, secret_kid, created_at_ms, updated_at_ms,
         failing_since_ms, consecutive_failures, last_success_at_ms, paused_at_ms)
       VALUES (?, ?, ?, ?, x'00', 1, 0, 0, ?, ?, ?, ?)`,
      [
        webhook,
        account,
        `https://${host}/hook`,
        host,
        clock.now() - (i + 1) * 3 * HOUR_MS,
        4 + i * 7,
        i === 2 ? null : clock.now() - (i + 2) * 4 * HOUR_MS,
        i === 3 ? clock.now() : null,
      ],
    );
    for (let n = 1; n <= 3; n++) {
      const id = `019ab2c4-${i}${n}00-7000-8000-00000000000${i}`;
      const isOver = n === 1;
      store.run(
        `INSERT INTO deliveries (id, webhook_id, event_kind, dedupe_key, body, state, attempts, next_attempt_at_ms,
           created_at_ms, finished_at_ms)
         VALUES (?, ?, 'ping', ?, x'7b7d', ?, 3, ?, ?, ?)`,
        [
          id,
          webhook,
          id,
          isOver ? 'failed' : 'retry_scheduled',
          isOver ? null : clock.now() + (n - 2.05) * 600_000,
          clock.now() - n * HOUR_MS,
          isOver ? clock.now() : null,
        ],
      );
      const error = errors[(i + n) % 4] ?? '';
      const state = error === 'blocked_address' ? 'blocked' : 'failed';
      store.run(
        `INSERT INTO attempts (delivery_id, n, number, trigger, state, url, started_at_ms, signed_at, ended_at_ms, error)
         VALUES (?, ?, ?, 'auto', ?, ?, ?, 0, ?, ?)`,
        [
          id,
          n,
          n,
          state,
          `https://${host}/hook`,
          clock.now() - n * 1_700_000,
          clock.now() - n * 1_600_000,
          error,
        ],
      );
    }
  }
}
