import { minuteAt } from '../../../deploys/usage/minutes.ts';
import type { Viewer } from '../../../deploys/auth/auth-service.ts';
import { HOUR_MS, startAccountWorld } from './account-world.ts';

const METHODS = [
  ['getAccountInfo', 900, 1],
  ['getMultipleAccounts', 420, 2],
  ['getSignatureStatuses', 310, 1],
  ['getProgramAccounts', 60, 50],
  ['getTransaction', 140, 10],
  ['sendTransaction', 90, 2],
  ['getLatestBlockhash', 200, 1],
  ['getTokenAccountsByOwner', 45, 10],
  ['getSlot', 500, 1],
] as const;

/** A trial with a month of traffic by day and night, several keys, a rotation under way and a webhook that fails. */
export function startSeededAccount(viewer?: Viewer) {
  const world = startAccountWorld(viewer);
  const { clock, store } = world;
  const indexer = world.addKey('acme', 'indexer, eu-west');
  const web = world.addKey('acme', 'web app');
  world.keys.revoke(world.addKey('acme', 'old laptop').id, { kind: 'command-line' });
  const rotated = world.addKey('acme', 'trading bot with a rather long name to see what happens');
  world.keys.rotate(rotated.id, 24 * HOUR_MS, { kind: 'command-line' });
  const keys = [indexer.id, web.id, rotated.id];
  store.run('UPDATE keys SET created_at_ms = created_at_ms - 2678400000 WHERE revoked_at_ms IS NULL');
  store.run('UPDATE keys SET last_used_at_ms = ? WHERE id = ?', [clock.now() - 40_000, indexer.id]);
  store.run('UPDATE keys SET last_used_at_ms = ? WHERE id = ?', [clock.now() - 3 * HOUR_MS, web.id]);

  const cells = [];
  for (let hoursAgo = 0; hoursAgo < 24 * 40; hoursAgo++) {
    const day = 1 + 0.7 * Math.sin(((24 - (hoursAgo % 24)) / 24) * 2 * Math.PI);
    for (const [m, [method, rate, price]] of METHODS.entries())
      for (const [k, keyId] of keys.entries()) {
        const calls = Math.round((rate * day * (1 + ((hoursAgo * 7 + m * 3) % 11) / 20)) / (k + 1) / 60);
        if (calls === 0) continue;
        const [within10Ms, within50Ms] = [Math.floor(calls * 0.7), Math.floor(calls * 0.2)];
        cells.push({
          hoursAgo,
          keyId,
          method,
          calls,
          credits: calls * price,
          charged: calls * price,
          errors: (hoursAgo + m) % 13 === 0 ? 1 : 0,
          refused: (hoursAgo + k) % 17 === 0 ? 3 : 0,
          bytesOut: calls * 900 * price,
          within10Ms,
          within50Ms,
          within250Ms: calls - within10Ms - within50Ms,
        });
      }
  }
  world.count(cells);
  world.spend(7, 228_400);
  const now = minuteAt(clock.now());
  for (let i = 0; i < 60; i++)
    world.minutes.add(7, now - i, {
      calls: 90 + Math.round(60 * Math.sin(i / 6)) + ((i * 37) % 23),
      errors: i % 7,
      refused: i > 20 && i < 26 ? 30 : 0,
    });
  world.addFailingWebhook(7, 'https://hooks.example.com/sluice/4711', clock.now() - 5 * HOUR_MS);
  return { ...world, ids: { indexer: indexer.id, rotated: rotated.id } };
}
