/** @jsxImportSource preact */
import { EVENT_KINDS } from '../../../outbox/enqueue.ts';
import { useContext } from 'preact/hooks';
import {
  type AttemptRow,
  type DeliveryFilter,
  type DeliveryPage,
  type DeliveryRow,
  ID_PART_MIN,
} from '../../../outbox/list.ts';
import { ATTEMPTS_MAX, DELIVERY_STATES, type DeliveryState } from '../../../outbox/delivery-state.ts';
import { SEND_TEXTS } from '../../../outbox/outcome.ts';
import { DAY_MS } from '../../../usage/calendar.ts';
import { CodeBlock } from '../../components/code.tsx';
import { Ago, bytesText, countText, latencyText, Time } from '../../components/format.tsx';
import { Filters, filterSelect, TextField } from '../../components/forms.tsx';
import { Here } from '../../components/here.ts';
import { cursorFrom, Link, Pager } from '../../components/links.tsx';
import { Empty, Live, Panel, StateBadge, type StateWord, Table } from '../../components/panels.tsx';
import type { PageServices } from '../../page-services.ts';
import { type AccountContext, accountPage } from '../../page.ts';
import { ACCOUNT, paths } from '../../paths.ts';

/** The states of a delivery with what they are called and how they look. */
export const STATE_WORDS: Readonly<Record<DeliveryState, StateWord>> = {
  queued: ['Queued', 'waiting'],
  attempting: ['Attempting', 'waiting'],
  retry_scheduled: ['Retrying', 'warning'],
  delivered: ['Delivered', 'good'],
  failed: ['Failed', 'bad'],
  skipped: ['Skipped', 'quiet'],
  cancelled: ['Cancelled', 'quiet'],
};

/** The deliveries of all webhooks of an account, filtered or searched. */
export const deliveryListPage = accountPage({
  path: paths.deliveries(ACCOUNT),
  entry: ['Deliveries', 'send'],
  show(services, context) {
    const { account, nowMs, url } = context;
    const filter = filterFrom(url.searchParams, nowMs);
    const search = (url.searchParams.get('q') ?? '').trim();
    const { rows, next } =
      search === ''
        ? services.deliveries.page(account.id, filter)
        : { rows: services.deliveries.search(account.id, search), next: undefined };
    return {
      title: 'Deliveries',
      body: [
        filters(services, context, isNarrow(filter) || search !== ''),
        <Live id="deliveries" isOver={filter.after !== undefined}>
          <Panel title={search === '' ? 'Newest first' : 'Search results'} isFlush>
            {deliveryTable(account.id, rows, emptyText(search, filter, next), filter.webhookId !== undefined)}
          </Panel>
        </Live>,
        <Pager by="after" next={next && `${next.createdAtMs}.${next.id}`} />,
      ],
    };
  },
});

function emptyText(search: string, filter: DeliveryFilter, next: DeliveryPage['next']): string {
  if (search !== '')
    return search.length < ID_PART_MIN
      ? `Enter at least ${ID_PART_MIN} characters of an ID`
      : 'No delivery ID starts with this';
  if (next !== undefined) return 'No matching deliveries on this page; there may be older ones';
  return isNarrow(filter) || filter.after ? 'No matching deliveries' : 'No deliveries yet';
}

function filters(services: PageServices, { account, nowMs }: AccountContext, isFiltered: boolean) {
  const webhooks = services.webhooks.list(account.id).map(({ id, url }) => [id, new URL(url).host] as const);
  const programs = services.programs({}, nowMs).map(({ programId, label }) => [programId, label] as const);
  const states = DELIVERY_STATES.map((state) => [state, STATE_WORDS[state][0]] as const);
  return (
    <Filters isFiltered={isFiltered}>
      <TextField name="q" label="Delivery ID" type="search" placeholder="First 8+ characters" isCode />
      {filterSelect('state', 'State', states)}
      {filterSelect('event', 'Event', EVENT_KINDS)}
      {filterSelect('webhook', 'Webhook', webhooks)}
      {filterSelect('program', 'Program', programs)}
      {filterSelect('time', 'Time', SPANS)}
    </Filters>
  );
}

