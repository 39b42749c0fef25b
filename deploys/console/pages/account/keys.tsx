/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { type KeyRow, type KeyState, TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import { Ago, countText } from '../../components/format.tsx';
import {
  ButtonLink,
  Filters,
  formIdFrom,
  newFormId,
  PostForm,
  type Returned,
  TextField,
} from '../../components/forms.tsx';
import { StateBadge, type StateWord } from '../../components/icons.tsx';
import { cursorFrom, Link, Pager } from '../../components/links.tsx';
import { Empty, Panel } from '../../components/panels.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { type AccountContext, type AccountForm, byOf, type PageAccount } from '../../context.ts';
import type { AccountServices } from '../../page-services.ts';
import { paths } from '../../paths.ts';
import { redirect } from '../../redirect.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';

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
  const toHour = Math.floor(nowMs / HOUR_MS) + 1;
  const used = usage.byKey({ accountId: account.id }, { fromHour: toHour - WEEK_HOURS, toHour });
  const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
  const path = paths.keys(account.id);
  const isNarrowed = search !== '' || before !== undefined;
  return show({
    title: 'API keys',
    aside: (
      <ButtonLink to={`${path}/new`} kind="primary">
        Create key{' '}
      </ButtonLink>
    ),
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
          keyOf={({ id }) => id}
          empty={
            isNarrowed ? (
              <Empty title="No matching keys" />
            ) : (
              <Empty title="No API keys yet">
                <p>API keys give access to the RPC endpoint and the program API.</p>
                <ButtonLink to={`${path}/new`} kind="primary">
                  Create your first key
                </ButtonLink>
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
  if (once === undefined) return showForm(context, newFormId(random), { sent, errors: { form: STALE_FORM } });
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
          beside={
            <ButtonLink to={path} kind="quiet">
              Cancel
            </ButtonLink>
          }
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

export const BAD_KEY_NAME = 'Use 1–64 printable characters, with no leading or trailing spaces.';
/** The error of a form without an id, or with an altered one. */
export const STALE_FORM = 'The form was incomplete. Please try again.';

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
export function KeyEnds({ row: { prefix, last4 } }: Readonly<{ row: Pick<KeyRow, 'prefix' | 'last4'> }>) {
  return (
    <code class="nowrap">
      {prefix}…{last4}
    </code>
  );
}
