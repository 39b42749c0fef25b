/** @jsxImportSource preact */
import { useContext } from 'preact/hooks';
import { Sparkline } from '../../components/charts.tsx';
import { Ago, shareText, spanText } from '../../components/format.tsx';
import { ButtonLink } from '../../components/forms.tsx';
import { Here } from '../../components/here.ts';
import { Badge, Empty, Live, StateBadge, TablePanel } from '../../components/panels.tsx';
import { type Crumb, Link, Pager } from '../../components/links.tsx';
import type { PageServices } from '../../page-services.ts';
import { type AccountContext, accountPage } from '../../page.ts';
import { STATE_WORDS, wordOf } from './deliveries.tsx';
import { labelsOf } from './programs.tsx';
import { ACCOUNT, paths } from '../../paths.ts';
import type { Rotated } from '../../../webhooks/change.ts';
import { ATTEMPTS_EVER_MAX, type Resent, type Tested } from '../../../webhooks/send-again.ts';
import { WEBHOOKS_MAX } from '../../../webhooks/create.ts';
import type { DeliveryCounts, WebhookDay } from '../../../webhooks/webhook-health.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

/** Webhooks on one page: the health of each is counted from up to a thousand deliveries. */
const PAGE_ROWS = 20;

/** Every webhook of the account with its health. */
export const webhookListPage = accountPage({
  path: paths.webhooks(ACCOUNT),
  entry: ['Webhooks', 'hook'],
  show({ programs, webhooks: { list }, dayOf }, { account, nowMs, url }) {
    const addButton = (
      <ButtonLink to={`${paths.webhooks(account.id)}/new`} kind="primary" text="Add webhook" />
    );
    const labelOf = labelsOf(programs({}, nowMs));
    const { webhooks, next } = pageOf(list(account.id), url);
    const rows = webhooks.map((webhook) => ({ webhook, health: dayOf(webhook.id, nowMs) }));
    return {
      title: 'Webhooks',
      aside: rows.length > 0 && addButton,
      body: (
        <Live id="webhooks" everySeconds={10}>
          <TablePanel
            title="All webhooks"
            caption="Webhooks"
            columns={[
              ['URL', ({ webhook }) => urlCell(account.id, webhook), 'head'],
              ['State', ({ webhook }) => <WebhookState webhook={webhook} />],
              ['Programs', ({ webhook }) => programsText(webhook, labelOf)],
              ['Last delivery', ({ health }) => lastCell(health)],
              ['Deliveries, 24 h', ({ health }) => dayCell(health)],
            ]}
            rows={rows}
            empty={
              <Empty
                title="No webhooks yet"
                text="A webhook notifies your service when a watched program is deployed."
              >
                {addButton}
              </Empty>
            }
          />
          <Pager by="after" next={next} />
        </Live>
      ),
    };
  },
});

function urlCell(accountId: number, { id, url, description }: Webhook) {
  return (
    <span class="lines">
      <Link to={paths.webhook(accountId, id)} class="url-link">
        <WebhookUrl url={url} />
      </Link>
      {description !== '' && <span class="soft">{description}</span>}
    </span>
  );
}

/** The webhooks of one page, the newest first, after the one that the address names. */
function pageOf(all: readonly Webhook[], url: URL) {
  const newest = all.toReversed();
  const after = newest.findIndex(({ id }) => id === url.searchParams.get('after'));
  const webhooks = newest.slice(after + 1, after + 1 + PAGE_ROWS);
  const isMore = after + 1 + PAGE_ROWS < newest.length;
  return { webhooks, next: isMore ? webhooks.at(-1)?.id : undefined };
}

function lastCell({ last }: WebhookDay) {
  if (last === undefined) return <span class="soft">None yet</span>;
  const { state, status, error } = last;
  const [text, tone] = STATE_WORDS[state];
  const word = status ?? (state === 'delivered' ? null : error);
  return (
    <span class="badges">
      <StateBadge of={[word === null ? text : `${text}, ${wordOf(String(word))}`, tone]} />
      <Ago atMs={last.atMs} />
    </span>
  );
}

function dayCell(health: WebhookDay) {
  const share = failureShare(health.day);
  return (
    <span class="badges">
      {failureLine(health)}
      <span class="soft">{share === undefined ? 'None completed' : `${shareText(share)} failed`}</span>
    </span>
  );
}

/** The state of a webhook; a rotation may be pending in any state. */
export function WebhookState({ webhook }: Readonly<{ webhook: Webhook }>) {
  return (
    <span class="badges">
      <MainState webhook={webhook} />
      {webhook.nextSecretAtMs !== null && <Badge tone="waiting">Rotation pending</Badge>}
    </span>
  );
}

