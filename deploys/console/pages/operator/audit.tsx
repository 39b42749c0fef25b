/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import type { Detail, AuditEntry } from '../../../accounts/audit.ts';
import { readEmail } from '../../../auth/users.ts';
import { countText, Time, utcText } from '../../components/format.tsx';
import { Filters, filterSelect, TextField } from '../../components/forms.tsx';
import { Link, Pager } from '../../components/links.tsx';
import { Empty, Table } from '../../components/panels.tsx';
import type { PageServices } from '../../page-services.ts';
import { operatorPage } from '../../page.ts';
import { idFrom, paths } from '../../paths.ts';

const PAGE = 50;
const COMMAND_LINE = 'command-line';

/** `undefined`: not filtered; `unknown`: there is nothing of that name. */
type Wanted<T> = T | undefined | 'unknown';

/** Every change, with who made it and when. */
export const auditPage = operatorPage({
  path: paths.audit,
  entry: ['Audit log', 'list'],
  show(services, { url: { searchParams } }) {
    const { audit } = services.operator;
    const [account = '', actor = '', action = ''] = ['account', 'actor', 'action'].map(
      (name) => searchParams.get(name)?.trim() ?? '',
    );
    const accountId = accountFrom(services, account);
    const actorId = actorFrom(services, actor);
    const errors = {
      account: accountId === 'unknown' ? 'No such account.' : undefined,
      actor: actorId?.id === 'unknown' ? 'No user with this email.' : undefined,
    };
    const found =
      accountId === 'unknown' || errors.actor !== undefined
        ? []
        : audit.list({
            accountId,
            actorId: actorId?.id,
            action: action || undefined,
            before: idFrom(searchParams.get('before')),
            limit: PAGE + 1,
          });
    const actions = audit.actions().map((name) => [name, wordsOf(name)] as const);
    const entries = found.slice(0, PAGE);
    const isFiltered = [account, actor, action].some(Boolean);
    return {
      title: 'Audit log',
      body: [
        <Filters isFiltered={isFiltered} errors={errors}>
          <TextField name="account" label="Account" placeholder="Name or ID" />
          <TextField name="actor" label="Actor" placeholder="Email or ID" />
          {filterSelect('action', 'Action', actions)}
        </Filters>,
        auditTable(
          entries,
          createWhoOf(services),
          <Empty
            title={isFiltered ? 'No matching entries' : 'No changes yet'}
            text="Entries are kept for 400 days."
          />,
          (id) => services.accounts.findById(id)?.name,
        ),
        <Pager by="before" next={found.length > PAGE ? entries.at(-1)?.id : undefined} />,
      ],
    };
  },
});

/** An account by name, or by number as links have it. */
function accountFrom({ accounts }: PageServices, text: string): Wanted<number> {
  if (text === '') return undefined;
  return accounts.find(text)?.id ?? idFrom(text) ?? 'unknown';
}

/** A user by e-mail, the command line, or the id of a key or a user; `id: null` is the command line. */
function actorFrom({ auth }: PageServices, text: string): { readonly id: string | null } | undefined {
  if (text === '') return undefined;
  if (text === COMMAND_LINE || text.toLowerCase() === 'command line') return { id: null };
  if (!text.includes('@')) return { id: text };
  const email = readEmail(text);
  return { id: (email && auth.users.find(email)?.id) ?? 'unknown' };
}

/** A table of changes. `accountName` names an account; it is absent where all changes are of one. */
export function auditTable(
  entries: readonly AuditEntry[],
  whoOf: WhoOf,
  empty: ComponentChildren,
  accountName?: (accountId: number) => string | undefined,
) {
  return (
    <Table
      caption="Changes"
      columns={[
        ['Time', ({ atMs }) => <Time atMs={atMs} />, 'head'],
        ['Actor', (entry) => whoCell(whoOf(entry))],
        ['Action', whatCell],
        accountName !== undefined && [
          'Account',
          ({ accountId }) =>
            accountId === null ? (
              'None'
            ) : (
              <Link to={paths.operatorAccount(accountId)}>{accountName(accountId) ?? accountId}</Link>
            ),
        ],
        [
          'Details',
          (entry) => {
            const text = detailText(entry);
            return text === '' ? null : <span class="detail">{text}</span>;
          },
        ],
      ]}
      rows={entries}
      empty={empty}
    />
  );
}

