import { Gauge, type Registry } from 'prom-client';
import type { Store } from '../../shared/store/open.ts';
import type { Seal } from './seal.ts';

/** How many webhooks of `store` have a secret that none of the seal's keys opens: nothing can be sent to them. */
export function sealedElsewhere(store: Store, { opens }: Pick<Seal, 'opens'>): number {
  const rows = store
    .prepare<{ current: number; next: number | null; n: number }, []>(
      `
      SELECT secret_kid AS current, next_secret_kid AS next, count(*) AS n FROM webhooks
      WHERE deleted_at_ms IS NULL GROUP BY secret_kid, next_secret_kid`,
    )
    .all();
  return rows
    .filter(({ current, next }) => !opens(current) || (next !== null && !opens(next)))
    .reduce((sum, { n }) => sum + n, 0);
}

/** How many webhooks of `store` have a secret, under whatever key. */
export function countSealed(store: Store): number {
  const count = store.prepare<{ n: number }, []>(
    'SELECT count(*) AS n FROM webhooks WHERE deleted_at_ms IS NULL',
  );
  return count.get()?.n ?? 0;
}

/** Shows in `registry` how many webhooks nothing can be sent to, until each of them has a secret under a key that is there. */
export function gaugeSealedElsewhere(registry: Registry, store: Store, seal: Pick<Seal, 'opens'>) {
  new Gauge({
    name: 'deploys_webhooks_unsignable',
    help: 'Webhooks whose secret is sealed under another storage.secret; anything but 0 is an alarm',
    registers: [registry],
    collect() {
      this.set(sealedElsewhere(store, seal));
    },
  });
}
