/** @jsxImportSource preact */
import { readEmail } from '../../../users/email.ts';
import type { AskedByViewer, Page } from '../../context.ts';
import { Empty } from '../../components/panels.tsx';
import { Filters, SelectField, TextField } from '../../components/forms.tsx';
import { Pager, withQuery } from '../../components/links.tsx';
import type { PageDeps } from '../../page-services.ts';
import { AuditTable, wordsOf } from './audit-table.tsx';
import { AUDIT_PATH, idFrom } from '../../paths.ts';
import { createWhoOf } from './who.ts';

type Deps = Pick<PageDeps, 'operator' | 'people' | 'keys' | 'accounts'>;

/** Entries of one page. */
const PAGE = 50;
const COMMAND_LINE = 'command-line';

/** `undefined`: not filtered; `unknown`: there is nothing of that name. */
type Wanted<T> = T | undefined | 'unknown';

/** `GET /operator/audit`: every change, with who made it and when. */
export function createAuditPage(deps: Deps): Page<AskedByViewer> {
  const { audit } = deps.operator;
  return function auditPage({ url, show }) {
    const [account = '', actor = '', action = ''] = ['account', 'actor', 'action'].map(
      (name) => url.searchParams.get(name)?.trim() ?? '',
    );
    const accountId = accountFrom(deps, account);
    const actorId = actorFrom(deps, actor);
    const isUnknown = accountId === 'unknown' || actorId?.id === 'unknown';
    const found = isUnknown
      ? []
      : audit.list({
          accountId,
          actorId: actorId?.id,
          action: action === '' ? undefined : action,
          before: idFrom(url.searchParams.get('before')),
          limit: PAGE + 1,
        });
    const entries = found.slice(0, PAGE);
    const last = found.length > PAGE ? entries.at(-1) : undefined;
    const isFiltered = [account, actor, action].some((text) => text !== '');
    return show({
      title: 'Audit',
      body: (
        <>
          <Filters path={AUDIT_PATH} isFiltered={isFiltered}>
            <TextField
              name="account"
              label="Account"
              value={account}
              placeholder="Name or number"
              error={accountId === 'unknown' ? 'There is no such account.' : undefined}
            />
            <TextField
              name="actor"
              label="Who"
              value={actor}
              placeholder="E-mail or id"
              error={actorId?.id === 'unknown' ? 'Nobody has this e-mail.' : undefined}
            />
            <SelectField
              name="action"
              label="What"
              value={action}
              options={[
                { value: '', label: 'All' },
                ...audit.actions().map((name) => ({ value: name, label: wordsOf(name) })),
              ]}
            />
          </Filters>
          <AuditTable
            entries={entries}
            whoOf={createWhoOf(deps)}
            isAccountShown
            accountName={(id) => deps.accounts.findById(id)?.name}
            empty={
              <Empty title={isFiltered ? 'No change is like this' : 'Nothing was changed yet'}>
                <p>Changes are kept for 400 days.</p>
              </Empty>
            }
          />
          <Pager
            first={url.searchParams.has('before') ? withQuery(url, { before: undefined }) : undefined}
            older={last && withQuery(url, { before: String(last.id) })}
          />
        </>
      ),
    });
  };
}

/** An account by name, or by number as links have it. */
function accountFrom({ accounts }: Deps, text: string): Wanted<number> {
  if (text === '') return undefined;
  return accounts.find(text)?.id ?? idFrom(text) ?? 'unknown';
}

/** A user by e-mail, the command line, or the id of a key or a user; `id: null` is the command line. */
function actorFrom({ people }: Deps, text: string): { readonly id: string | null } | undefined {
  if (text === '') return undefined;
  if (text === COMMAND_LINE || text === 'command line') return { id: null };
  if (!text.includes('@')) return { id: text };
  const email = readEmail(text);
  return { id: (email && people.users.find(email)?.id) ?? 'unknown' };
}
