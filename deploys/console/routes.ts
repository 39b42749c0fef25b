import type { Action, Asked, Page } from './context.ts';
import { startPathOf, themeCookie } from './layout.tsx';
import type { PageDeps, WebhookPageDeps } from './page-services.ts';
import { deliveryListPage } from './pages/account/deliveries.tsx';
import { deliveryPage, resendAction } from './pages/account/delivery.tsx';
import {
  createKeyPage,
  createRenameAction,
  createRevokeAction,
  createRotateAction,
} from './pages/account/key.tsx';
import { createKeyListPage, createNewKeyPage } from './pages/account/keys.tsx';
import { createOverviewPage } from './pages/account/overview.tsx';
import { programListPage, programPage } from './pages/account/programs.tsx';
import { createQuickStartPage } from './pages/account/quick-start.tsx';
import { createUsageCsv } from './pages/account/usage-csv.ts';
import { createUsagePage } from './pages/account/usage.tsx';
import {
  deleteAction,
  resendFailedPage,
  rotateAction,
  settleAction,
  testAction,
  toggleAction,
} from './pages/account/webhook-actions.tsx';
import { createWebhookPage, editWebhookPage, urlCheckAction } from './pages/account/webhook-form.tsx';
import { webhookPage } from './pages/account/webhook.tsx';
import { webhookListPage } from './pages/account/webhooks.tsx';
import type { PersonPage } from './pages/login/login-form.tsx';
import { loginPages, providerPages } from './pages/login/login.tsx';
import { secondFactorPages } from './pages/login/second-factor.tsx';
import { settingsPages } from './pages/login/settings.tsx';
import { signUpPages } from './pages/login/sign-up.tsx';
import {
  createAddCredits,
  createAddUser,
  createChangePlan,
  createRename,
  createResume,
  createSuspend,
  createSuspendPage,
} from './pages/operator/account-actions.tsx';
import { createAccountPage } from './pages/operator/account.tsx';
import { createAccountsPage, createAddAccount, createNewAccountPage } from './pages/operator/accounts.tsx';
import { createAuditPage } from './pages/operator/audit.tsx';
import { createBackendsPage } from './pages/operator/backends.tsx';
import { createHealthPage } from './pages/operator/health.tsx';
import { createQueuePage } from './pages/operator/queue.tsx';
import { createTrafficPage } from './pages/operator/traffic.tsx';
import {
  createNewPassword,
  createRemoveUser,
  createResetSecondFactor,
  createSecondFactorPage,
  createSignOut,
  createUserPage,
} from './pages/operator/user.tsx';
import { seeOther } from './redirect.ts';
import { forAccount, forAnyone, forOperator, type Route } from './router.ts';
import type { AddressOf } from '../users/client-address.ts';
import type { People } from '../users/people.ts';

/** Every page of the console, one row each. A page's own file says what it shows. */
export function routesOf(deps: PageDeps): readonly Route[] {
  const { webhookPages: webhooks, random } = deps;
  return [
    forAnyone('/', { get: createStartPage() }),
    forAnyone('/theme', { post: createThemeAction(deps.origin) }),
    ...accountPages(deps),
    ...operatorPages(deps),
    ...(webhooks === undefined
      ? []
      : [...programPages(webhooks), ...webhookPages(webhooks, random), ...deliveryPages(webhooks)]),
    // These look at the session by themselves: who has half a session is let into the second step alone.
    ...personPages(deps).map(({ path, ...answers }) => forAnyone(path, answers)),
  ];
}

/** `/`: sends everybody where they begin. */
export function createStartPage(): Page<Asked> {
  return function startPage({ viewer }) {
    return seeOther(viewer === undefined ? '/login' : startPathOf(viewer));
  };
}

/** `POST /theme`: keeps the chosen colours in a cookie and comes back to the page. */
export function createThemeAction(origin: string): Action<Asked> {
  return function chooseTheme({ form }) {
    const response = seeOther(form.get('next') ?? '/');
    response.headers.set('set-cookie', themeCookie(form.get('theme'), origin.startsWith('https:')));
    return response;
  };
}

/** What the pages of `accountPages` stand on. */
export type AccountPageDeps = Pick<
  PageDeps,
  | 'origin'
  | 'accounts'
  | 'keys'
  | 'plans'
  | 'usage'
  | 'turns'
  | 'readUsageView'
  | 'readUsed'
  | 'webhooksOf'
  | 'minutes'
  | 'rpcUrl'
  | 'reveals'
  | 'clock'
  | 'random'
>;

/** Every page on an account's calls and keys. */
export function accountPages(deps: AccountPageDeps): readonly Route[] {
  return [
    forAccount('/overview', { get: createOverviewPage(deps) }),
    forAccount('/usage', { get: createUsagePage(deps) }),
    forAccount('/usage.csv', { get: createUsageCsv(deps) }),
    ...keyPages(deps),
    forAccount('/quick-start', { get: createQuickStartPage(deps) }),
  ];
}

