import { Histogram, type Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';
import { createAudit } from '../accounts/audit.ts';
import { createFigures } from '../health/figures.ts';
import type { Health } from '../health/health.ts';
import type { Outbox, Recorded, Result } from '../outbox/outbox.ts';
import { createPrune, tendOutbox } from '../outbox/prune.ts';
import type { Sending } from './send.ts';
import { createWorker, type WorkerState } from './worker.ts';

type Parts = Sending & Readonly<{ store: Store; outbox: Outbox; registry: Registry; clock: Clock; log: Log }>;

/** The worker with its figures, its log and its broom. */
export function createDeliveries(parts: Parts) {
  const { store, outbox, clock, log } = parts;
  const metrics = createDeliveryMetrics(parts, () => worker.state());
  const worker = createWorker({
    ...parts,
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
    /** Sends what is due and forgets what is old, until `signal` aborts. */
    run: async (signal: AbortSignal): Promise<void> => {
      const [pruneQueue, audit] = [createPrune(store), createAudit(store)];
      const prune = (nowMs: number) => pruneQueue(nowMs) || audit.prune();
      await Promise.all([worker.run(signal), tendOutbox({ prune, clock, log }, signal)]);
    },
    /** Tells of new rows, or of a block time that is known by now. */
    wake: worker.wake,
    health: (): Health => deliveryHealth(worker.state(), outbox.backlog(clock.now()), clock.now()),
  };
}

/** How long a delivery may be due before something is wrong. */
const DUE_MS_MAX = 300_000;

/**
 * Whether deliveries are sent: ill while the queue cannot be used, or while what has been due for five minutes waits
 * beside no attempt at all. What waits for its turn behind a receiver that hangs is the receiver's fault, and no
 * receiver can make this service look ill.
 */
export function deliveryHealth(
  { trouble, underWay }: WorkerState,
  { due, oldestDueAtMs }: ReturnType<Outbox['backlog']>,
  nowMs: number,
): Health {
  if (trouble !== undefined)
    return { isWell: false, sentence: 'Deliveries cannot be recorded, so none are sent; the log says why.' };
  const waitedMs = nowMs - (oldestDueAtMs ?? nowMs);
  if (waitedMs <= DUE_MS_MAX || underWay > 0) return { isWell: true, sentence: `${due} deliveries are due.` };
  return {
    isWell: false,
    sentence: `${due} deliveries are due, the oldest for ${Math.round(waitedMs / 60_000)} minutes.`,
  };
}

/** Seconds up to what an attempt may take, and up to a day until an event is first sent. */
const ATTEMPT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 13];
const WAIT_BUCKETS = [0.5, 1, 2, 5, 10, 30, 60, 300, 3_600, 86_400];

/** The figures of deliveries, in `registry`. */
function createDeliveryMetrics({ registry, outbox, store, clock }: Parts, state: () => WorkerState) {
  const { backlog, awaited } = outbox;
  const failing = store.prepare<{ n: number }, []>(
    'SELECT count(*) AS n FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL',
  );
  const { counter, reading } = createFigures(registry);
  const attempts = counter(
    'deploys_attempts_total',
    'Attempts that ended, by how, and by what made them',
    'outcome',
    'trigger',
  );
  const blocked = counter(
    'deploys_attempts_blocked_total',
    'Attempts that were not sent because of where they would have gone',
    'reason',
  );
  const seconds = new Histogram({
    name: 'deploys_attempt_seconds',
    help: 'Whole time of an attempt',
    buckets: ATTEMPT_BUCKETS,
    registers: [registry],
  });
  const firstSeconds = new Histogram({
    name: 'deploys_first_attempt_wait_seconds',
    help: 'From the detection of an event to the first attempt of its delivery',
    buckets: WAIT_BUCKETS,
    registers: [registry],
  });
  const reclaimed = counter(
    'deploys_leases_reclaimed_total',
    'Attempts whose process died; anything but 0 without a crash is an alarm',
  );
  const stale = counter('deploys_stale_results_total', 'Results that came after another took the lease');
  const troubles = counter('deploys_queue_errors_total', 'Times the queue could not be read or written');
  const ageSeconds = (sinceMs: (nowMs: number) => number) => {
    const at = clock.now();
    return Math.max(0, at - sinceMs(at)) / 1_000;
  };
  reading('deploys_deliveries_due', 'Deliveries that are due for an attempt', () => backlog(clock.now()).due);
  reading('deploys_oldest_due_age_seconds', 'How long the longest-waiting of them has been due', () =>
    ageSeconds((at) => backlog(at).oldestDueAtMs ?? at),
  );
  reading(
    'deploys_oldest_event_wait_seconds',
    'How long the oldest event has waited for its block time',
    () => ageSeconds((at) => Math.min(at, ...awaited().map(({ sinceMs }) => sinceMs))),
  );
  reading('deploys_attempts_under_way', 'Attempts under way', () => state().underWay);
  reading('deploys_webhooks_failing', 'Webhooks whose last attempt failed', () => failing.get()?.n);

  return {
    noteEnded: ({ claim, verdict, sent }: Result, recorded: Recorded): void => {
      if (recorded === 'stale') stale.inc();
      attempts.inc({ outcome: verdict.kind, trigger: claim.number === undefined ? 'manual' : 'auto' });
      if (verdict.kind === 'blocked') blocked.inc({ reason: verdict.error });
      if (sent !== undefined) seconds.observe(sent.phases.totalMs / 1_000);
      if (claim.number === 1)
        firstSeconds.observe(Math.max(0, claim.claimedAtMs - claim.createdAtMs) / 1_000);
    },
    noteReaped: (count: number): void => reclaimed.inc(count),
    noteTrouble: (): void => troubles.inc(),
  };
}
