/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { Account } from '../../../accounts/account-row.ts';
import { type Forecast, forecastText } from '../../../usage/forecast.ts';
import { boundOf } from '../../../usage/latency.ts';
import type { Counts } from '../../../usage/report.ts';
import { countText, latencyText, shareText } from '../../components/format.tsx';
import { type Stat, Stats } from '../../components/panels.tsx';

type Props = Readonly<{
  account: Account;
  plan: Plan | undefined;
  forecast: Forecast | undefined;
  /** What was counted in the last 24 hours. */
  day: Counts;
}>;

/** How an account stands, in numbers. */
export function AccountStats({ account, plan, forecast, day }: Props) {
  const { calls, errors, refused } = day;
  return (
    <Stats
      stats={[
        creditsStat(account, plan, forecast, day),
        { label: 'Requests, 24 hours', value: countText(calls) },
        {
          label: 'Errors, 24 hours',
          value: countText(errors),
          note: calls === 0 ? undefined : `${shareText(errors / calls)} of requests`,
        },
        {
          label: 'Refused, 24 hours',
          value: countText(refused),
          note: calls + refused === 0 ? undefined : `${shareText(refused / (calls + refused))} of all`,
        },
        latencyStat('p50', day, 0.5, 'half'),
        latencyStat('p95', day, 0.95, '95 of 100'),
      ]}
    />
  );
}

function creditsStat(
  { creditsLeft }: Account,
  plan: Plan | undefined,
  forecast: Forecast | undefined,
  { credits, refunded }: Counts,
): Stat {
  if (creditsLeft === undefined)
    return { label: 'Credits, 24 hours', value: countText(credits - refunded), note: 'without a limit' };
  const lasts = forecast && forecastText(forecast);
  const tone = creditsLeft === 0 ? 'bad' : creditsLeft < 0.1 * (plan?.credits ?? 0) ? 'warning' : undefined;
  return {
    label: 'Credits left',
    value: countText(creditsLeft),
    note: creditsLeft === 0 ? 'used up' : (lasts ?? 'none spent in 7 days'),
    tone,
  };
}

/** How soon answers began, as a bound that holds. */
function latencyStat(name: string, day: Counts, quantile: number, share: string): Stat {
  const bound = boundOf(day, quantile);
  const label = `Latency ${name}`;
  if (bound === undefined) return { label, value: '–', note: 'nothing was answered' };
  if (bound.kind === 'over')
    return { label, value: `> ${latencyText(bound.ms)}`, note: `not ${share} within, 24 hours` };
  return { label, value: latencyText(bound.ms), note: `${share} within, 24 hours` };
}
