/** @jsxImportSource preact */
import { useContext } from 'preact/hooks';
import { Ago, countText, latencyText, Now, Time } from '../../components/format.tsx';
import { Filters, FilterSelect, TextField } from '../../components/forms.tsx';
import { StateBadge } from '../../components/icons.tsx';
import { cursorFrom, Link, Pager, withQuery } from '../../components/links.tsx';
import { Empty, Live, Panel, Table } from '../../components/panels.tsx';
import type { AccountContext } from '../../context.ts';
import type { WebhookServices } from '../../page-services.ts';
import { STATE_WORDS, wordOf } from './attempt.tsx';
import { paths } from '../../paths.ts';
import {
  type AccountDelivery,
  type DeliveryFilter,
  type DeliveryPage,
  ID_PART_MIN,
} from '../../../outbox/list.ts';
import { ATTEMPTS_MAX, type DeliveryState } from '../../../outbox/outcome.ts';
import { DAY_MS } from '../../../usage/calendar.ts';

/** The deliveries of all webhooks of an account, filtered or searched. */
export function deliveryListPage(services: WebhookServices, context: AccountContext): Response {
  const { account, nowMs, url, show } = context;
  const filter = filterFrom(url.searchParams, nowMs);
  const search = (url.searchParams.get('q') ?? '').trim();
  const { rows, next } =
    search === ''
      ? services.deliveries.page(account.id, filter)
      : { rows: services.deliveries.search(account.id, search), next: undefined };
  return show({
    title: 'Deliveries',
    body: (
      <>
        {filters(services, context, filter, search)}
        <Live id="deliveries" from={withQuery(url, {})} isOver={filter.after !== undefined}>
          <Panel title={search === '' ? 'Newest first' : 'Search results'} isFlush>
            {deliveryTable(account.id, rows, emptyText(search, filter, next), filter.webhookId !== undefined)}
          </Panel>
        </Live>
        <Pager url={url} by="after" next={next && `${next.createdAtMs}.${next.id}`} />
      </>
    ),
  });
}

function emptyText(search: string, filter: DeliveryFilter, next: DeliveryPage['next']): string {
  if (search !== '')
    return search.length < ID_PART_MIN
      ? `Enter at least ${ID_PART_MIN} characters of an ID`
      : 'No delivery ID starts with this';
  if (next !== undefined) return 'No matching deliveries on this page; there may be older ones';
  return isNarrow(filter) || filter.after ? 'No matching deliveries' : 'No deliveries yet';
}

function filters(
  services: WebhookServices,
  { account, nowMs, url }: AccountContext,
  filter: DeliveryFilter,
  search: string,
) {
  const webhooks = services.webhooks
    .list(account.id)
    .map(({ id, url: to }) => ({ value: id, label: new URL(to).host }));
  const programs = services.programs({}, nowMs).map(({ programId, label }) => ({ value: programId, label }));
  return (
    <Filters path={paths.deliveries(account.id)} isFiltered={isNarrow(filter) || search !== ''}>
      <TextField
        name="q"
        label="Delivery ID"
        type="search"
        value={search}
        placeholder="First 8+ characters"
        isCode
      />
      <FilterSelect
        name="state"
        label="State"
        value={filter.state}
        options={STATES.map((value) => ({ value, label: STATE_WORDS[value][0] }))}
      />
      <FilterSelect
        name="event"
        label="Event"
        value={filter.eventKind}
        options={EVENTS.map((value) => ({ value, label: value }))}
      />
      <FilterSelect name="webhook" label="Webhook" value={filter.webhookId} options={webhooks} />
      <FilterSelect name="program" label="Program" value={filter.programId} options={programs} />
      <FilterSelect
        name="time"
        label="Time"
        value={url.searchParams.get('time') ?? undefined}
        options={SPANS}
      />
    </Filters>
  );
}

/**
 * Deliveries, each opening at the side. `empty` stands in place of an empty table; the webhook is not named where all are
 * of one.
 */
