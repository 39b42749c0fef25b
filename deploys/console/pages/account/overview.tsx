/** @jsxImportSource preact */
import type { Plan } from '../../../../shared/config/plans.ts';
import type { Account } from '../../../accounts/account-row.ts';
import type { KeyRow } from '../../../accounts/keys.ts';
import { DAY_MS, lastHours } from '../../../usage/calendar.ts';
import type { Minute } from '../../../usage/minutes.ts';
import {
  type Counts,
  type Forecast,
  forecastOf,
  forecastText,
  type UsagePart,
} from '../../../usage/report.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import { MinuteChart } from '../../components/charts.tsx';
import { Ago, boundText, countText, distanceText, spanText } from '../../components/format.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import {
  Badge,
  Columns,
  Empty,
  Live,
  Notice,
  Panel,
  type Stat,
  statRow,
  TablePanel,
  type Tone,
} from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import { accountPage } from '../../page.ts';
import { ACCOUNT, paths } from '../../paths.ts';
import { KeyBadge } from './keys.tsx';
import { errorNote, refusedNote } from './usage.tsx';

const KEYS = 100;

/** The state of an account and its current traffic. */
export const overviewPage = accountPage({
  path: paths.overview(ACCOUNT),
  entry: ['Overview', 'gauge'],
  find: ({ accounts }, { account }) => accounts.findById(account.id),
  show({ keys, plans, usage, minutes, webhooksOf }, { nowMs }, account) {
    const { id, creditsLeft, createdAtMs } = account;
    const plan = account.plan === undefined ? undefined : plans.get(account.plan);
    const forecast =
      creditsLeft === undefined
        ? undefined
        : forecastOf(usage, { accountId: id, creditsLeft, createdAtMs }, nowMs);
    const hours = lastHours(24, nowMs);
    const newest = keys.page({ accountId: id, limit: KEYS }).items;
    const state = { account, plan, forecast, keys: newest, webhooks: webhooksOf(id) };
    return {
      title: 'Overview',
      aside: [
        <Badge tone="quiet" icon="gauge">
          {account.plan === undefined ? 'Program API only' : `Plan ${account.plan}`}
        </Badge>,
        <ButtonLink to={paths.quickStart(id)} text="Quick start" />,
      ],
      body: (
        <Live id="overview">
          <div class="panel-stack">
            {notices([...ofAccount(state), ...ofWebhooks(state, nowMs), ...ofKeys(state, nowMs)])}
            {stats(state, usage.sum({ accountId: id }, hours))}
            {lastHour(minutes.recentMinutes(id, nowMs), minutes.sinceMs(), plan)}
            <Columns>
              <TablePanel
                title="Top methods, 24 hours"
                aside={<Link to={paths.usage(id)}>All usage</Link>}
                caption="Top methods in the last 24 hours"
                columns={[
                  ['Method', ({ name }) => <code>{name}</code>, 'head'],
                  ['Requests', ({ counts }) => countText(counts.calls), 'end'],
                  ['Credits', ({ counts }) => countText(counts.credits - counts.refunded), 'end'],
                ]}
                rows={usage.byMethod({ accountId: id }, hours).slice(0, ROWS)}
                empty={<Empty title="No calls in the last 24 hours" />}
              />
              {keysPanel(id, newest, usage.byKey({ accountId: id }, hours))}
            </Columns>
          </div>
        </Live>
      ),
    };
  },
});

function notices(found: readonly Attention[]) {
  if (found.length === 0) return null;
  return (
    <section class="notices" aria-label="Needs attention">
      {found.map(({ tone, sentence, link }) => (
        <Notice tone={tone}>
          {sentence} {link && <Link to={link.to}>{link.label}</Link>}
        </Notice>
      ))}
    </section>
  );
}

