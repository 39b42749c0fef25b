/** @jsxImportSource preact */
import type { KeyPlace, KeyRow } from '../../../accounts/key-row.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';
import type { AskedOfAccount, Page, PageAccount } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { Empty } from '../../components/panels.tsx';
import { ButtonLink, Filters, TextField } from '../../components/forms.tsx';
import { Link, Pager, withQuery } from '../../components/links.tsx';
import { Ago, countText } from '../../components/format.tsx';
import { type Column, Table } from '../../components/table.tsx';
import { KeyBadge, KeyEnds } from './key-texts.tsx';
import { keyPath, keysPath } from '../../paths.ts';

const ROWS = 50;
const WEEK_HOURS = 7 * 24;
const SEARCH_CHARACTERS_MAX = 64;

/** `/keys`: the keys of an account, the newest first. */
export function createKeyListPage({ keys, usage }: Pick<PageDeps, 'keys' | 'usage'>): Page<AskedOfAccount> {
  return function keyListPage({ account, url, nowMs, show }) {
    const search = (url.searchParams.get('search') ?? '').trim().slice(0, SEARCH_CHARACTERS_MAX);
    const before = placeFrom(url.searchParams.get('before'));
    const wish = { accountId: account.id, search, limit: ROWS, ...(before && { before }) };
    const { items, next } = keys.page(wish);
    const toHour = Math.floor(nowMs / HOUR_MS) + 1;
    const used = usage.byKey({ accountId: account.id }, { fromHour: toHour - WEEK_HOURS, toHour });
    const calls = new Map(used.map(({ name, counts }) => [name, counts.calls]));
    const path = keysPath(account);
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
  };

  function columnsOf(
    account: PageAccount,
    calls: ReadonlyMap<string, number>,
    nowMs: number,
  ): readonly Column<KeyRow>[] {
    return [
      {
        label: 'Name',
        isRowHead: true,
        cell: ({ id, name }) => <Link to={keyPath(account, id)}>{name}</Link>,
      },
      { label: 'Key', cell: (row) => <KeyEnds row={row} /> },
      {
        label: 'State',
        cell: ({ state, expiresAtMs }) => (
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
      },
      { label: 'Requests, 7 days', align: 'end', cell: ({ id }) => countText(calls.get(id) ?? 0) },
      {
        label: 'Last used',
        cell: ({ lastUsedAtMs }) =>
          lastUsedAtMs === undefined ? 'never' : <Ago atMs={lastUsedAtMs} nowMs={nowMs} />,
      },
      { label: 'Created', cell: ({ createdAtMs }) => <Ago atMs={createdAtMs} nowMs={nowMs} /> },
    ];
  }
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
function placeFrom(text: string | null): KeyPlace | undefined {
  const [, atMs, id] = /^(\d{1,15})\.([\w-]{1,64})$/.exec(text ?? '') ?? [];
  return atMs === undefined || id === undefined ? undefined : { createdAtMs: Number(atMs), id };
}
