import type { Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';
import { createAudit } from '../audit/audit.ts';
import type { Health } from '../health.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { createPrune } from '../outbox/prune.ts';
import { tendOutbox } from '../outbox/tend.ts';
import type { AttemptDeps } from './attempt.ts';
import { deliveryHealth } from './health.ts';
import { createDeliveryMetrics } from './metrics.ts';
import { createWorker } from './worker.ts';

/** What only whoever starts the app can give: the network, and the secrets. */
export type DeliveryDeps = Pick<AttemptDeps, 'send' | 'secretsOf'>;

type Deps = DeliveryDeps &
  Readonly<{ store: Store; outbox: Outbox; registry: Registry; clock: Clock; log: Log }>;

export type Deliveries = Readonly<{
  /** Sends what is due and forgets what is old, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Tells of new rows, or of a block time that is known by now. */
  wake(): void;
  health(): Health;
}>;

/** The worker with its figures, its log and its broom. */
export function createDeliveries({ store, outbox, registry, clock, log, send, secretsOf }: Deps): Deliveries {
  const failing = store.prepare<{ n: number }, []>(
    'SELECT count(*) AS n FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL',
  );
  const metrics = createDeliveryMetrics(registry, {
    backlog: outbox.backlog,
    awaited: outbox.awaited,
    failingWebhooks: () => failing.get()?.n ?? 0,
    state: () => worker.state(),
    nowMs: clock.now,
  });
  const worker = createWorker({
    outbox,
    clock,
    send,
    secretsOf,
    noteEnded: (result, recorded) => {
      metrics.noteEnded(result, recorded);
      const { claim, verdict } = result;
      const about = { delivery: claim.deliveryId, webhook: claim.webhookId, attempt: claim.n };
      if (recorded === 'recorded' && verdict.kind === 'succeeded') log.debug(about, 'delivered');
      else log.info({ ...about, outcome: verdict.kind, recorded }, 'not delivered');
    },
    noteReaped: (count) => {
      metrics.noteReaped(count);
      log.warn({ attempts: count }, 'attempts of a process that died are made again');
    },
    noteTrouble: (error) => {
      metrics.noteTrouble();
      log.error({ err: error }, 'the queue of deliveries cannot be used');
    },
    noteClockMoved: (byMs) => log.warn({ by_ms: byMs }, 'the wall clock was moved'),
    noteBroken: (error) => log.error({ err: error }, 'an attempt could not be made'),
  });

  return {
    run: async (signal) => {
      const [pruneQueue, audit] = [createPrune(store), createAudit(store)];
      const prune = (nowMs: number) => pruneQueue(nowMs) || audit.prune();
      await Promise.all([worker.run(signal), tendOutbox({ prune, clock, log }, signal)]);
    },
    wake: worker.wake,
    health: () => deliveryHealth(worker.state(), outbox.backlog(clock.now()), clock.now()),
  };
}