/** The state of an account in numbers; `day` is what was counted in the last 24 hours. */
function stats(state: AccountState, day: Counts) {
  return statRow([
    creditsStat(state, day),
    ['Requests, 24 hours', countText(day.calls)],
    ['Errors, 24 hours', countText(day.errors), errorNote(day)],
    ['Rejected, 24 hours', countText(day.refused), refusedNote(day)],
    ['Latency p50', boundText(day, 0.5), 'median, last 24 h'],
    ['Latency p95', boundText(day, 0.95), '95th percentile, last 24 h'],
  ]);
}

function creditsStat({ account, plan, forecast }: AccountState, { credits, refunded }: Counts): Stat {
  const { creditsLeft } = account;
  if (creditsLeft === undefined) return ['Credits, 24 hours', countText(credits - refunded), 'Unlimited'];
  if (creditsLeft === 0) return ['Credits left', '0', undefined, 'bad'];
  const note = (forecast && forecastText(forecast)) ?? 'None used in the last 7 days';
  return [
    'Credits left',
    countText(creditsLeft),
    note,
    creditsLeft < 0.1 * (plan?.credits ?? 0) && 'warning',
  ];
}

/** Requests, errors and refusals of the last hour, minute by minute, the oldest first. */
function lastHour(minutes: readonly Minute[], sinceMs: number | undefined, plan: Plan | undefined) {
  const sum = (figure: 'calls' | 'errors' | 'refused') =>
    minutes.reduce((total, minute) => total + minute[figure], 0);
  const busiest = Math.max(0, ...minutes.map(({ calls }) => calls));
  return (
    <Panel title="Last hour" aside={plan && rateText(busiest, plan)}>
      <p>
        <strong>{countText(sum('calls'))}</strong> requests, <strong>{countText(sum('errors'))}</strong>{' '}
        errors, <strong>{countText(sum('refused'))}</strong> rejected.
      </p>
      <MinuteChart
        id="last-hour"
        title="Requests in the last hour"
        kind="stacked"
        unit="requests per minute, updated every 10 seconds"
        minutes={minutes}
        sinceMs={sinceMs}
        series={[
          { label: 'Succeeded', of: ({ calls, errors }) => Math.max(0, calls - errors) },
          { label: 'Errors', of: ({ errors }) => errors, tone: 'bad' },
          { label: 'Rejected', of: ({ refused }) => refused, tone: 'warning' },
        ]}
      />
    </Panel>
  );
}

function rateText(busiest: number, plan: Plan) {
  return (
    <span class="soft">
      Peak minute: {perSecond(busiest / 60)} requests/s · Plan limit: {perSecond(plan.rps)}/s, burst{' '}
      {countText(plan.burst)}
    </span>
  );
}

/** Two digits below ten, so that a quiet account has a rate too. */
function perSecond(rate: number): string {
  return rate > 0 && rate < 10 ? String(Number(rate.toFixed(2))) : countText(rate);
}

const ROWS = 5;

/** The active keys, the last used first. */
function keysPanel(accountId: number, keys: readonly KeyRow[], used: readonly UsagePart[]) {
  const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
  const working = keys
    .filter(({ state }) => state === 'active' || state === 'expiring')
    .toSorted((a, b) => (b.lastUsedAtMs ?? 0) - (a.lastUsedAtMs ?? 0));
  return (
    <TablePanel
      title="API keys"
      aside={<Link to={paths.keys(accountId)}>All keys</Link>}
      caption="Recently used API keys"
      columns={[
        [
          'Key',
          ({ id, name, state }) => (
            <>
              <Link to={paths.key(accountId, id)}>{name}</Link>{' '}
              {state === 'expiring' && <KeyBadge state={state} />}
            </>
          ),
          'head',
        ],
        ['Requests, 24 hours', ({ id }) => countText(calls.get(id) ?? 0), 'end'],
        ['Last used', ({ lastUsedAtMs }) => <Ago atMs={lastUsedAtMs} none="Never" />],
      ]}
      rows={working.slice(0, ROWS)}
      empty={
        <Empty title="No active keys">
          <Link to={`${paths.keys(accountId)}/new`}>Create a key</Link>
        </Empty>
      }
    />
  );
}

