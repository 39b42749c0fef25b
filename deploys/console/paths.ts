/** Stands for the account's id in the path of every account's page. */
export const ACCOUNT = ':accountId';
type AccountId = number | typeof ACCOUNT;

/** Every page of the console. What changes something is posted to an address below its page. */
export const paths = {
  start: '/',
  theme: '/theme',
  login: '/login',
  secondStep: '/login/second-step',
  provider: '/login/provider',
  providerReturn: '/login/return',
  logout: '/logout',
  signUp: '/sign-up',
  firstOperator: '/first-operator',
  settings: '/settings',
  password: '/settings/password',
  otherSessions: '/settings/sign-out-others',
  secondFactor: '/settings/second-factor',

  overview: (account: AccountId) => `/accounts/${account}/overview`,
  usage: (account: AccountId) => `/accounts/${account}/usage`,
  quickStart: (account: AccountId) => `/accounts/${account}/quick-start`,
  keys: (account: AccountId) => `/accounts/${account}/keys`,
  key: (account: AccountId, id: string) => `/accounts/${account}/keys/${id}`,
  programs: (account: AccountId) => `/accounts/${account}/programs`,
  program: (account: AccountId, id: string) => `/accounts/${account}/programs/${id}`,
  webhooks: (account: AccountId) => `/accounts/${account}/webhooks`,
  webhook: (account: AccountId, id: string) => `/accounts/${account}/webhooks/${id}`,
  deliveries: (account: AccountId) => `/accounts/${account}/deliveries`,
  delivery: (account: AccountId, id: string) => `/accounts/${account}/deliveries/${id}`,

  operatorAccounts: '/operator/accounts',
  operatorAccount: (id: number | ':id') => `/operator/accounts/${id}`,
  user: (id: string) => `/operator/users/${id}`,
  backends: '/operator/backends',
  traffic: '/operator/traffic',
  queue: '/operator/queue',
  audit: '/operator/audit',
  health: '/operator/health',
} as const;

/** A backslash becomes a slash in a browser, a tab or newline vanishes, and a header carries no text beyond ASCII. */
const MISLEADING = /[^!-~]|\\/;

/** `text` when it is a path on this origin, with its query, in printable ASCII; never another host, a scheme or a relative path. */
export function ownPath(text: string | null | undefined): string | undefined {
  if (!text?.startsWith('/') || text.startsWith('//') || MISLEADING.test(text)) return undefined;
  return text;
}

/** A path of the login with `next` in its query, left out for the first page. */
export function withNext(path: string, next: string): string {
  return next === paths.start ? path : `${path}?next=${encodeURIComponent(next)}`;
}

/** The id in a path or query, spelled the one way ids are: `01` and `1e3` are none. */
export function idFrom(text: string | null | undefined): number | undefined {
  return text && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

/** The link of the first operator under the console's address. */
export function firstOperatorLink(consoleUrl: URL, token: string): string {
  const link = new URL(paths.firstOperator, consoleUrl);
  link.searchParams.set('token', token);
  return link.href;
}

/** The short messages after a change. A page's own change adds its row here; the address carries the code, never a text. */
const FLASHES = {
  saved: 'Saved.',
  'account-created': 'Account created.',
  'account-suspended': 'Account suspended. Its API keys stop working within a second.',
  'account-resumed': 'Account resumed. Its API keys work again within a second.',
  'credits-added': 'Credits added.',
  'plan-changed': 'Plan changed.',
  'user-created': 'User added.',
  'user-password': 'Password reset. All sessions of the user have ended.',
  'user-signed-out': 'All sessions of the user have ended.',
  'user-second-factor-off': 'Two-factor authentication is off for this user.',
  'user-removed': 'User removed.',
  'key-created': 'API key created.',
  'key-renamed': 'API key renamed.',
  'key-rotated': 'API key rotated.',
  'key-revoked': 'API key revoked. It stops working within a second.',
  'webhook-saved': 'Webhook saved.',
  'webhook-paused': 'Webhook paused. Its events are recorded as skipped.',
  'webhook-resumed': 'Webhook resumed.',
  'webhook-deleted': 'Webhook deleted.',
  'rotation-completed': 'The new secret is now active.',
  'rotation-cancelled': 'Rotation cancelled.',
  'delivery-resent': 'Delivery queued for another attempt.',
  'deliveries-resent': 'Failed deliveries queued for another attempt.',
  'test-queued': 'Test event queued. This page shows the result.',
  'webhook-created-before':
    'This form was already submitted, so no second webhook was created. Its secret cannot be shown again.',
  'password-changed': 'Password changed. All other sessions have ended.',
  'sessions-ended': 'All other sessions have ended.',
  'second-factor-off': 'Two-factor authentication is off.',
} as const;

/** A message's name in an address (`?done=saved`). */
export type FlashCode = keyof typeof FLASHES;

/** The message of an address's code; `undefined` for an unknown one. */
export function flashOf(code: string | null): string | undefined {
  return code !== null && Object.hasOwn(FLASHES, code) ? FLASHES[code as FlashCode] : undefined; // just looked up
}

/** A 303 to a page of the console, which shows the message of `flash` once; to the first page for any other path. */
export function redirect(path: string, flash?: FlashCode, cookies: readonly string[] = []): Response {
  return seeOther(withFlash(ownPath(path) ?? paths.start, flash), cookies);
}

/** Sends the browser to another origin, such as an identity provider. */
export function redirectAway(to: URL, cookies: readonly string[]): Response {
  return seeOther(to.href, cookies);
}

function seeOther(location: string, cookies: readonly string[]): Response {
  const headers = new Headers({ location });
  for (const cookie of cookies) headers.append('set-cookie', cookie);
  return new Response(null, { status: 303, headers });
}

function withFlash(path: string, flash: FlashCode | undefined): string {
  if (flash === undefined) return path;
  const [before = '', after] = path.split('#', 2);
  const joint = before.includes('?') ? '&' : '?';
  return `${before}${joint}done=${flash}${after === undefined ? '' : `#${after}`}`;
}
