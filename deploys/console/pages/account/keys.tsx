/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { type KeyRow, type KeyState, TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import { HOUR_MS, lastHours } from '../../../usage/calendar.ts';
import { sumOf } from '../../../usage/report.ts';
import { Sparkline } from '../../components/charts.tsx';
import { SecretBox } from '../../components/code.tsx';
import { Ago, countText, Time } from '../../components/format.tsx';
import {
  ButtonLink,
  confirmErrors,
  ConfirmPanel,
  Filters,
  type FormErrors,
  formIdFrom,
  INCOMPLETE_FORM,
  newFormId,
  PostForm,
  RadioFields,
  type Returned,
  TextField,
} from '../../components/forms.tsx';
import {
  type Column,
  Columns,
  Empty,
  factList,
  Notice,
  Panel,
  StateBadge,
  type StateWord,
  statRow,
  Table,
} from '../../components/panels.tsx';
import { cursorFrom, Link, Pager } from '../../components/links.tsx';
import { type AccountContext, type AccountForm, byOf, type PageAccount } from '../../context.ts';
import type { AccountServices } from '../../page-services.ts';
import { paths, redirect } from '../../paths.ts';

const ROWS = 50;
const WEEK_HOURS = 7 * 24;
const SEARCH_CHARACTERS_MAX = 64;

/** The keys of an account, the newest first. */
export function keyListPage(
  { keys, usage }: AccountServices,
  { account, url, nowMs, show }: AccountContext,
): Response {
  const search = (url.searchParams.get('search') ?? '').trim().slice(0, SEARCH_CHARACTERS_MAX);
  const before = cursorFrom(url.searchParams.get('before'));
  const selection = {
    accountId: account.id,
    search,
    limit: ROWS,
    ...(before && { before: { createdAtMs: before.atMs, id: before.id } }),
  };
  const { items, next } = keys.page(selection);
  const used = usage.byKey({ accountId: account.id }, lastHours(WEEK_HOURS, nowMs));
  const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
  const path = paths.keys(account.id);
  const isNarrowed = search !== '' || before !== undefined;
  return show({
    title: 'API keys',
    aside: <ButtonLink to={`${path}/new`} kind="primary" text="Create key " />,
    body: (
      <>
        <p>All keys share the account's rate limit and credits. A key is shown only once, when created.</p>
        {(isNarrowed || next !== undefined) && (
          <Filters path={path} isFiltered={isNarrowed}>
            <TextField
              name="search"
              label="Name, ID or last four characters"
              type="search"
              value={search}
              maxLength={SEARCH_CHARACTERS_MAX}
            />
          </Filters>
        )}
        <Table
          caption="API keys, newest first"
          columns={columnsOf(account, calls)}
          rows={items}
          empty={
            isNarrowed ? (
              <Empty title="No matching keys" />
            ) : (
              <Empty
                title="No API keys yet"
                text="API keys give access to the RPC endpoint and the program API."
              >
                <ButtonLink to={`${path}/new`} kind="primary" text="Create your first key" />
              </Empty>
            )
          }
        />
        <Pager url={url} by="before" next={next && `${next.createdAtMs}.${next.id}`} />
      </>
    ),
  });
}

function columnsOf(account: PageAccount, calls: ReadonlyMap<string, number>): readonly Column<KeyRow>[] {
  return [
    ['Name', ({ id, name }) => <Link to={paths.key(account.id, id)}>{name}</Link>, 'head'],
    ['Key', (row) => <KeyEnds row={row} />],
    [
      'State',
      ({ state, expiresAtMs }) => (
        <>
          <KeyBadge state={state} />
          {state === 'expiring' && expiresAtMs !== undefined && (
            <>
              {' '}
              <Ago atMs={expiresAtMs} />
            </>
          )}
        </>
      ),
    ],
    ['Requests, 7 days', ({ id }) => countText(calls.get(id) ?? 0), 'end'],
    ['Last used', ({ lastUsedAtMs }) => <Ago atMs={lastUsedAtMs} none="Never" />],
    ['Created', ({ createdAtMs }) => <Ago atMs={createdAtMs} />],
  ];
}

export function newKeyPage({ random }: AccountServices, context: AccountContext): Response {
  return showForm(context, newFormId(random));
}

/** Creates a key and redirects to the page that shows it. */
export function createKey({ keys, oneTimeSecrets, random }: AccountServices, context: AccountForm): Response {
  const { account, form: sent, viewer } = context;
  const once = formIdFrom(sent);
  if (once === undefined)
    return showForm(context, newFormId(random), { sent, errors: { form: INCOMPLETE_FORM } });
  const result = keys.create(account.name, (sent.get('name') ?? '').trim(), byOf(context).actor, once);
  switch (result.kind) {
    case 'created':
      oneTimeSecrets.put(viewer.userId, result.made.key, once);
      return redirect(`${paths.key(account.id, result.made.id)}?shown=${once}`, 'key-created');
    case 'made-before':
      return redirect(`${paths.key(account.id, result.id)}?shown=${once}`);
    case 'bad-name':
      return showForm(context, once, { sent, errors: { name: BAD_KEY_NAME } });
    case 'too-many':
      return showForm(context, once, { sent, errors: { form: TOO_MANY_KEYS } });
    case 'unknown-account':
      return context.notFound();
    default:
      return unreachable(result);
  }
}

function showForm({ account, show }: AccountContext, once: string, returned: Returned = {}): Response {
  const path = paths.keys(account.id);
  return show({
    title: 'Create API key',
    status: returned.errors && 422,
    crumbs: [['API keys', path]],
    body: (
      <Panel title="New key">
        <PostForm
          action={`${path}/new`}
          button="Create key"
          kind="primary"
          beside={<ButtonLink to={path} kind="quiet" text="Cancel" />}
          hidden={{ once }}
          {...returned}
        >
          <TextField
            name="name"
            label="Name"
            hint="Such as the application or host that will use it. It can be changed later."
            isRequired
            maxLength={64}
          />
        </PostForm>
      </Panel>
    ),
  });
}

const BAD_KEY_NAME = 'Use 1–64 printable characters, with no leading or trailing spaces.';

const STATES: Readonly<Record<KeyState, StateWord>> = {
  active: ['Active', 'good'],
  expiring: ['Expiring', 'warning'],
  expired: ['Expired', 'quiet'],
  revoked: ['Revoked', 'bad'],
};

export function KeyBadge({ state }: Readonly<{ state: KeyState }>) {
  return <StateBadge of={STATES[state]} />;
}

/** All that is stored of a key's text. */
function KeyEnds({ row: { prefix, last4 } }: Readonly<{ row: Pick<KeyRow, 'prefix' | 'last4'> }>) {
  return (
    <code class="nowrap">
      {prefix}…{last4}
    </code>
  );
}

type KeyFormErrors = Readonly<Partial<Record<'rename' | 'rotate' | 'revoke', FormErrors>>>;

/** One key and its forms, with what was wrong with one of them; the key itself when it was just made. */
export function keyPage(
  { keys, usage, oneTimeSecrets, random }: AccountServices,
  context: AccountContext,
  errors?: KeyFormErrors,
): Response {
  const { account, params, nowMs, show } = context;
  const row = keys.find(params['keyId'] ?? '', account.id);
  if (row === undefined) return context.notFound();
  const secret = oneTimeSecrets.take(context);
  const isWorking = row.state === 'active' || row.state === 'expiring';
  const path = paths.key(account.id, row.id);
  const predecessor = keys
    .page({ accountId: account.id, search: row.name, limit: 50 })
    .items.find(({ id, name, state }) => id !== row.id && name === row.name && state === 'expiring');
  return show({
    title: row.name,
    status: errors && 422,
    crumbs: [['API keys', paths.keys(account.id)]],
    aside: <KeyBadge state={row.state} />,
    body: (
      <>
        {shownKey(secret, context)}
        {predecessor?.expiresAtMs !== undefined && row.state === 'active' && (
          <Notice tone="warning">
            The old key {predecessor.prefix}…{predecessor.last4} expires at{' '}
            <Time atMs={predecessor.expiresAtMs} />.{' '}
            <Link to={`${paths.key(account.id, predecessor.id)}#revoke`}>Revoke it now</Link>
          </Notice>
        )}
        {row.state !== 'active' && errors?.rotate?.['form'] !== undefined && (
          <Notice tone="bad">{errors.rotate['form']}</Notice>
        )}
        {keyUse(usage, { accountId: account.id, keyId: row.id }, nowMs)}
        <Columns>
          <Panel
            title="Key"
            aside={<Link to={`${paths.usage(account.id)}?key=${row.id}`}>Usage by method</Link>}
          >
            {keyFacts(row)}
            {isWorking && (
              <PostForm action={`${path}/rename`} button="Rename" isInline errors={errors?.rename}>
                <TextField name="name" label="Name" value={row.name} isRequired maxLength={64} />
              </PostForm>
            )}
          </Panel>
          {row.state === 'active' && rotatePanel(path, newFormId(random), errors?.rotate)}
        </Columns>
        {isWorking && (
          <ConfirmPanel
            title="Revoke key"
            id="revoke"
            action={`${path}/revoke`}
            phrase={row.name}
            button="Revoke key"
            errors={errors?.revoke}
          >
            Requests with this key are rejected within a second. A revoked key cannot be reactivated; its
            usage history is kept.
          </ConfirmPanel>
        )}
      </>
    ),
  });
}

/** The key itself, the one time that it is there to be shown. */
function shownKey(secret: string | undefined, { account, url }: AccountContext) {
  if (secret !== undefined)
    return (
      <>
        <SecretBox name="API key" secret={secret} />
        <p>
          Active within a second. See <Link to={paths.quickStart(account.id)}>Quick start</Link> for usage.
        </p>
      </>
    );
  if (!url.searchParams.has('shown')) return null;
  return (
    <Notice tone="quiet">
      The key has already been shown or the page has expired. If you don't have a copy, revoke it and create
      another.
    </Notice>
  );
}

function keyFacts(row: KeyRow) {
  const { id, createdAtMs, lastUsedAtMs, expiresAtMs, state } = row;
  return factList([
    ['Key', <KeyEnds row={row} />],
    ['ID', <code>{id}</code>],
    ['Created', <Time atMs={createdAtMs} />],
    ['Last used', <Ago atMs={lastUsedAtMs} none="Never" />],
    expiresAtMs !== undefined && [state === 'expiring' ? 'Expires' : 'Expired', <Time atMs={expiresAtMs} />],
  ]);
}

function keyUse(usage: AccountServices['usage'], whose: { accountId: number; keyId: string }, nowMs: number) {
  const points = usage.series(whose, lastHours(WEEK_HOURS, nowMs));
  const week = sumOf(points.map(({ counts }) => counts));
  const day = points.slice(-24).map(({ counts }) => counts.calls);
  const dayCalls = day.reduce((sum, calls) => sum + calls, 0);
  return statRow([
    [
      'Requests, 24 hours',
      countText(dayCalls),
      <Sparkline values={day} label={`${countText(dayCalls)} requests in 24 hours, by hour`} />,
    ],
    ['Requests, 7 days', countText(week.calls)],
    ['Credits, 7 days', countText(week.credits - week.refunded)],
    ['Errors, 7 days', countText(week.errors)],
    ['Rejected, 7 days', countText(week.refused)],
  ]);
}

const GRACES = [
  { value: '0', label: 'Immediately', hint: 'If the key has leaked.', ms: 0 },
  { value: '1h', label: 'In 1 hour', ms: HOUR_MS },
  { value: '24h', label: 'In 24 hours', ms: 24 * HOUR_MS },
  { value: '7d', label: 'In 7 days', ms: 168 * HOUR_MS },
];

function rotatePanel(path: string, once: string, errors: FormErrors | undefined) {
  return (
    <Panel title="Rotate key" id="rotate">
      <p>
        Creates a new key with the same name and shows it once. The old key keeps working for the time you
        choose.
      </p>
      <PostForm
        action={`${path}/rotate`}
        button="Rotate key"
        kind="primary"
        hidden={{ once }}
        errors={errors}
      >
        <RadioFields name="grace" legend="Old key expires" value="24h" options={GRACES} />
      </PostForm>
    </Panel>
  );
}

export function renameKey(services: AccountServices, context: AccountForm): Response {
  const { account, form, params } = context;
  const id = params['keyId'] ?? '';
  const result = services.keys.rename(id, (form.get('name') ?? '').trim(), byOf(context).actor, account.id);
  const again = (name: string) => keyPage(services, context, { rename: { name } });
  switch (result.kind) {
    case 'renamed':
      return redirect(paths.key(account.id, id), 'key-renamed');
    case 'bad-name':
      return again(BAD_KEY_NAME);
    case 'reserved-name':
      return again('This key is used by the service and cannot be renamed.');
    case 'unknown-key':
      return context.notFound();
    default:
      return unreachable(result);
  }
}

/** Makes a key in place of this one, and leads to the page of the new key, which shows it. */
export function rotateKey(services: AccountServices, context: AccountForm): Response {
  const { account, form, params, viewer } = context;
  const id = params['keyId'] ?? '';
  const once = formIdFrom(form);
  const grace = GRACES.find(({ value }) => value === form.get('grace'));
  const again = (form: string) => keyPage(services, context, { rotate: { form } });
  if (once === undefined) return again(INCOMPLETE_FORM);
  if (grace === undefined) return again('Choose when the old key expires.');
  const result = services.keys.rotate(id, grace.ms, byOf(context).actor, account.id, once);
  switch (result.kind) {
    case 'rotated':
      services.oneTimeSecrets.put(viewer.userId, result.made.key, once);
      return redirect(`${paths.key(account.id, result.made.id)}?shown=${once}`, 'key-rotated');
    case 'made-before':
      return redirect(`${paths.key(account.id, result.id)}?shown=${once}`);
    case 'too-many':
      return again(TOO_MANY_KEYS);
    case 'ended':
      return again(`The key is already ${result.state}.`);
    case 'unknown-key':
      return context.notFound();
    default:
      return unreachable(result);
  }
}

export function revokeKey(services: AccountServices, context: AccountForm): Response {
  const { account, form, params } = context;
  const id = params['keyId'] ?? '';
  const row = services.keys.find(id, account.id);
  if (row === undefined) return context.notFound();
  const revoke = confirmErrors(form, row.name);
  if (revoke) return keyPage(services, context, { revoke });
  services.keys.revoke(id, byOf(context).actor, account.id);
  return redirect(paths.key(account.id, id), 'key-revoked');
}
