/** @jsxImportSource preact */
import type { KeyRow } from '../../../accounts/key-row.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';
import { sumOf } from '../../../usage/report.ts';
import type { AskedOfAccount, Page } from '../../context.ts';
import { type FormErrors, newFormId } from '../../components/forms.tsx';
import type { PageDeps } from '../../page-services.ts';
import { Columns, Facts, Panel, Stats } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import { Notice } from '../../components/icons.tsx';
import { Ago, countText, Time } from '../../components/format.tsx';
import { SecretBox } from '../../components/code.tsx';
import { Sparkline } from '../../components/charts.tsx';
import { KeyBadge, KeyEnds } from './key-texts.tsx';
import { RenameForm, RevokePanel, RotatePanel } from './one-forms.tsx';
import { keyPath, keysPath } from '../../paths.ts';

/** What the page of a key stands on. */
export type KeyPageDeps = Pick<PageDeps, 'keys' | 'usage' | 'reveals' | 'random'>;

/** What was wrong with one of the page's forms. */
export type KeyFormErrors = Readonly<Partial<Record<'rename' | 'rotate' | 'revoke', FormErrors>>>;

/** `/keys/:keyId`: what is known of a key, and what can be done to it; the key itself when it was just made. */
export function createKeyPage(deps: KeyPageDeps): Page<AskedOfAccount> {
  return (asked) => showKey(deps, asked);
}

/** The page, also with what was wrong with a form of it. */
export function showKey(
  { keys, usage, reveals, random }: KeyPageDeps,
  asked: AskedOfAccount,
  errors?: KeyFormErrors,
): Response {
  const { account, params, url, nowMs, show } = asked;
  const row = keys.find(params['keyId'] ?? '', account.id);
  if (row === undefined) return asked.notFound();
  const secret = reveals.take(asked);
  const wasShown = secret === undefined && url.searchParams.has('shown');
  const isWorking = row.state === 'active' || row.state === 'expiring';
  const path = keyPath(account, row.id);
  const predecessor = keys
    .page({ accountId: account.id, search: row.name, limit: 50 })
    .items.find(({ id, name, state }) => id !== row.id && name === row.name && state === 'expiring');
  return show({
    title: row.name,
    status: errors === undefined ? 200 : 422,
    crumbs: [{ label: 'Keys', to: keysPath(account) }],
    aside: <KeyBadge state={row.state} />,
    body: (
      <>
        {secret !== undefined && (
          <>
            <SecretBox name="API key" secret={secret} />
            <p>
              It works within a second. The{' '}
              <Link to={`/accounts/${account.id}/quick-start`}>quick start</Link> says how it is used.
            </p>
          </>
        )}
        {wasShown && (
          <Notice tone="quiet">
            The key was shown already, or waited for too long. Without a copy of it, revoke it and make
            another.
          </Notice>
        )}
        {predecessor?.expiresAtMs !== undefined && row.state === 'active' && (
          <Notice tone="warning">
            The old key {predecessor.prefix}…{predecessor.last4} works until{' '}
            <Time atMs={predecessor.expiresAtMs} />.{' '}
            <Link to={`${keyPath(account, predecessor.id)}#revoke`}>Revoke the old one now</Link>
          </Notice>
        )}
        {row.state !== 'active' && errors?.rotate?.['form'] !== undefined && (
          <Notice tone="bad">{errors.rotate['form']}</Notice>
        )}
        <KeyUse usage={usage} accountId={account.id} keyId={row.id} nowMs={nowMs} />
        <Columns>
          <Panel
            title="Key"
            aside={<Link to={`/accounts/${account.id}/usage?key=${row.id}`}>Usage by method</Link>}
          >
            <Known row={row} nowMs={nowMs} />
            {isWorking && <RenameForm path={path} row={row} errors={errors?.rename} />}
          </Panel>
          {row.state === 'active' && (
            <RotatePanel path={path} once={newFormId(random)} errors={errors?.rotate} />
          )}
        </Columns>
        {isWorking && <RevokePanel path={path} row={row} errors={errors?.revoke} />}
      </>
    ),
  });
}

function Known({ row, nowMs }: Readonly<{ row: KeyRow; nowMs: number }>) {
  const { id, createdAtMs, lastUsedAtMs, expiresAtMs, state } = row;
  return (
    <Facts
      facts={[
        { label: 'Key', value: <KeyEnds row={row} /> },
        { label: 'Id', value: <code>{id}</code> },
        { label: 'Created', value: <Time atMs={createdAtMs} /> },
        {
          label: 'Last used',
          value: lastUsedAtMs === undefined ? 'never' : <Ago atMs={lastUsedAtMs} nowMs={nowMs} />,
        },
        ...(expiresAtMs === undefined
          ? []
          : [{ label: state === 'expiring' ? 'Ends' : 'Ended', value: <Time atMs={expiresAtMs} /> }]),
      ]}
    />
  );
}

type UseProps = Readonly<{ usage: PageDeps['usage']; accountId: number; keyId: string; nowMs: number }>;

/** What went through the key: requests by hour, and a week's sums. */
function KeyUse({ usage, accountId, keyId, nowMs }: UseProps) {
  const toHour = Math.floor(nowMs / HOUR_MS) + 1;
  const points = usage.series({ accountId, keyId }, { fromHour: toHour - 168, toHour }, 'hour');
  const week = sumOf(points.map(({ counts }) => counts));
  const day = points.slice(-24).map(({ counts }) => counts.calls);
  const dayCalls = day.reduce((sum, calls) => sum + calls, 0);
  return (
    <Stats
      stats={[
        {
          label: 'Requests, 24 hours',
          value: countText(dayCalls),
          note: <Sparkline values={day} label={`${countText(dayCalls)} requests in 24 hours, by hour`} />,
        },
        { label: 'Requests, 7 days', value: countText(week.calls) },
        { label: 'Credits, 7 days', value: countText(week.credits - week.refunded) },
        { label: 'Errors, 7 days', value: countText(week.errors) },
        { label: 'Refused, 7 days', value: countText(week.refused) },
      ]}
    />
  );
}
