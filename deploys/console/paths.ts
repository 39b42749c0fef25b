/** An account's id, or `:accountId` for the route of every account's page. */
type AccountId = number | ':accountId';

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

/**
 * A backslash becomes a slash in a browser, a tab or newline vanishes, and beyond ASCII a header carries no text: whoever
 * means such a character writes it as `%…`.
 */
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
