import type { Plan } from '../../../../shared/config/plans.ts';
import type { Account } from '../../../accounts/account-row.ts';
import type { KeyRow } from '../../../accounts/keys.ts';
import { type Forecast, forecastText } from '../../../usage/report.ts';
import { countText, distanceText, spanText } from '../../components/format.tsx';
import type { Tone } from '../../components/icons.tsx';
import { paths } from '../../paths.ts';
import { DAY_MS } from '../../../usage/calendar.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

/** Something that needs attention, with the page that shows it. */
export type Attention = Readonly<{
  tone: Extract<Tone, 'bad' | 'warning' | 'accent'>;
  sentence: string;
  link?: Readonly<{ to: string; label: string }>;
}>;

export type AccountState = Readonly<{
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

export function attentionOf(state: AccountState, nowMs: number): readonly Attention[] {
  return [...ofAccount(state), ...ofWebhooks(state, nowMs), ...ofKeys(state, nowMs)];
}

function ofAccount({ account, plan, forecast }: AccountState): readonly Attention[] {
  const found: Attention[] = [];
  if (account.isSuspended)
    found.push({ tone: 'bad', sentence: 'The account is suspended: all API keys are rejected.' });
  if (account.plan !== undefined && plan === undefined)
    found.push({
      tone: 'bad',
      sentence: `Plan ${account.plan} is no longer available: all calls are rejected.`,
    });
  const left = account.creditsLeft;
  if (left === undefined) return found;
  if (left === 0)
    return [...found, { tone: 'bad', sentence: 'No credits left: all calls are rejected with 402.' }];
  const lasts = forecast?.lastDay ?? forecast?.lastWeek;
  if ((lasts !== undefined && lasts < LASTS_MS) || left < SHARE_LEFT * (plan?.credits ?? 0)) {
    const text = forecast && forecastText(forecast);
    const end = text === undefined ? '.' : `: ${text}.`;
    found.push({ tone: 'warning', sentence: `${countText(left)} credits remaining${end}` });
  }
  return found;
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
