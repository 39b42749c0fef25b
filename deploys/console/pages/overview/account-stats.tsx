/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { Account } from '../../../accounts/account-row.ts';
import { type Forecast, forecastText } from '../../../usage/forecast.ts';
import type { Counts } from '../../../usage/report.ts';
import { WithinText } from '../../page/latency.tsx';
import { countText, shareText } from '../../page/number.ts';
import { type Stat, Stats } from '../../page/stats.tsx';

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
        {
          label: 'Half of answers began',
          value: <WithinText counts={day} quantile={0.5} />,
          note: 'p50 of 24 hours',
        },
        {
          label: '95 of 100 began',
          value: <WithinText counts={day} quantile={0.95} />,
          note: 'p95 of 24 hours',
        },
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
