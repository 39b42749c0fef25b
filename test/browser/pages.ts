/** What is in the world when its pages are looked at. */
export type Named = Readonly<{
  account: string;
  user: string;
  key: string;
  program: string;
  webhook: string;
  delivery: string;
}>;

/** A page as it is visited, and by whom; the customer sees what the operator does not need to. */
type Visit = Readonly<{ as: 'nobody' | 'operator' | 'customer'; to: (named: Named) => string }>;

const nobody = (to: string): Visit => ({ as: 'nobody', to: () => to });
const operator = (to: (named: Named) => string): Visit => ({ as: 'operator', to });
const customer = (to: (named: Named) => string): Visit => ({
  as: 'customer',
  to: (named) => `/accounts/${named.account}${to(named)}`,
});

const ACCOUNT = '/accounts/:accountId';
const WEBHOOK = `${ACCOUNT}/webhooks/:webhookId`;

/** Every page of the console by its route, in the order in which they are visited; a test holds that none is missing. */
export const PAGES: Readonly<Record<string, Visit>> = {
  '/login': nobody('/login'),
  '/sign-up': nobody('/sign-up'),
  '/login/second-step': nobody('/login/second-step'),
  '/first-operator': nobody('/first-operator?token=used'),
  [`${ACCOUNT}/overview`]: customer(() => '/overview'),
  [`${ACCOUNT}/usage`]: customer(() => '/usage'),
  [`${ACCOUNT}/keys`]: customer(() => '/keys'),
  [`${ACCOUNT}/keys/new`]: customer(() => '/keys/new'),
  [`${ACCOUNT}/keys/:keyId`]: customer(({ key }) => `/keys/${key}`),
  [`${ACCOUNT}/quick-start`]: customer(() => '/quick-start'),
  [`${ACCOUNT}/programs`]: customer(() => '/programs'),
  [`${ACCOUNT}/programs/:programId`]: customer(({ program }) => `/programs/${program}`),
  [`${ACCOUNT}/webhooks`]: customer(() => '/webhooks'),
  [`${ACCOUNT}/webhooks/new`]: customer(() => '/webhooks/new'),
  [WEBHOOK]: customer(({ webhook }) => `/webhooks/${webhook}`),
  [`${WEBHOOK}/edit`]: customer(({ webhook }) => `/webhooks/${webhook}/edit`),
  [`${WEBHOOK}/resend-failed`]: customer(({ webhook }) => `/webhooks/${webhook}/resend-failed`),
  [`${ACCOUNT}/deliveries`]: customer(() => '/deliveries'),
  [`${ACCOUNT}/deliveries/:deliveryId`]: customer(({ delivery }) => `/deliveries/${delivery}`),
  '/operator/accounts': operator(() => '/operator/accounts'),
  '/operator/accounts/new': operator(() => '/operator/accounts/new'),
  '/operator/accounts/:id': operator(({ account }) => `/operator/accounts/${account}`),
  '/operator/accounts/:id/suspend': operator(({ account }) => `/operator/accounts/${account}/suspend`),
  '/operator/users/:userId': operator(({ user }) => `/operator/users/${user}`),
  '/operator/users/:userId/second-factor': operator(({ user }) => `/operator/users/${user}/second-factor`),
  '/operator/backends': operator(() => '/operator/backends'),
  '/operator/traffic': operator(() => '/operator/traffic'),
  '/operator/queue': operator(() => '/operator/queue'),
  '/operator/audit': operator(() => '/operator/audit'),
  '/operator/health': operator(() => '/operator/health'),
  '/settings': operator(() => '/settings'),
  '/settings/second-factor': operator(() => '/settings/second-factor'),
  '/logout': operator(() => '/logout'),
};

/** Routes that show nothing of their own: where they lead, or that they are a file. */
export const NOT_PAGES: Readonly<Record<string, string>> = {
  '/': 'leads to the first page of the viewer',
  [`${ACCOUNT}/usage.csv`]: 'a file to keep',
  '/settings/password': 'leads to the settings',
  '/settings/sign-out-others': 'leads to the settings',
  '/settings/second-factor/confirm': 'leads to the second factor',
  '/settings/second-factor/off': 'leads to the second factor',
  '/login/provider': 'leads to the identity provider',
  '/login/return': 'leads on from the identity provider',
};
