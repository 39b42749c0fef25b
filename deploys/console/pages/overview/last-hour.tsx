/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { Minute } from '../../../usage/minutes.ts';
import { Chart } from '../../components/charts.tsx';
import { countText, Time } from '../../components/format.tsx';
import { Panel } from '../../components/panels.tsx';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

type Props = Readonly<{
  /** The last hour, the oldest first. */
  minutes: readonly Minute[];
  /** Since when minutes are counted. */
  sinceMs: number | undefined;
  plan: Plan | undefined;
  nowMs: number;
}>;

/** Requests, errors and refusals of the last hour, minute by minute. */
export function LastHour({ minutes, sinceMs, plan, nowMs }: Props) {
  const isKnown = ({ minute }: Minute) => sinceMs !== undefined && (minute + 1) * MINUTE_MS > sinceMs;
  const known = (pick: (minute: Minute) => number) =>
    minutes.map((minute) => (isKnown(minute) ? pick(minute) : null));
  const sum = (pick: (minute: Minute) => number) => minutes.reduce((total, each) => total + pick(each), 0);
  const busiest = Math.max(0, ...minutes.map(({ calls }) => calls));
  const isYoung = sinceMs === undefined || sinceMs > nowMs - HOUR_MS;
  return (
    <Panel title="Last hour" aside={<RateText busiest={busiest} plan={plan} />}>
      <p>
        <strong>{countText(sum(({ calls }) => calls))}</strong> requests,{' '}
        <strong>{countText(sum(({ errors }) => errors))}</strong> of them errors, and{' '}
        <strong>{countText(sum(({ refused }) => refused))}</strong> refused.
        {isYoung && sinceMs !== undefined && (
          <>
            {' '}
            Minutes are counted since <Time atMs={sinceMs} />, when the service started.
          </>
        )}
      </p>
      <Chart
        id="last-hour"
        title="Requests of the last hour"
        kind="stacked"
        unit="per minute, at most ten seconds behind"
        timesMs={minutes.map(({ minute }) => minute * MINUTE_MS)}
        series={[
          { label: 'Answered', values: known(({ calls, errors }) => Math.max(0, calls - errors)) },
          { label: 'Errors', values: known(({ errors }) => errors), tone: 'bad' },
          { label: 'Refused', values: known(({ refused }) => refused), tone: 'warning' },
        ]}
      />
    </Panel>
  );
}

/** The busiest minute against what the plan allows. */
function RateText({ busiest, plan }: Readonly<{ busiest: number; plan: Plan | undefined }>) {
  if (plan === undefined) return null;
  return (
    <span class="soft">
      busiest minute {perSecond(busiest / 60)} requests/s · the plan allows {perSecond(plan.rps)}/s, bursts of{' '}
      {countText(plan.burst)}
    </span>
  );
}

/** Two digits below ten, so that a quiet account has a rate too. */
function perSecond(rate: number): string {
  return rate > 0 && rate < 10 ? String(Number(rate.toFixed(2))) : countText(rate);
}