export function deliveryTable(
  accountId: number,
  rows: readonly AccountDelivery[],
  empty: string,
  isOfOneWebhook: boolean,
) {
  return (
    <Table
      caption="Deliveries"
      columns={[
        [
          'Created',
          ({ id, createdAtMs }) => (
            <Link to={paths.delivery(accountId, id)} isDrawer>
              <Time atMs={createdAtMs} />
            </Link>
          ),
          'head',
        ],
        ['Event', eventCell],
        !isOfOneWebhook && [
          'Webhook',
          ({ url }) => (
            <span class="host" title={new URL(url).host}>
              {new URL(url).host}
            </span>
          ),
        ],
        ['State', (row) => <State row={row} />],
        [
          'Last response',
          (row) => (
            <span class="lines">
              {answerText(row)}
              <span class="soft">
                attempt {row.attempts}/{ATTEMPTS_MAX}
              </span>
            </span>
          ),
          'end',
        ],
      ]}
      rows={rows}
      keyOf={({ id }) => id}
      empty={<Empty title={empty} />}
    />
  );
}

function State({ row }: Readonly<{ row: AccountDelivery }>) {
  const nowMs = useContext(Now);
  const { state, nextAttemptAtMs, resendAtMs } = row;
  return (
    <span class="badges">
      <StateBadge of={STATE_WORDS[state]} />
      {state === 'retry_scheduled' && nextAttemptAtMs !== null && (
        <span class="soft">{nextAttemptAtMs > nowMs ? <Ago atMs={nextAttemptAtMs} /> : 'now'}</span>
      )}
      {resendAtMs !== null && <span class="soft">Resend queued</span>}
    </span>
  );
}

function eventCell({ eventKind, label, deploySlot }: AccountDelivery) {
  if (label === null) return <code>{eventKind}</code>;
  return (
    <span class="lines">
      {label}
      <span class="soft nowrap">
        {deploySlot === null ? eventKind : `upgraded, slot ${countText(deploySlot)}`}
      </span>
    </span>
  );
}

/** `503 in 240 ms`, `timeout in 10.0 s`. */
function answerText({ lastStatus, lastError, tookMs }: AccountDelivery): string {
  const word = lastStatus ?? (lastError === null ? undefined : wordOf(lastError));
  if (word === undefined) return '–';
  return tookMs === null ? String(word) : `${word} in ${latencyText(Math.max(0, tookMs))}`;
}

const PAGE_ROWS = 50;

/** The spans of time that a list can be narrowed to. */
export const SPANS = [
  { value: '24h', label: 'Last 24 hours', ms: DAY_MS },
  { value: '7d', label: 'Last 7 days', ms: 7 * DAY_MS },
  { value: '30d', label: 'Last 30 days', ms: 30 * DAY_MS },
] as const;

const STATES = Object.keys(STATE_WORDS) as readonly DeliveryState[]; // Object.keys forgets the keys' type
const EVENTS = ['program.upgraded', 'ping'] as const;

/** The filter in an address. Members that cannot be read are left out. */
function filterFrom(query: URLSearchParams, nowMs: number): DeliveryFilter {
  const state = STATES.find((known) => known === query.get('state'));
  const eventKind = EVENTS.find((known) => known === query.get('event'));
  const span = SPANS.find(({ value }) => value === query.get('time'));
  const [webhookId, programId] = [query.get('webhook') || undefined, query.get('program') || undefined];
  const after = cursorFrom(query.get('after'));
  return {
    limit: PAGE_ROWS,
    ...(state && { state }),
    ...(eventKind && { eventKind }),
    ...(webhookId && { webhookId }),
    ...(programId && { programId }),
    ...(span && { sinceMs: nowMs - span.ms }),
    ...(after && { after: { createdAtMs: after.atMs, id: after.id } }),
  };
}

function isNarrow({ state, eventKind, webhookId, programId, sinceMs }: DeliveryFilter): boolean {
  return [state, eventKind, webhookId, programId, sinceMs].some((member) => member !== undefined);
}
