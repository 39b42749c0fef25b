/** @jsxImportSource preact */
import type { DeliveryCounts, WebhookDay } from '../../../webhooks/webhook-health.ts';
import { Sparkline } from '../../components/charts.tsx';

/** The share of settled deliveries that failed; `undefined` when none is settled. */
export function failureShare({ delivered, failed }: DeliveryCounts): number | undefined {
  const settled = delivered + failed;
  return settled === 0 ? undefined : failed / settled;
}

/** Deliveries of the last 24 hours by hour; red when some of them failed. */
export function FailureLine({ health: { hours, day } }: Readonly<{ health: WebhookDay }>) {
  const totals = hours.map(
    ({ delivered, failed, waiting, skipped }) => delivered + failed + waiting + skipped,
  );
  const total = totals.reduce((sum, n) => sum + n, 0);
  const label = `${total} deliveries in 24 hours, ${day.delivered} delivered, ${day.failed} failed`;
  return <Sparkline values={totals} label={label} tone={day.failed > 0 ? 'bad' : 'accent'} />;
}
