/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { type KeyRow, type Keys, type KeyState, TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import { HOUR_MS, lastHours } from '../../../usage/calendar.ts';
import { sumOf } from '../../../usage/report.ts';
import { Sparkline } from '../../components/charts.tsx';
import { SecretBox } from '../../components/code.tsx';
import { Ago, countText, Time } from '../../components/format.tsx';
import {
  ButtonLink,
  ConfirmPanel,
  Filters,
  formContent,
  formIdFor,
  formIdFrom,
  INCOMPLETE_FORM,
  PostForm,
  RadioFields,
  TextField,
  unconfirmed,
} from '../../components/forms.tsx';
import { cursorFrom, Link, Pager } from '../../components/links.tsx';
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
import type { PageServices } from '../../page-services.ts';
import { type AccountContext, accountPage, type PageAccount, type FormRefusal } from '../../page.ts';
import { ACCOUNT, paths, redirect } from '../../paths.ts';

const ROWS = 50;
const WEEK_HOURS = 7 * 24;
const SEARCH_CHARACTERS_MAX = 64;

/** The keys of an account, the newest first. */
export const keyListPage = accountPage({
  path: paths.keys(ACCOUNT),
  entry: ['API keys', 'key'],
  show({ keys, usage }, { account, url: { searchParams }, nowMs }) {
    const search = (searchParams.get('search') ?? '').trim().slice(0, SEARCH_CHARACTERS_MAX);
    const before = cursorFrom(searchParams.get('before'));
    const { items, next } = keys.page({
      accountId: account.id,
      search,
      limit: ROWS,
      ...(before && { before: { createdAtMs: before.atMs, id: before.id } }),
    });
    const used = usage.byKey({ accountId: account.id }, lastHours(WEEK_HOURS, nowMs));
    const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
    const isNarrowed = search !== '' || before !== undefined;
    const newButton = (text: string) => (
      <ButtonLink to={`${paths.keys(account.id)}/new`} kind="primary" text={text} />
    );
    return {
      title: 'API keys',
      aside: newButton('Create key '),
      body: [
        <p>All keys share the account's rate limit and credits. A key is shown only once, when created.</p>,
        (isNarrowed || next !== undefined) && (
          <Filters isFiltered={isNarrowed}>
            <TextField
              name="search"
              label="Name, ID or last four characters"
              type="search"
              maxLength={SEARCH_CHARACTERS_MAX}
            />
          </Filters>
        ),
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
                {newButton('Create your first key')}
              </Empty>
            )
          }
        />,
        <Pager by="before" next={next && `${next.createdAtMs}.${next.id}`} />,
      ],
    };
  },
});

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

/** The form of a new key, which leads to the page that shows it. */
export const newKeyPage = accountPage({
  path: `${paths.keys(ACCOUNT)}/new`,
  show: ({ random }, context) => {
    const path = paths.keys(context.account.id);
    return formContent({
      title: 'Create API key',
      crumbs: [['API keys', path]],
      panel: 'New key',
      action: `${path}/new`,
      button: 'Create key',
      beside: <ButtonLink to={path} kind="quiet" text="Cancel" />,
      hidden: { once: formIdFor(context, random) },
      children: (
        <TextField
          name="name"
          label="Name"
          hint="Such as the application or host that will use it. It can be changed later."
          isRequired
          maxLength={64}
        />
      ),
    });
  },
  forms: {
    ''(services, context) {
      const { account, form, actor } = context;
      const once = formIdFrom(form);
      if (once === undefined) return INCOMPLETE_FORM;
      const made = services.keys.create(account.name, (form.get('name') ?? '').trim(), actor, once);
      return answered(services, context, once, made);
    },
  },
});

type KeyResult = ReturnType<Keys['create' | 'rename' | 'rotate']>;

/** Leads to the page of a key, which shows it if it is new; `once` is the id of the form. */
function answered(
  { oneTimeSecrets }: PageServices,
  { account, viewer }: AccountContext,
  once: string,
  result: KeyResult,
): Response | FormRefusal | undefined {
  switch (result.kind) {
    case 'created':
    case 'rotated':
      oneTimeSecrets.put(viewer.userId, result.made.key, once);
      return redirect(`${paths.key(account.id, result.made.id)}?shown=${once}`, `key-${result.kind}`);
    case 'made-before':
      return redirect(`${paths.key(account.id, result.id)}?shown=${once}`);
    case 'renamed':
      return redirect(paths.key(account.id, result.row.id), 'key-renamed');
    case 'bad-name':
      return { errors: { name: 'Use 1–64 printable characters, with no leading or trailing spaces.' } };
    case 'reserved-name':
      return { errors: { name: 'This key is used by the service and cannot be renamed.' } };
    case 'too-many':
      return { errors: { form: TOO_MANY_KEYS } };
    case 'ended':
      return { errors: { form: `The key is already ${result.state}.` } };
    case 'unknown-account':
    case 'unknown-key':
      return undefined;
    default:
      return unreachable(result);
  }
}

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

