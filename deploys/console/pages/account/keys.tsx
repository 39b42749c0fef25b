/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { type KeyPlace, type KeyRow, type KeyState, TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import { Ago, countText } from '../../components/format.tsx';
import {
  ButtonLink,
  Buttons,
  Filters,
  FORM_ID_FIELD,
  type FormErrors,
  formIdFrom,
  Hidden,
  newFormId,
  PostForm,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { Badge, type Tone } from '../../components/icons.tsx';
import { Link, Pager, withQuery } from '../../components/links.tsx';
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
  const before = fromCursor(url.searchParams.get('before'));
  const selection = { accountId: account.id, search, limit: ROWS, ...(before && { before }) };
  const { items, next } = keys.page(selection);
  const toHour = Math.floor(nowMs / HOUR_MS) + 1;
  const used = usage.byKey({ accountId: account.id }, { fromHour: toHour - WEEK_HOURS, toHour });
  const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
  const path = paths.keys(account.id);
  const isNarrowed = search !== '' || before !== undefined;
  return show({
    title: 'Keys',
    aside: (
      <ButtonLink to={`${path}/new`} kind="primary">
        New key
      </ButtonLink>
    ),
    body: (
      <>
        <p>
          Every key draws on the rate and the credits of the account. A key is shown once, when it is made.
        </p>
        {(isNarrowed || next !== undefined) && (
          <Filters path={path} isFiltered={isNarrowed}>
            <TextField
              name="search"
              label="Name, id or last four characters"
              type="search"
              value={search}
              maxLength={SEARCH_CHARACTERS_MAX}
            />
          </Filters>
        )}
        <Table
          caption="Keys, the newest first"
          columns={columnsOf(account, calls, nowMs)}
          rows={items}
          keyOf={({ id }) => id}
          empty={isNarrowed ? <Empty title="No key is like that." /> : <NoKeys path={path} />}
        />
        <Pager
          first={before && withQuery(url, { before: undefined })}
          older={next && withQuery(url, { before: `${next.createdAtMs}.${next.id}` })}
        />
      </>
    ),
  });
}

function columnsOf(
  account: PageAccount,
  calls: ReadonlyMap<string, number>,
  nowMs: number,
): readonly Column<KeyRow>[] {
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
              <Ago atMs={expiresAtMs} nowMs={nowMs} />
            </>
          )}
        </>
      ),
    ],
    ['Requests, 7 days', ({ id }) => countText(calls.get(id) ?? 0), 'end'],
    ['Last used', ({ lastUsedAtMs }) => <Ago atMs={lastUsedAtMs} nowMs={nowMs} none="never" />],
    ['Created', ({ createdAtMs }) => <Ago atMs={createdAtMs} nowMs={nowMs} />],
  ];
}

function NoKeys({ path }: Readonly<{ path: string }>) {
  return (
    <Empty title="There is no key yet.">
      <p>A key opens the RPC endpoint and the program API.</p>
      <ButtonLink to={`${path}/new`} kind="primary">
        Make the first key
      </ButtonLink>
    </Empty>
  );
}

/** `1795298709000.k_ab12`; anything else is the beginning of the list. */
function fromCursor(text: string | null): KeyPlace | undefined {
  const [, atMs, id] = /^(\d{1,15})\.([\w-]{1,64})$/.exec(text ?? '') ?? [];
  return atMs === undefined || id === undefined ? undefined : { createdAtMs: Number(atMs), id };
}

/** The form of a new key. */
export function newKeyPage({ random }: AccountServices, context: AccountContext): Response {
  return showForm(context, newFormId(random));
}

/** Makes a key and leads to the page that shows it. */
export function createKey({ keys, oneTimeSecrets, random }: AccountServices, context: AccountForm): Response {
  const { account, form, viewer } = context;
  const name = (form.get('name') ?? '').trim();
  const once = formIdFrom(form);
  if (once === undefined) return showForm(context, newFormId(random), name, { form: STALE_FORM });
  const result = keys.create(account.name, name, byOf(context).actor, once);
  switch (result.kind) {
    case 'created':
      oneTimeSecrets.put(viewer.userId, result.made.key, once);
      return redirect(`${paths.key(account.id, result.made.id)}?shown=${once}`, 'key-created');
    case 'made-before':
      return redirect(`${paths.key(account.id, result.id)}?shown=${once}`);
    case 'bad-name':
      return showForm(context, once, name, { name: BAD_KEY_NAME });
    case 'too-many':
      return showForm(context, once, name, { form: TOO_MANY_KEYS });
    case 'unknown-account':
      return context.notFound();
    default:
      return unreachable(result);
  }
}

function showForm({ account, show }: AccountContext, once: string, name = '', errors?: FormErrors): Response {
  const path = paths.keys(account.id);
  return show({
    title: 'New key',
    status: errors && 422,
    crumbs: [{ label: 'Keys', to: path }],
    body: (
      <Panel title="What is it for?">
        <PostForm action={`${path}/new`} errors={errors}>
          <Hidden name={FORM_ID_FIELD} value={once} />
          <TextField
            name="name"
            label="Name"
            hint="For you alone, such as the program or the host that will use it. It can be changed."
            value={name}
            isRequired
            maxLength={64}
            error={errors?.['name']}
          />
          <Buttons>
            <Submit kind="primary">Create the key</Submit>
            <ButtonLink to={path} kind="quiet">
              Cancel
            </ButtonLink>
          </Buttons>
        </PostForm>
      </Panel>
    ),
  });
}

/** Why a name of a key is refused. */
export const BAD_KEY_NAME = 'A name is 1 to 64 printable characters without a space at either end.';
/** Why a form that was not made here, or was changed on its way, is refused. */
export const STALE_FORM =
  'This form is not from this page any more. Open the page again and send it once more.';

const STATES: Readonly<Record<KeyState, readonly [Tone, string]>> = {
  active: ['good', 'Active'],
  expiring: ['warning', 'Ends soon'],
  expired: ['quiet', 'Ended'],
  revoked: ['bad', 'Revoked'],
};

/** The state of a key, in words. */
export function KeyBadge({ state }: Readonly<{ state: KeyState }>) {
  const [tone, word] = STATES[state];
  return <Badge tone={tone}>{word}</Badge>;
}

/** All that is kept of a key's text. */
export function KeyEnds({ row: { prefix, last4 } }: Readonly<{ row: Pick<KeyRow, 'prefix' | 'last4'> }>) {
  return (
    <code class="nowrap">
      {prefix}…{last4}
    </code>
  );
}
