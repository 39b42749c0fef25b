import { expect, test } from 'bun:test';
import { filled, formPathsOf, goodForm, type Owner, startOwned } from './walks.ts';
import { HOUR_MS, type World } from './world.ts';

const [ACCOUNTS, USER] = ['/operator/accounts', '/operator/users/:userId'];
const [ACCOUNT, KEYS] = [`${ACCOUNTS}/:id`, '/accounts/:accountId/keys'];
const [KEY, WEBHOOKS] = [`${KEYS}/:keyId`, '/accounts/:accountId/webhooks'];
const [WEBHOOK, DELIVERIES] = [`${WEBHOOKS}/:webhookId`, '/accounts/:accountId/deliveries'];

type Now = (world: World, of: Owner) => unknown;
const account: Now = ({ accounts }, { accountId }) => accounts.findById(accountId);
const user: Now = ({ auth }, { user: { id } }) => auth.users.byId(id);
const emails: Now = ({ auth }, of) =>
  auth.users
    .ofAccount(of.accountId)
    .map(({ email }) => String(email))
    .toSorted();
const isSignedIn: Now = async (_, { ask }) => (await ask('/settings')).status === 200;
const key: Now = ({ keys, clock }, { keyId }) => {
  const { name, state, expiresAtMs } = keys.find(keyId) ?? {};
  return { name, state, ms: expiresAtMs && expiresAtMs - clock.now() };
};
const keyStates: Now = ({ keys }, of) => keys.list(of.account).map(({ state }) => state);
const webhook: Now = ({ webhooks }, of) => webhooks.find(of.accountId, of.webhookId);
const urls: Now = ({ webhooks }, { accountId }) =>
  webhooks
    .list(accountId)
    .map(({ url }) => url)
    .toSorted();
const takeoverMs: Now = ({ webhooks, clock }, of) =>
  (webhooks.find(of.accountId, of.webhookId)?.nextSecretAtMs ?? 0) - clock.now();
const states: Now = ({ store }) => store.query('SELECT state FROM deliveries ORDER BY rowid').values().flat();

/** A form that does what it is for, beside what `goodForm` has: its message, what is noted, and what is so then. */
const FORMS: readonly (readonly [
  path: string,
  fields: Record<string, string>,
  message: string,
  noted: string,
  now?: Now,
  is?: unknown,
])[] = [
  [`${ACCOUNTS}/new`, { name: ' acme ' }, 'account-created', 'account.create'],
  [`${ACCOUNT}/plan`, { plan: 'scale' }, 'plan-changed', 'account.plan', account, { plan: 'scale' }],
  [`${ACCOUNT}/plan`, { plan: 'none' }, 'plan-changed', 'account.plan', account, { plan: undefined }],
  [
    `${ACCOUNT}/credits`,
    { credits: '1,000' },
    'credits-added',
    'account.credits.add',
    account,
    { creditsLeft: 251_000 },
  ],
  [`${ACCOUNT}/rename`, { name: ' acme 2 ' }, 'saved', 'account.rename', account, { name: 'acme 2' }],
  [
    `${ACCOUNT}/suspend`,
    { confirm: ' account ann ' },
    'account-suspended',
    'account.suspend',
    account,
    { isSuspended: true },
  ],
  [`${ACCOUNT}/resume`, {}, 'account-resumed', 'account.resume', account, { isSuspended: false }],
  [`${ACCOUNT}/users`, {}, 'user-created', 'user.create', emails, ['ann@example.com', 'another@example.com']],
  [`${USER}/password`, {}, 'user-password', 'user.set-password', isSignedIn, false],
  [`${USER}/sign-out`, {}, 'user-signed-out', 'user.sign-out', isSignedIn, false],
  [
    `${USER}/second-factor`,
    {},
    'user-second-factor-off',
    'user.second-factor-off',
    user,
    { hasSecondFactor: false },
  ],
  [`${USER}/remove`, {}, 'user-removed', 'user.remove', user, undefined],
  [`${KEYS}/new`, {}, 'key-created', 'key.create', keyStates, ['active', 'active']],
  [`${KEY}/rename`, { name: ' archiver ' }, 'key-renamed', 'key.rename', key, { name: 'archiver' }],
  [`${KEY}/rotate`, { grace: '0' }, 'key-rotated', 'key.rotate', key, { state: 'expired' }],
  [`${KEY}/rotate`, { grace: '1h' }, 'key-rotated', 'key.rotate', key, { state: 'expiring', ms: HOUR_MS }],
  [`${KEY}/rotate`, { grace: '7d' }, 'key-rotated', 'key.rotate', key, { ms: 168 * HOUR_MS }],
  [`${KEY}/revoke`, {}, 'key-revoked', 'key.revoke', key, { state: 'revoked' }],
  [
    `${WEBHOOKS}/new`,
    { url: ' https://a.example.com/?t=t ' },
    '',
    'webhook.create',
    urls,
    ['https://a.example.com/?t=t', 'https://ann.hooks.example.com/in'],
  ],
  [
    `${WEBHOOK}/edit`,
    { description: 'New' },
    'webhook-saved',
    'webhook.edit',
    webhook,
    { url: 'https://another.hooks.example.com/in', programs: null, description: 'New' },
  ],
  [
    `${WEBHOOK}/pause`,
    {},
    'webhook-paused',
    'webhook.pause',
    webhook,
    { pausedAtMs: expect.any(Number) as never },
  ],
  [`${WEBHOOK}/resume`, {}, 'webhook-resumed', 'webhook.resume', webhook, { pausedAtMs: null }],
  [`${WEBHOOK}/rotation`, { 'takes-over': '1h' }, '', 'webhook.rotate', takeoverMs, HOUR_MS],
  [
    `${WEBHOOK}/rotation/switch`,
    {},
    'rotation-completed',
    'webhook.switch-secret',
    webhook,
    { nextSecretAtMs: null },
  ],
  [
    `${WEBHOOK}/rotation/cancel`,
    {},
    'rotation-cancelled',
    'webhook.cancel-rotation',
    webhook,
    { nextSecretAtMs: null },
  ],
  [`${WEBHOOK}/test`, {}, 'test-queued', 'webhook.test', states, ['failed', 'queued']],
  [`${WEBHOOK}/resend-failed`, {}, 'deliveries-resent', 'webhook.resend-failed'],
  [
    `${WEBHOOK}/delete`,
    { confirm: ' ann.hooks.example.com ' },
    'webhook-deleted',
    'webhook.delete',
    webhook,
    undefined,
  ],
  [`${DELIVERIES}/:deliveryId/resend`, {}, 'delivery-resent', 'webhook.resend'],
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
    const found = await now?.(world, ann);
    if (typeof is === 'object') expect([path, found]).toMatchObject([path, is]);
    else expect([path, found]).toEqual([path, is]);
  }
}, 20_000);

/** Logins, which auth/ tests, and a look at a host, which changes nothing. */
const OTHERS = /\/webhooks\/check$|^\/(?!operator|accounts)/;

test('every form of an account or of operators is a row above', async () => {
  const { world, ann } = await startOwned();
  using _ = world;
  const paths = (await formPathsOf(world, ann)).filter((path) => !OTHERS.test(path));
  expect([...new Set(FORMS.map(([path]) => path))].toSorted()).toEqual(paths.toSorted());
});