/** Deliveries, each opening at the side; the webhook is not named where all are of one. */
export function deliveryTable(
  accountId: number,
  rows: readonly DeliveryRow[],
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
      empty={<Empty title={empty} />}
    />
  );
}

function State({ row }: Readonly<{ row: DeliveryRow }>) {
  const { nowMs } = useContext(Here);
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

function eventCell({ eventKind, label, deploySlot }: DeliveryRow) {
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
function answerText({ lastStatus, lastError, tookMs }: DeliveryRow): string {
  const word = lastStatus ?? (lastError === null ? undefined : wordOf(lastError));
  if (word === undefined) return '–';
  return tookMs === null ? String(word) : `${word} in ${latencyText(Math.max(0, tookMs))}`;
}

const PAGE_ROWS = 50;

/** Their values, labels and lengths. */
export const SPANS = [
  ['24h', 'Last 24 hours', DAY_MS],
  ['7d', 'Last 7 days', 7 * DAY_MS],
  ['30d', 'Last 30 days', 30 * DAY_MS],
] as const;

/** The filter in an address. Members that cannot be read are left out. */
function filterFrom(query: URLSearchParams, nowMs: number): DeliveryFilter {
  const state = DELIVERY_STATES.find((known) => known === query.get('state'));
  const eventKind = EVENT_KINDS.find((known) => known === query.get('event'));
  const spanMs = SPANS.find(([value]) => value === query.get('time'))?.[2];
  const [webhookId, programId] = [query.get('webhook') || undefined, query.get('program') || undefined];
  const after = cursorFrom(query.get('after'));
  return {
    limit: PAGE_ROWS,
    ...(state && { state }),
    ...(eventKind && { eventKind }),
    ...(webhookId && { webhookId }),
    ...(programId && { programId }),
    ...(spanMs && { sinceMs: nowMs - spanMs }),
    ...(after && { after: { createdAtMs: after.atMs, id: after.id } }),
  };
}

function isNarrow({ state, eventKind, webhookId, programId, sinceMs }: DeliveryFilter): boolean {
  return [state, eventKind, webhookId, programId, sinceMs].some((member) => member !== undefined);
}

/** A status or an error in a word: `503`, `timeout`, `dns error`. */
export function wordOf(word: string): string {
  return word.replace(/^http_/, '').replaceAll('_', ' ');
}

export function attemptWord({ state, status, error }: AttemptRow): string {
  if (status !== null) return String(status);
  if (error !== null) return wordOf(error);
  return state === 'started' ? 'in progress' : state;
}

export function attemptText({ state, status, error }: AttemptRow): string {
  if (state === 'started') return 'In progress';
  if (state === 'interrupted' && status === null)
    return 'Outcome unknown: the service was stopped. It will be retried';
  return errorText(status === null ? (error ?? 'failed') : `http_${status}`);
}

/** An attempt's error in a sentence. */
export function errorText(error: string): string {
  const status = /^http_(\d{3})$/.exec(error)?.[1];
  if (status !== undefined) return `Endpoint returned ${status}`;
  return Object.hasOwn(SEND_TEXTS, error) ? SEND_TEXTS[error as keyof typeof SEND_TEXTS] : wordOf(error); // just looked up
}

/** The body of a response, as text where it is text. */
export function responseBody(id: string, { answerBody, answerBodyKind }: AttemptRow) {
  if (answerBody === null) return <p class="soft">The response body is no longer stored.</p>;
  if (answerBody.length === 0) return <p class="soft">The response had no body.</p>;
  const shown = shownBytes(answerBody, answerBodyKind === 'whole');
  const size = bytesText(answerBody.length);
  return (
    <>
      <p class="soft">
        {shown.kind === 'binary' ? `Binary, ${size}; first bytes` : `Body, ${size}`}
        {answerBodyKind === 'cut' && '; truncated'}
        {answerBodyKind === 'incomplete' && '; connection closed early'}
      </p>
      <CodeBlock id={id} label="Response body" text={shown.text} />
    </>
  );
}

/** Bytes for people: as text, or the first of them in hex when they are none. */
type ShownBytes = Readonly<{ kind: 'text' | 'binary'; text: string }>;

const HEX_BYTES = 256;
const ROW_BYTES = 16;
/** A character that was cut in the middle has at most three bytes. */
const CUT_MAX = 3;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const CONTROLS = /[\u0000-\u0008\u000e-\u001f\u007f]/;

/** Reads bytes as UTF-8; what `isWhole` denies may end in the middle of a character. */
export function shownBytes(bytes: Uint8Array, isWhole: boolean): ShownBytes {
  for (let cut = 0; cut <= (isWhole ? 0 : CUT_MAX); cut++) {
    const text = textOf(bytes.subarray(0, bytes.length - cut));
    if (text !== undefined && !CONTROLS.test(text)) return { kind: 'text', text };
  }
  return { kind: 'binary', text: hexOf(bytes.subarray(0, HEX_BYTES)) };
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function hexOf(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += ROW_BYTES) {
    const row = [...bytes.subarray(at, at + ROW_BYTES)].map((byte) => byte.toString(16).padStart(2, '0'));
    rows.push(`${at.toString(16).padStart(4, '0')}  ${row.join(' ')}`);
  }
  return rows.join('\n');
}

const PARTS = [
  ['dnsMs', 'DNS'],
  ['connectMs', 'Connect'],
  ['tlsMs', 'TLS'],
  ['firstByteMs', 'First byte'],
] as const;

type TimeRange = Readonly<Partial<Record<(typeof PARTS)[number][0] | 'totalMs', number>>>;
/** A part of an attempt; `startMs` is from the attempt's start. */
type ListPart = Readonly<{ label: string; startMs: number; ms: number }>;

/** Where the time of an attempt went, each part behind the one before it. */
export function phaseBars(phasesJson: string) {
  const times = JSON.parse(phasesJson) as TimeRange; // as `finish` wrote it
  const { totalMs = 0 } = times;
  return (
    <table class="phases">
      <caption class="hidden">Timing</caption>
      <tbody>
        {partsOf(times).map((part, i) => (
          <tr>
            <th scope="row">{part.label}</th>
            <td>{bar(part, totalMs, `var(--series-${i + 1})`)}</td>
            <td class="align-end">{latencyText(part.ms)}</td>
          </tr>
        ))}
        <tr>
          <th scope="row">Total</th>
          <td />
          <td class="align-end">{latencyText(totalMs)}</td>
        </tr>
      </tbody>
    </table>
  );
}

/** The parts that were finished, and the rest up to the end. */
function partsOf(times: TimeRange): readonly ListPart[] {
  const parts: ListPart[] = [];
  let startMs = 0;
  for (const [name, label] of PARTS) {
    const ms = times[name];
    if (ms === undefined) continue;
    parts.push({ label, startMs, ms });
    startMs += ms;
  }
  const restMs = (times.totalMs ?? 0) - startMs;
  const isAnswered = times.firstByteMs !== undefined;
  return restMs < 0.5 ? parts : [...parts, { label: isAnswered ? 'Body' : 'Remaining', startMs, ms: restMs }];
}

/** A drawing, because a width cannot be written into the page's style. */
function bar(part: ListPart, wholeMs: number, fill: string) {
  const whole = Math.max(1, wholeMs);
  const width = Math.max(0.5, (part.ms / whole) * 100);
  const x = Math.min(100 - width, (part.startMs / whole) * 100);
  return (
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect x="0" y="3.5" width="100" height="1" fill="var(--line)" />
      <rect x={x.toFixed(2)} y="0" width={width.toFixed(2)} height="8" fill={fill} />
    </svg>
  );
}

type HeaderLine = readonly [name: string, value: string];

/** The request headers of an attempt; none before it was sent. */
export function sentHeaders({ requestHeadersJson }: AttemptRow): readonly HeaderLine[] {
  if (requestHeadersJson === null) return [];
  const headers = JSON.parse(requestHeadersJson) as Record<string, string>; // as `finish` wrote it
  return [['Content-Type', 'application/json'], ...Object.entries(headers)];
}

/** The same request for a shell: its signature fits this body, and is old after five minutes. */
export function curlOf(attempt: AttemptRow, body: Uint8Array): string {
  const headers = sentHeaders(attempt).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return [
    `curl -X POST ${quoted(attempt.url)}`,
    ...headers,
    `--data-binary ${quoted(Buffer.from(body).toString('utf8'))}`,
  ].join(' \\\n  ');
}

/** One word to every shell of the Bourne family, whatever is in it. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
