import { expect, test } from 'bun:test';
import { filled, formPathsOf, goodForm, type Owner, startOwned } from './walks.ts';
import { HOUR_MS, type World } from './world.ts';

const [ACCOUNTS, USER] = ['/operator/accounts', '/operator/users/:userId'];
const [ACCOUNT, KEYS] = [`${ACCOUNTS}/:id`, '/accounts/:accountId/keys'];
const [KEY, WEBHOOKS] = [`${KEYS}/:keyId`, '/accounts/:accountId/webhooks'];
const [WEBHOOK, DELIVERIES] = [`${WEBHOOKS}/:webhookId`, '/accounts/:accountId/deliveries'];

type Now = (world: World, of: Owner) => unknown;
const accountOf = ({ accounts }: World, { accountId }: Owner) => accounts.findById(accountId);
const webhookOf = ({ webhooks }: World, of: Owner) => webhooks.find(of.accountId, of.webhookId);
const plans: Now = ({ accounts }) => accounts.list().map((each) => `${each.name} ${each.plan}`);
const name: Now = (...of) => accountOf(...of)?.name;
const plan: Now = (...of) => accountOf(...of)?.plan;
const left: Now = (...of) => accountOf(...of)?.creditsLeft;
const isSuspended: Now = (...of) => accountOf(...of)?.isSuspended;
const emails: Now = ({ auth }, { accountId }) =>
  auth.users
    .ofAccount(accountId)
    .map(({ email }) => String(email))
    .toSorted();
const hasFactor: Now = ({ auth }, { user }) => auth.users.byId(user.id)?.hasSecondFactor;
const isSignedIn: Now = async (_, { ask }) => (await ask('/settings')).status === 200;
/** Sorted: of two of the same moment either may be first. */
const keys: Now = (world, of) =>
  world.keys
    .list(of.account)
    .map((key) => `${key.name} ${key.state}`)
    .toSorted();
const endsInMs: Now = (world, { keyId }) => (world.keys.find(keyId)?.expiresAtMs ?? 0) - world.clock.now();
const urls: Now = ({ webhooks }, { accountId }) =>
  webhooks
    .list(accountId)
    .map(({ url }) => url)
    .toSorted();
const settings: Now = (...of) => [
  webhookOf(...of)?.url,
  webhookOf(...of)?.programs,
  webhookOf(...of)?.description,
];
const isPaused: Now = (...of) => webhookOf(...of)?.pausedAtMs !== null;
const takeoverMs: Now = (world, of) => (webhookOf(world, of)?.nextSecretAtMs ?? NaN) - world.clock.now();
const states: Now = ({ store }) => store.query('SELECT state FROM deliveries ORDER BY rowid').values().flat();
const resent: Now = ({ store }) => store.query('SELECT count(resend_at_ms) FROM deliveries').values().flat();

const [A, B] = ['https://a.example.com/?t=t', 'https://ann.hooks.example.com/in'];

/** A form that does what it is for, beside what `goodForm` has: its message, what is noted, and what is so then. */
const FORMS: readonly (readonly [
  path: string,
  fields: Record<string, string>,
  message: string,
  noted: string,
  now: Now,
  is: unknown,
])[] = [
  [
    `${ACCOUNTS}/new`,
    { name: ' acme ' },
    'account-created',
    'account.create',
    plans,
    ['account ann trial', 'acme pro'],
  ],
  [`${ACCOUNT}/plan`, { plan: 'scale' }, 'plan-changed', 'account.plan', plan, 'scale'],
  [`${ACCOUNT}/plan`, { plan: 'none' }, 'plan-changed', 'account.plan', plan, undefined],
  [`${ACCOUNT}/credits`, { credits: '1,000' }, 'credits-added', 'account.credits.add', left, 251_000],
  [`${ACCOUNT}/rename`, { name: ' acme 2 ' }, 'saved', 'account.rename', name, 'acme 2'],
  [
    `${ACCOUNT}/suspend`,
    { confirm: ' account ann ' },
    'account-suspended',
    'account.suspend',
    isSuspended,
    true,
  ],
  [`${ACCOUNT}/resume`, {}, 'account-resumed', 'account.resume', isSuspended, false],
  [`${ACCOUNT}/users`, {}, 'user-created', 'user.create', emails, ['ann@example.com', 'another@example.com']],
  [`${USER}/password`, {}, 'user-password', 'user.set-password', isSignedIn, false],
  [`${USER}/sign-out`, {}, 'user-signed-out', 'user.sign-out', isSignedIn, false],
  [`${USER}/second-factor`, {}, 'user-second-factor-off', 'user.second-factor-off', hasFactor, false],
  [`${USER}/remove`, {}, 'user-removed', 'user.remove', emails, []],
  [`${KEYS}/new`, { name: ' a ' }, 'key-created', 'key.create', keys, ['a active', 'key of ann active']],
  [`${KEY}/rename`, { name: ' archiver ' }, 'key-renamed', 'key.rename', keys, ['archiver active']],
  [`${KEY}/rotate`, { grace: '0' }, 'key-rotated', 'key.rotate', endsInMs, 0],
  [`${KEY}/rotate`, { grace: '1h' }, 'key-rotated', 'key.rotate', endsInMs, HOUR_MS],
  [`${KEY}/rotate`, { grace: '7d' }, 'key-rotated', 'key.rotate', endsInMs, 168 * HOUR_MS],
  [`${KEY}/revoke`, {}, 'key-revoked', 'key.revoke', keys, ['key of ann revoked']],
  [`${WEBHOOKS}/new`, { url: ` ${A} ` }, '', 'webhook.create', urls, [A, B]],
  [
    `${WEBHOOK}/edit`,
    { url: A, description: 'New' },
    'webhook-saved',
    'webhook.edit',
    settings,
    [A, null, 'New'],
  ],
  [`${WEBHOOK}/pause`, {}, 'webhook-paused', 'webhook.pause', isPaused, true],
  [`${WEBHOOK}/resume`, {}, 'webhook-resumed', 'webhook.resume', isPaused, false],
  [`${WEBHOOK}/rotation`, { 'takes-over': '1h' }, '', 'webhook.rotate', takeoverMs, HOUR_MS],
  [`${WEBHOOK}/rotation/switch`, {}, 'rotation-completed', 'webhook.switch-secret', takeoverMs, NaN],
  [`${WEBHOOK}/rotation/cancel`, {}, 'rotation-cancelled', 'webhook.cancel-rotation', takeoverMs, NaN],
  [`${WEBHOOK}/test`, {}, 'test-queued', 'webhook.test', states, ['failed', 'queued']],
  [`${WEBHOOK}/resend-failed`, {}, 'deliveries-resent', 'webhook.resend-failed', resent, [1]],
  [
    `${WEBHOOK}/delete`,
    { confirm: ' ann.hooks.example.com ' },
    'webhook-deleted',
    'webhook.delete',
    urls,
    [],
  ],
  [`${DELIVERIES}/:deliveryId/resend`, {}, 'delivery-resent', 'webhook.resend', resent, [1]],
];