function MainState({ webhook: { pausedAtMs, failingSinceMs } }: Readonly<{ webhook: Webhook }>) {
  const { nowMs } = useContext(Here);
  if (pausedAtMs !== null)
    return (
      <Badge tone="quiet" icon="pause">
        Paused{' '}
      </Badge>
    );
  if (failingSinceMs === null) return <Badge tone="good">Healthy</Badge>;
  return <Badge tone="bad">Failing for {spanText(nowMs - failingSinceMs)}</Badge>;
}

/** A webhook's URL as text, its host in bold. It is never a link: it is for a machine. */
export function WebhookUrl({ url }: Readonly<{ url: string }>) {
  const { protocol, host, pathname, search } = new URL(url);
  return (
    <span class="url">
      {protocol}
      {'//'}
      <strong>{host}</strong>
      {pathname === '/' && search === '' ? '' : `${pathname}${search}`}
    </span>
  );
}

/** The host of a webhook, which names it on pages. */
export function hostOf({ url }: Pick<Webhook, 'url'>): string {
  return new URL(url).host;
}

/** The way to a page below a webhook's. */
export function crumbsTo(accountId: number, webhook: Webhook): readonly Crumb[] {
  const list = ['Webhooks', paths.webhooks(accountId)] as const;
  return [list, [hostOf(webhook), paths.webhook(accountId, webhook.id)]];
}

/** Which programs a webhook wants, in a few words; `labelOf` names an address. */
function programsText({ programs }: Pick<Webhook, 'programs'>, labelOf: (address: string) => string): string {
  if (programs === null) return 'All programs';
  const [first = '', second] = programs;
  if (programs.length === 1) return labelOf(first);
  return programs.length === 2 && second !== undefined
    ? `${labelOf(first)}, ${labelOf(second)}`
    : `${labelOf(first)} and ${programs.length - 1} more`;
}

/** The share of settled deliveries that failed; `undefined` when none is settled. */
export function failureShare({ delivered, failed }: DeliveryCounts): number | undefined {
  const settled = delivered + failed;
  return settled === 0 ? undefined : failed / settled;
}

/** Deliveries of the last 24 hours by hour; red when some of them failed. */
export function failureLine({ hours, day }: WebhookDay) {
  const totals = hours.map(
    ({ delivered, failed, waiting, skipped }) => delivered + failed + waiting + skipped,
  );
  const total = totals.reduce((sum, n) => sum + n, 0);
  const label = `${total} deliveries in 24 hours, ${day.delivered} delivered, ${day.failed} failed`;
  return <Sparkline values={totals} label={label} tone={day.failed > 0 ? 'bad' : 'accent'} />;
}

/** A refusal of the services that a page shows, beside what is not there. */
type ActionRefused =
  | Exclude<Resent, { kind: 'due' | 'no-delivery' }>
  | Exclude<Rotated, { kind: 'rotated' | 'no-webhook' }>
  | Extract<Tested, { kind: 'over-rate' }>
  | Readonly<{ kind: 'no-rotation' | 'too-many' }>;

export function refusedText(refused: ActionRefused): string {
  return refused.kind === 'over-rate'
    ? `Too many requests. Try again in ${refused.retryAfterSeconds} seconds.`
    : REFUSALS[refused.kind];
}

const REFUSALS = {
  'webhook-paused': 'The webhook is paused. Resume it first.',
  'already-due': 'The delivery is already queued for another attempt.',
  'not-yet': 'An attempt is already scheduled.',
  'worn-out': `The delivery has reached the maximum of ${ATTEMPTS_EVER_MAX} attempts.`,
  'rotation-pending': 'A rotation is already pending. Complete or cancel it first.',
  'no-rotation': 'No rotation is pending. The new secret may already be active.',
  'changed-meanwhile':
    'The webhook was changed after this form was opened. Nothing was changed. Review it and try again.',
  'too-many': `The account has reached the maximum of ${WEBHOOKS_MAX} webhooks.`,
};

type Absent = Readonly<{ kind: 'no-webhook' }> | Readonly<{ kind: 'no-delivery' }>;

/** The page again with a sentence; `undefined`: what was to be changed is not there. */
export function refusalOf(refused: ActionRefused | Absent) {
  if (refused.kind === 'no-webhook' || refused.kind === 'no-delivery') return undefined;
  const notice = refusedText(refused);
  return refused.kind === 'over-rate'
    ? { notice, status: 429, retryAfterSeconds: refused.retryAfterSeconds }
    : { notice, status: 409 };
}

/** The webhook of a path. */
export function webhookIn({ webhooks }: PageServices, { account, params }: AccountContext) {
  return webhooks.find(account.id, params['webhookId'] ?? '');
}
