import type { Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';
import { unwritableReason } from '../../shared/store/private.ts';
import { createAudit } from '../accounts/audit.ts';
import { createFigures } from '../health/figures.ts';
import type { Health } from '../health/health.ts';
import type { Outbox } from '../outbox/outbox.ts';
import { createPrune, pruneRegularly } from '../outbox/prune.ts';
import type { Sending } from './send.ts';
import { createWorker, type WorkerNotes, type WorkerParts, type WorkerState } from './worker.ts';

type Parts = Sending &
  Readonly<{
    store: Store;
    outbox: Outbox;
    registry: Registry;
    clock: Clock;
    log: Log;
    permit?: WorkerParts['permit'] | undefined;
  }>;

/** The worker with its metrics and its log, and what removes old deliveries. */
export function createDeliveries(parts: Parts) {
  const { store, outbox, clock, log } = parts;
  const worker = createWorker({ ...parts, ...createNotes(parts, () => worker.state()) });
  return {
    run: async (signal: AbortSignal): Promise<void> => {
      const [pruneQueue, audit] = [createPrune(store), createAudit(store)];
      const prune = (nowMs: number) => pruneQueue(nowMs) || audit.prune();
      await Promise.all([worker.run(signal), pruneRegularly({ prune, clock, log }, signal)]);
    },
    /** To be called after new rows, and after a block time has become known. */
    wake: worker.wake,
    health: (): Health => deliveryHealth(worker.state(), outbox.backlog(clock.now()), clock.now()),
  };
}

/** How long a delivery may be due before something is wrong. */
const DUE_MS_MAX = 300_000;

/** Unhealthy while the queue fails, or when one is due for five minutes and none is attempted: receivers that hang do not count. */
export function deliveryHealth(
  { trouble, underWay }: WorkerState,
  { due, oldestDueAtMs }: ReturnType<Outbox['backlog']>,
  nowMs: number,
): Health {
  if (trouble !== undefined) {
    const why = unwritableReason(trouble);
    const sentence = `Deliveries cannot be recorded, so none are sent${why === undefined ? '; see the log' : ` (${why})`}.`;
    return { isWell: false, sentence };
  }
  const waitedMs = nowMs - (oldestDueAtMs ?? nowMs);
  if (waitedMs <= DUE_MS_MAX || underWay > 0) return { isWell: true, sentence: `${due} deliveries are due.` };
  const minutes = Math.round(waitedMs / 60_000);
  return { isWell: false, sentence: `${due} deliveries are due, the oldest for ${minutes} minutes.` };
}

/** Seconds up to what an attempt may take, and up to a day until an event is first sent. */
const ATTEMPT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 13];
const WAIT_BUCKETS = [0.5, 1, 2, 5, 10, 30, 60, 300, 3_600, 86_400];

function createNotes({ registry, outbox, store, clock, log }: Parts, state: () => WorkerState): WorkerNotes {
  const { backlog, awaited } = outbox;
  const failing = store.prepare<{ n: number }, []>(`
    SELECT count(*) AS n FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL`);
  const { counter, histogram, reading } = createFigures(registry);
  const ages = (name: string, help: string, sinceMs: (nowMs: number) => number) =>
    reading(name, help, () => {
      const nowMs = clock.now();
      return Math.max(0, nowMs - sinceMs(nowMs)) / 1_000;
    });
  const WAITED = 'Time from the detection of an event to the first attempt of its delivery';
  const attempts = counter('deploys_attempts_total', 'Finished attempts', 'outcome', 'trigger');
  const blocked = counter('deploys_attempts_blocked_total', 'Attempts to forbidden destinations', 'reason');
  const seconds = histogram('deploys_attempt_seconds', 'Duration of an attempt', ATTEMPT_BUCKETS);
  const firstSeconds = histogram('deploys_first_attempt_wait_seconds', WAITED, WAIT_BUCKETS);
  const reclaimed = counter('deploys_leases_reclaimed_total', 'Attempts whose process died; alert above 0');
  const stale = counter('deploys_stale_results_total', 'Results dropped because another took the lease');
  const troubles = counter('deploys_queue_errors_total', 'Failures to read or write the queue');
  reading('deploys_deliveries_due', 'Deliveries due for an attempt', () => backlog(clock.now()).due);
  ages('deploys_oldest_due_age_seconds', 'Time since the oldest of them became due', (nowMs) => {
    return backlog(nowMs).oldestDueAtMs ?? nowMs;
  });
  ages('deploys_oldest_event_wait_seconds', 'Time the oldest event has waited for its block time', (nowMs) =>
    Math.min(nowMs, ...awaited().map(({ sinceMs }) => sinceMs)),
  );
  reading('deploys_attempts_under_way', 'Attempts in progress', () => state().underWay);
  reading('deploys_webhooks_failing', 'Webhooks whose last attempt failed', () => failing.get()?.n);

  return {
    noteEnded: ({ claim, verdict, sent }, recorded) => {
      if (recorded === 'stale') stale.inc();
      attempts.inc({ outcome: verdict.kind, trigger: claim.number === undefined ? 'manual' : 'auto' });
      if (verdict.kind === 'blocked') blocked.inc({ reason: verdict.error });
      if (sent !== undefined) seconds.observe(sent.phases.totalMs / 1_000);
      if (claim.number === 1)
        firstSeconds.observe(Math.max(0, claim.claimedAtMs - claim.createdAtMs) / 1_000);
      const about = { delivery: claim.deliveryId, webhook: claim.webhookId, attempt: claim.n };
      if (recorded === 'recorded' && verdict.kind === 'succeeded') log.debug(about, 'delivered');
      else log.info({ ...about, outcome: verdict.kind, recorded }, 'not delivered');
    },
    noteReaped: (count) => {
      reclaimed.inc(count);
      log.warn({ attempts: count }, 'attempts of a process that died are repeated');
    },
    noteTrouble: (error) => {
      troubles.inc();
      log.error({ err: error }, 'the delivery queue cannot be read or written');
    },
    noteClockMoved: (byMs) => log.warn({ by_ms: byMs }, 'the system clock was changed'),
    noteBroken: (error) => log.error({ err: error }, 'an attempt failed because of an internal error'),
  };
}
