/** @jsxImportSource preact */
import type { DeliveryCounts, WebhookHealth } from '../../../webhooks/webhook-health.ts';
import { countText, latencyText, shareText } from '../../components/format.tsx';
import { type Stat, Stats } from '../../components/panels.tsx';
import { FailureLine, failureShare } from './failure-line.tsx';

/** Where the numbers stand in a page. */
export const WEBHOOK_STATS_ID = 'webhook-stats';

/** A webhook's day and week in numbers. */
export function WebhookStats({ health }: Readonly<{ health: WebhookHealth }>) {
  const { day, week, latency } = health;
  return (
    <Stats
      id={WEBHOOK_STATS_ID}
      stats={[
        { label: 'Delivered, 24 h', value: countText(day.delivered), note: <FailureLine health={health} /> },
        failedStat('Failed, 24 h', day),
        {
          label: 'Delivered, 7 d',
          value: countText(week.delivered),
          note: `${countText(week.waiting)} waiting`,
        },
        failedStat('Failed, 7 d', week),
        {
          label: 'Answered in, 7 d',
          value: latency === undefined ? '–' : latencyText(latency.p50Ms),
          note:
            latency === undefined
              ? 'nothing was answered'
              : `median; 95 % within ${latencyText(latency.p95Ms)}`,
        },
      ]}
    />
  );
}

function failedStat(label: string, counts: DeliveryCounts): Stat {
  const share = failureShare(counts);
  return {
    label,
    value: countText(counts.failed),
    note: share === undefined ? 'of none' : `${shareText(share)} of what is settled`,
    ...(counts.failed > 0 && { tone: 'bad' as const }), // the union's member, not any string
  };
}