/** One key and its forms; the key itself when it was just made. */
export const keyPage = accountPage({
  path: paths.key(ACCOUNT, ':keyId'),
  find: ({ keys }, { account, params }) => keys.find(params['keyId'] ?? '', account.id),
  show({ keys, usage, oneTimeSecrets, random }, context, row) {
    const { account, nowMs, returned } = context;
    const isWorking = row.state === 'active' || row.state === 'expiring';
    const path = paths.key(account.id, row.id);
    return {
      title: row.name,
      crumbs: [['API keys', paths.keys(account.id)]],
      aside: <KeyBadge state={row.state} />,
      body: [
        shownKey(returned ? undefined : oneTimeSecrets.take(context), context),
        row.state === 'active' && oldKeyNotice(keys, account, row),
        row.state !== 'active' && returned?.action === `${path}/rotate` && (
          <Notice tone="bad">{returned.errors?.['form']}</Notice>
        ),
        keyUse(usage, { accountId: account.id, keyId: row.id }, nowMs),
        <Columns>
          <Panel
            title="Key"
            aside={<Link to={`${paths.usage(account.id)}?key=${row.id}`}>Usage by method</Link>}
          >
            {keyFacts(row)}
            {isWorking && (
              <PostForm action={`${path}/rename`} button="Rename" isInline>
                <TextField name="name" label="Name" value={row.name} isRequired maxLength={64} />
              </PostForm>
            )}
          </Panel>
          {row.state === 'active' && rotatePanel(path, formIdFor(context, random))}
        </Columns>,
        isWorking && (
          <ConfirmPanel
            title="Revoke key"
            id="revoke"
            action={`${path}/revoke`}
            phrase={row.name}
            button="Revoke key"
          >
            Requests with this key are rejected within a second. A revoked key cannot be reactivated; its
            usage history is kept.
          </ConfirmPanel>
        ),
      ],
    };
  },
  forms: {
    '/rename'(services, context, { id }) {
      const { account, form, actor } = context;
      const name = (form.get('name') ?? '').trim();
      return answered(services, context, '', services.keys.rename(id, name, actor, account.id));
    },
    /** Makes a key in place of this one. */
    '/rotate'(services, context, { id }) {
      const { account, form, actor } = context;
      const once = formIdFrom(form);
      const grace = GRACES.find(({ value }) => value === form.get('grace'));
      if (once === undefined) return INCOMPLETE_FORM;
      if (grace === undefined) return { errors: { form: 'Choose when the old key expires.' } };
      return answered(services, context, once, services.keys.rotate(id, grace.ms, actor, account.id, once));
    },
    '/revoke'({ keys }, { account, form, actor }, { id, name }) {
      const refusal = unconfirmed(form, name);
      if (refusal) return refusal;
      keys.revoke(id, actor, account.id);
      return redirect(paths.key(account.id, id), 'key-revoked');
    },
  },
});

/** The key that a rotation replaced by this one, while it still works. */
function oldKeyNotice(keys: PageServices['keys'], account: PageAccount, row: KeyRow) {
  const old = keys
    .page({ accountId: account.id, search: row.name, limit: 50 })
    .items.find(({ id, name, state }) => id !== row.id && name === row.name && state === 'expiring');
  if (old?.expiresAtMs === undefined) return null;
  return (
    <Notice tone="warning">
      The old key {old.prefix}…{old.last4} expires at <Time atMs={old.expiresAtMs} />.{' '}
      <Link to={`${paths.key(account.id, old.id)}#revoke`}>Revoke it now</Link>
    </Notice>
  );
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

function keyUse(usage: PageServices['usage'], whose: { accountId: number; keyId: string }, nowMs: number) {
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

function rotatePanel(path: string, once: string) {
  return (
    <Panel title="Rotate key" id="rotate">
      <p>
        Creates a new key with the same name and shows it once. The old key keeps working for the time you
        choose.
      </p>
      <PostForm action={`${path}/rotate`} button="Rotate key" kind="primary" hidden={{ once }}>
        <RadioFields name="grace" legend="Old key expires" value="24h" options={GRACES} />
      </PostForm>
    </Panel>
  );
}