/** `account.credits.add` as `Account: credits add`; readable and still what it is filtered by. */
function wordsOf(action: string): string {
  const [noun = action, ...verb] = action.split('.');
  const subject = `${noun.charAt(0).toUpperCase()}${noun.slice(1)}`;
  return verb.length === 0 ? subject : `${subject}: ${verb.join(' ').replaceAll('-', ' ')}`;
}

function whoCell({ text, note, to }: Who) {
  return (
    <span>
      {to === undefined ? text : <Link to={to}>{text}</Link>}
      {note !== undefined && <span class="soft"> {note}</span>}
    </span>
  );
}

/** The action and its subject, linked where it has a page; an account has its own column. */
function whatCell({ action, subject, accountId }: AuditEntry) {
  const noun = action.split('.', 1)[0];
  const short = <code>{subject.length > SHOWN ? `${subject.slice(0, SHOWN)}…` : subject}</code>;
  const to = pathOf(noun, subject, accountId);
  return (
    <span>
      {wordsOf(action)} {noun === 'account' ? null : to === undefined ? short : <Link to={to}>{short}</Link>}
    </span>
  );
}

/** Characters of an id: enough to tell two of them apart. */
const SHOWN = 8;

function pathOf(noun: string | undefined, subject: string, accountId: number | null): string | undefined {
  if (noun === 'user') return paths.user(subject);
  if (accountId === null) return undefined;
  if (noun === 'webhook') return paths.webhook(accountId, subject);
  return noun === 'key' ? paths.keys(accountId) : undefined;
}

/** `from: trial, to: pro`; instants, whose names end so, in UTC. */
function detailText({ action, detail }: AuditEntry): string {
  const { credits = null, reason = null } = detail;
  if (action === 'account.credits.add') return `Added ${textOf(credits)} credits: “${textOf(reason)}”`;
  return Object.entries(detail)
    .map(([name, value]) => {
      const isInstant = /(?:_ms|Ms)$/.test(name) && typeof value === 'number';
      const words = name.replace(/(?:_ms|Ms)$/, '').replaceAll(/_|(?=[A-Z])/g, ' ');
      const label = words.toLowerCase();
      return `${label}: ${isInstant ? `${utcText(value)} UTC` : textOf(value)}`;
    })
    .join(', ');
}

function textOf(value: Detail[string]): string {
  if (value === null) return 'none';
  if (typeof value === 'number') return countText(value);
  return typeof value === 'object' ? value.join(' ') : String(value);
}

/** The actor of a change in words; `to` is their page if there is one. */
type Who = Readonly<{ text: string; note: string | undefined; to?: string | undefined }>;

type WhoOf = (entry: Pick<AuditEntry, 'actorKind' | 'actorId'>) => Who;

/** Names actors: a user by email, a key by its name. Each is read once. */
export function createWhoOf({ auth, keys }: PageServices): WhoOf {
  const known = new Map<string, Who>();

  function find(kind: AuditEntry['actorKind'], id: string): Who {
    if (kind === 'key') {
      const key = keys.find(id);
      const note = key === undefined ? 'key' : `key of ${key.account}`;
      return { text: key?.name ?? id, note, to: key && paths.operatorAccount(key.accountId) };
    }
    const user = auth.users.byId(id);
    const note = kind === 'operator' ? 'operator' : undefined;
    if (user === undefined) return { text: id, note: note === undefined ? 'removed' : `${note}, removed` };
    return { text: user.email, note, to: paths.user(id) };
  }

  return function whoOf({ actorKind, actorId }) {
    if (actorId === null) return { text: 'Command line', note: undefined };
    const name = `${actorKind} ${actorId}`;
    const who = known.get(name) ?? find(actorKind, actorId);
    known.set(name, who);
    return who;
  };
}
