/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { KeyRow } from '../../../accounts/key-row.ts';
import { TOO_MANY_KEYS } from '../../../accounts/keys.ts';
import { byOf } from '../../by.ts';
import { Sparkline } from '../../components/charts.tsx';
import { SecretBox } from '../../components/code.tsx';
import { Ago, countText, Time } from '../../components/format.tsx';
import {
  ConfirmForm,
  FORM_ID_FIELD,
  type FormErrors,
  formIdFrom,
  Hidden,
  isConfirmed,
  newFormId,
  PostForm,
  RadioFields,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { Notice } from '../../components/icons.tsx';
import { Link } from '../../components/links.tsx';
import { Columns, Facts, Panel, Stats } from '../../components/panels.tsx';
import type { Action, AskedOfAccount, Page } from '../../context.ts';
import type { PageDeps } from '../../page-services.ts';
import { BAD_KEY_NAME, KeyBadge, KeyEnds, STALE_FORM } from './keys.tsx';
import { keyPath, keysPath } from '../../paths.ts';
import { seeOther } from '../../redirect.ts';
import { HOUR_MS } from '../../../usage/calendar.ts';
import { sumOf } from '../../../usage/report.ts';

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

const HOUR = 3_600_000;

/** How long an old key may go on working, in milliseconds. */
export const GRACES = { '0': 0, '1h': HOUR, '24h': 24 * HOUR, '7d': 168 * HOUR } as const;

const GRACE_OPTIONS = [
  { value: '0', label: 'At once', hint: 'After a leak.' },
  { value: '1h', label: 'In 1 hour' },
  { value: '24h', label: 'In 24 hours' },
  { value: '7d', label: 'In 7 days' },
];

type KeyFormProps = Readonly<{ path: string; row: KeyRow; errors: FormErrors | undefined }>;

/** Another name. */
export function RenameForm({ path, row, errors }: KeyFormProps) {
  return (
    <PostForm action={`${path}/rename`} errors={errors} isInline label="Rename">
      <TextField
        name="name"
        label="Name"
        value={row.name}
        isRequired
        maxLength={64}
        error={errors?.['name']}
      />
      <Submit>Rename</Submit>
    </PostForm>
  );
}

/** A new key in place of this one. */
export function RotatePanel({
  path,
  once,
  errors,
}: Readonly<{ path: string; once: string; errors: FormErrors | undefined }>) {
  return (
    <Panel title="Rotate" id="rotate">
      <p>
        Makes a new key of the same name and shows it once. This one goes on working for the time you choose.
      </p>
      <PostForm action={`${path}/rotate`} errors={errors} label="Rotate">
        <Hidden name={FORM_ID_FIELD} value={once} />
        <RadioFields name="grace" legend="The old key ends" value="24h" options={GRACE_OPTIONS} />
        <Submit kind="primary">Rotate the key</Submit>
      </PostForm>
    </Panel>
  );
}

/** The end of it. */
export function RevokePanel({ path, row, errors }: KeyFormProps) {
  return (
    <Panel title="Revoke" id="revoke" isDanger>
      <ConfirmForm action={`${path}/revoke`} phrase={row.name} button="Revoke the key" errors={errors}>
        <p>
          Whoever uses it is refused within a second. A revoked key never works again; its usage stays on
          record.
        </p>
      </ConfirmForm>
    </Panel>
  );
}

/** `POST /keys/:keyId/rename`. */
export function createRenameAction(deps: KeyPageDeps): Action<AskedOfAccount> {
  return function renameKey(asked) {
    const { account, form, params } = asked;
    const id = params['keyId'] ?? '';
    const result = deps.keys.rename(id, (form.get('name') ?? '').trim(), byOf(asked).actor, account.id);
    switch (result.kind) {
      case 'renamed':
        return seeOther(keyPath(account, id), 'key-renamed');
      case 'bad-name':
        return showKey(deps, asked, { rename: { name: BAD_KEY_NAME } });
      case 'reserved-name':
        return showKey(deps, asked, { rename: { name: 'The service knows this key by its name.' } });
      case 'unknown-key':
        return asked.notFound();
      default:
        return unreachable(result);
    }
  };
}

/** `POST /keys/:keyId/rotate`: leads to the page of the new key, which shows it. */
export function createRotateAction(deps: KeyPageDeps): Action<AskedOfAccount> {
  return function rotateKey(asked) {
    const { account, form, params, viewer } = asked;
    const id = params['keyId'] ?? '';
    const [once, grace] = [formIdFrom(form), form.get('grace') ?? ''];
    if (once === undefined) return showKey(deps, asked, { rotate: { form: STALE_FORM } });
    if (!isGrace(grace)) return showKey(deps, asked, { rotate: { form: 'Choose when the old key ends.' } });
    const result = deps.keys.rotate(id, GRACES[grace], byOf(asked).actor, account.id, once);
    switch (result.kind) {
      case 'rotated':
        deps.reveals.put(viewer.userId, result.made.key, once);
        return seeOther(`${keyPath(account, result.made.id)}?shown=${once}`, 'key-rotated');
      case 'made-before':
        return seeOther(`${keyPath(account, result.id)}?shown=${once}`);
      case 'too-many':
        return showKey(deps, asked, { rotate: { form: TOO_MANY_KEYS } });
      case 'ended':
        return showKey(deps, asked, { rotate: { form: `The key is ${result.state}.` } });
      case 'unknown-key':
        return asked.notFound();
      default:
        return unreachable(result);
    }
  };
}

/** `POST /keys/:keyId/revoke`, with the key's name typed. */
export function createRevokeAction(deps: KeyPageDeps): Action<AskedOfAccount> {
  return function revokeKey(asked) {
    const { account, form, params } = asked;
    const id = params['keyId'] ?? '';
    const row = deps.keys.find(id, account.id);
    if (row === undefined) return asked.notFound();
    if (!isConfirmed(form, row.name))
      return showKey(deps, asked, { revoke: { confirm: `Type the name of the key: ${row.name}` } });
    deps.keys.revoke(id, byOf(asked).actor, account.id);
    return seeOther(keyPath(account, id), 'key-revoked');
  };
}

function isGrace(text: string): text is keyof typeof GRACES {
  return Object.hasOwn(GRACES, text);
}