/** Something that needs attention, with the page that shows it. */
type Attention = Readonly<{
  tone: Extract<Tone, 'bad' | 'warning' | 'accent'>;
  sentence: string;
  link?: Readonly<{ to: string; label: string }>;
}>;

type AccountState = Readonly<{
  account: Account;
  /** As the config has it; `undefined` also for a plan that it has no more. */
  plan: Plan | undefined;
  forecast: Forecast | undefined;
  keys: readonly KeyRow[];
  webhooks: readonly Pick<Webhook, 'id' | 'url' | 'failingSinceMs'>[];
}>;

/** Keys that end sooner are named. */
const ENDS_WITHIN_MS = 7 * DAY_MS;
/** Credits that end sooner, or that are less than this share of the allowance. */
const LASTS_MS = 3 * DAY_MS;
const SHARE_LEFT = 0.1;
/** Of several alike. */
const NAMED_MAX = 3;

function ofAccount({ account, plan, forecast }: AccountState): readonly Attention[] {
  const { creditsLeft: left, isSuspended } = account;
  const lasts = forecast?.lastDay ?? forecast?.lastWeek ?? Number.POSITIVE_INFINITY;
  const isShort = left !== undefined && (lasts < LASTS_MS || left < SHARE_LEFT * (plan?.credits ?? 0));
  const end = forecast && forecastText(forecast);
  const found: readonly (false | readonly [Attention['tone'], string])[] = [
    isSuspended && ['bad', 'The account is suspended: all API keys are rejected.'],
    account.plan !== undefined &&
      plan === undefined && ['bad', `Plan ${account.plan} is no longer available: all calls are rejected.`],
    left === 0 && ['bad', 'No credits left: all calls are rejected with 402.'],
    isShort &&
      left > 0 && ['warning', `${countText(left)} credits remaining${end === undefined ? '' : `: ${end}`}.`],
  ];
  return found.flatMap((one) => (one ? [{ tone: one[0], sentence: one[1] }] : []));
}

function ofWebhooks({ account, webhooks }: AccountState, nowMs: number): readonly Attention[] {
  return webhooks
    .flatMap(({ id, url, failingSinceMs }) => (failingSinceMs === null ? [] : [{ id, url, failingSinceMs }]))
    .slice(0, NAMED_MAX)
    .map(({ id, url, failingSinceMs }) => ({
      tone: 'warning',
      sentence: `The webhook at ${hostOf(url)} has been failing for ${spanText(nowMs - failingSinceMs)}.`,
      link: { to: paths.webhook(account.id, id), label: 'View details' },
    }));
}

function ofKeys({ account, keys }: AccountState, nowMs: number): readonly Attention[] {
  const working = keys.filter(({ state }) => state === 'active' || state === 'expiring');
  if (working.length === 0)
    return [
      {
        tone: 'accent',
        sentence: `No active keys. Create one to use ${account.plan === undefined ? 'the program API' : 'the RPC endpoint'}.`,
        link: { to: `${paths.keys(account.id)}/new`, label: 'Create a key' },
      },
    ];
  return working
    .flatMap(({ id, name, expiresAtMs }) => (expiresAtMs === undefined ? [] : [{ id, name, expiresAtMs }]))
    .filter(({ expiresAtMs }) => expiresAtMs - nowMs <= ENDS_WITHIN_MS)
    .slice(0, NAMED_MAX)
    .map(({ id, name, expiresAtMs }) => ({
      tone: 'warning',
      sentence: `The old key "${name}" expires ${distanceText(expiresAtMs, nowMs)}.`,
      link: { to: paths.key(account.id, id), label: 'View key' },
    }));
}

/** The rest of an address may be a secret. */
function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : 'an unknown host';
}