/** Every page on the keys of an account. */
export function keyPages(deps: Pick<PageDeps, 'keys' | 'usage' | 'reveals' | 'random'>): readonly Route[] {
  const one = '/keys/:keyId';
  return [
    forAccount('/keys', { get: createKeyListPage(deps) }),
    forAccount('/keys/new', createNewKeyPage(deps)),
    forAccount(one, { get: createKeyPage(deps) }),
    forAccount(`${one}/rename`, { post: createRenameAction(deps) }),
    forAccount(`${one}/rotate`, { post: createRotateAction(deps) }),
    forAccount(`${one}/revoke`, { post: createRevokeAction(deps) }),
  ];
}

/** Every page on the programs that are watched. */
export function programPages(deps: WebhookPageDeps): readonly Route[] {
  return [
    forAccount('/programs', { get: programListPage(deps) }),
    forAccount('/programs/:programId', { get: programPage(deps) }),
  ];
}

/** Every page on the webhooks of an account. `random` gives n uniform bytes. */
export function webhookPages(deps: WebhookPageDeps, random: (bytes: number) => Uint8Array): readonly Route[] {
  const one = '/webhooks/:webhookId';
  return [
    forAccount('/webhooks', { get: webhookListPage(deps) }),
    forAccount('/webhooks/new', createWebhookPage(deps, random)),
    forAccount('/webhooks/check', { post: urlCheckAction(deps) }),
    forAccount(one, { get: webhookPage(deps) }),
    forAccount(`${one}/edit`, editWebhookPage(deps)),
    forAccount(`${one}/pause`, { post: toggleAction(deps, 'pause') }),
    forAccount(`${one}/resume`, { post: toggleAction(deps, 'resume') }),
    forAccount(`${one}/rotation`, { post: rotateAction(deps) }),
    forAccount(`${one}/rotation/switch`, { post: settleAction(deps, 'switch') }),
    forAccount(`${one}/rotation/cancel`, { post: settleAction(deps, 'cancel') }),
    forAccount(`${one}/test`, { post: testAction(deps) }),
    forAccount(`${one}/resend-failed`, resendFailedPage(deps)),
    forAccount(`${one}/delete`, { post: deleteAction(deps) }),
  ];
}

/** Every page on what was sent to an account's webhooks. */
export function deliveryPages(deps: WebhookPageDeps): readonly Route[] {
  return [
    forAccount('/deliveries', { get: deliveryListPage(deps) }),
    forAccount('/deliveries/:deliveryId', { get: deliveryPage(deps) }),
    forAccount('/deliveries/:deliveryId/resend', { post: resendAction(deps) }),
  ];
}

/** The pages under `/operator`; for customers none of them is there. */
export function operatorPages(deps: PageDeps): readonly Route[] {
  return [
    forOperator('/accounts', { get: createAccountsPage(deps) }),
    forOperator('/accounts/new', { get: createNewAccountPage(deps), post: createAddAccount(deps) }),
    forOperator('/accounts/:id', { get: createAccountPage(deps) }),
    forOperator('/accounts/:id/plan', { post: createChangePlan(deps) }),
    forOperator('/accounts/:id/credits', { post: createAddCredits(deps) }),
    forOperator('/accounts/:id/rename', { post: createRename(deps) }),
    forOperator('/accounts/:id/suspend', { get: createSuspendPage(deps), post: createSuspend(deps) }),
    forOperator('/accounts/:id/resume', { post: createResume(deps) }),
    forOperator('/accounts/:id/users', { post: createAddUser(deps) }),
    forOperator('/users/:userId', { get: createUserPage(deps) }),
    forOperator('/users/:userId/password', { post: createNewPassword(deps) }),
    forOperator('/users/:userId/sign-out', { post: createSignOut(deps) }),
    forOperator('/users/:userId/second-factor', {
      get: createSecondFactorPage(deps),
      post: createResetSecondFactor(deps),
    }),
    forOperator('/users/:userId/remove', { post: createRemoveUser(deps) }),
    forOperator('/backends', { get: createBackendsPage(deps) }),
    forOperator('/traffic', { get: createTrafficPage(deps) }),
    forOperator('/queue', { get: createQueuePage(deps) }),
    forOperator('/audit', { get: createAuditPage(deps) }),
    forOperator('/health', { get: createHealthPage(deps) }),
  ];
}

export type PersonPagesDeps = Readonly<{
  people: People;
  addressOf: AddressOf;
  /** Hears why an identity provider could not be used. */
  noteUnavailable(reason: string): void;
}>;

/** Every page of the login and the settings. */
export function personPages({ people, addressOf, noteUnavailable }: PersonPagesDeps): readonly PersonPage[] {
  return [
    ...loginPages(people, addressOf),
    ...providerPages(people, addressOf, noteUnavailable),
    ...signUpPages(people, addressOf),
    ...settingsPages(people),
    ...secondFactorPages(people),
  ];
}
