import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Recorded, Result } from '../outbox/finish.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { WorkerState } from './worker.ts';

export type DeliveryMetrics = Readonly<{
  noteEnded(result: Result, recorded: Recorded): void;
  noteReaped(count: number): void;
  noteTrouble(): void;
}>;

/** Seconds up to what an attempt may take, and up to a day until an event is first sent. */
const ATTEMPT_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 13];
const WAIT_BUCKETS = [0.5, 1, 2, 5, 10, 30, 60, 300, 3_600, 86_400];

type Sources = Readonly<{
  backlog: Outbox['backlog'];
  awaited: Outbox['awaited'];
  failingWebhooks(): number;
  state(): WorkerState;
  nowMs(): number;
}>;

/** The figures of deliveries, in `registry`; label values are the `kind`s of the code's own unions. */
export function createDeliveryMetrics(registry: Registry, sources: Sources): DeliveryMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: 'deploys_attempts_total',
    help: 'Attempts that ended, by how, and by what made them',
    labelNames: ['outcome', 'trigger'],
    registers,
  });
  const blocked = new Counter({
    name: 'deploys_attempts_blocked_total',
    help: 'Attempts that were not sent because of where they would have gone',
    labelNames: ['reason'],
    registers,
  });
  const seconds = new Histogram({
    name: 'deploys_attempt_seconds',
    help: 'Whole time of an attempt',
    buckets: ATTEMPT_BUCKETS,
    registers,
  });
  const firstSeconds = new Histogram({
    name: 'deploys_first_attempt_wait_seconds',
    help: 'From the detection of an event to the first attempt of its delivery',
    buckets: WAIT_BUCKETS,
    registers,
  });
  const reclaimed = new Counter({
    name: 'deploys_leases_reclaimed_total',
    help: 'Attempts whose process died; anything but 0 without a crash is an alarm',
    registers,
  });
  const stale = new Counter({
    name: 'deploys_stale_results_total',
    help: 'Results that came after another took the lease',
    registers,
  });
  const troubles = new Counter({
    name: 'deploys_queue_errors_total',
    help: 'Times the queue could not be read or written',
    registers,
  });
  addGauges(registry, sources);

  return {
    noteEnded: ({ claim, verdict, sent }, recorded) => {
      if (recorded === 'stale') stale.inc();
      attempts.inc({ outcome: verdict.kind, trigger: claim.number === undefined ? 'manual' : 'auto' });
      if (verdict.kind === 'blocked') blocked.inc({ reason: verdict.error });
      if (sent !== undefined) seconds.observe(sent.phases.totalMs / 1_000);
      if (claim.number === 1)
        firstSeconds.observe(Math.max(0, claim.claimedAtMs - claim.createdAtMs) / 1_000);
    },
    noteReaped: (count) => reclaimed.inc(count),
    noteTrouble: () => troubles.inc(),
  };
}

function addGauges(registry: Registry, { backlog, awaited, failingWebhooks, state, nowMs }: Sources) {
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value());
      },
    });
  gauge('deploys_deliveries_due', 'Deliveries that are due for an attempt', () => backlog(nowMs()).due);
  gauge('deploys_oldest_due_age_seconds', 'How long the longest-waiting of them has been due', () => {
    const at = nowMs();
    return Math.max(0, at - (backlog(at).oldestDueAtMs ?? at)) / 1_000;
  });
  gauge(
    'deploys_oldest_event_wait_seconds',
    'How long the oldest event has waited for its block time',
    () => {
      const at = nowMs();
      return Math.max(0, at - Math.min(at, ...awaited().map(({ sinceMs }) => sinceMs))) / 1_000;
    },
  );
  gauge('deploys_attempts_under_way', 'Attempts under way', () => state().underWay);
  gauge('deploys_webhooks_failing', 'Webhooks whose last attempt failed', failingWebhooks);
}