/** What a form needs to be sent before it. */
const FIRST: Readonly<Record<string, string>> = {
  [`${ACCOUNT}/resume`]: `${ACCOUNT}/suspend`,
  [`${WEBHOOK}/resume`]: `${WEBHOOK}/pause`,
  [`${WEBHOOK}/rotation/switch`]: `${WEBHOOK}/rotation`,
  [`${WEBHOOK}/rotation/cancel`]: `${WEBHOOK}/rotation`,
};

/** Where a form leads if not to the page of what it changes; `*` is what is new. */
const LEADS_TO: Readonly<Record<string, string>> = {
  [`${ACCOUNTS}/new`]: `${ACCOUNTS}/*?`,
  [`${ACCOUNT}/users`]: '/operator/users/*?shown=*&',
  [`${USER}/password`]: `${USER}?shown=*&`,
  [`${USER}/remove`]: `${ACCOUNT}?`,
  [`${KEYS}/new`]: `${KEYS}/*?shown=*&`,
  [`${KEY}/rotate`]: `${KEYS}/*?shown=*&`,
  [`${WEBHOOK}/test`]: `${DELIVERIES}/*?`,
  [`${WEBHOOK}/resend-failed`]: `${DELIVERIES}?webhook=:webhookId&`,
  [`${WEBHOOK}/delete`]: `${WEBHOOKS}?`,
};

test('every form does what it is for when its owner sends it, says so, and is noted with who sent it', async () => {
  for (const [path, fields, message, action, now, is] of FORMS) {
    const { world, ann } = await startOwned();
    using _ = world;
    const asker = path.startsWith('/operator/') ? world.operator : ann;
    const send = (at: string, more = {}) => {
      const address = filled(at, ann);
      return asker.post(address, { ...goodForm(address, ann), ...more });
    };
    if (FIRST[path] !== undefined) await send(FIRST[path]);
    const { status, to } = await send(path, fields);
    const page = LEADS_TO[path] ?? `${path.replace(/(:\w+)\/[^:]*$/, '$1')}?`;
    const target = `${filled(page, ann).replaceAll('?', '\\?').replaceAll('*', '[\\w-]+')}done=${message}`;
    const wanted = message === '' ? [200, ''] : [303, expect.stringMatching(new RegExp(`^${target}$`))];
    expect([path, status, to]).toEqual([path, ...wanted]);
    const by = asker === world.operator ? ['operator', world.operator.user.id] : ['user', ann.user.id];
    const [noted] = world.entries({ limit: 1 });
    expect([noted?.action, noted?.actorKind, noted?.actorId ?? '']).toEqual([action, ...by]);
    expect([path, await now(world, ann)]).toEqual([path, is]);
  }
}, 60_000);

/** Logins, which auth/ tests, and a look at a host, which changes nothing. */
const OTHERS = /\/webhooks\/check$|^\/(?!operator|accounts)/;

test('every form of an account or of operators is a row above', async () => {
  const { world, ann } = await startOwned();
  using _ = world;
  const paths = (await formPathsOf(world, ann)).filter((path) => !OTHERS.test(path));
  expect([...new Set(FORMS.map(([path]) => path))].toSorted()).toEqual(paths.toSorted());
});
