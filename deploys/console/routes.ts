import type { Answer } from './context.ts';
import { startPathOf, themeCookie } from './layout.tsx';
import type { AccountServices, LoginServices, PageServices, WebhookServices } from './page-services.ts';
import { deliveryListPage } from './pages/account/deliveries.tsx';
import { deliveryPage, resendDelivery } from './pages/account/delivery.tsx';
import * as keys from './pages/account/keys.tsx';
import { overviewPage } from './pages/account/overview.tsx';
import { programListPage, programPage } from './pages/account/programs.tsx';
import { quickStartPage } from './pages/account/quick-start.tsx';
import { usageCsv, usagePage } from './pages/account/usage.tsx';
import * as actions from './pages/account/webhook-actions.tsx';
import * as forms from './pages/account/webhook-form.tsx';
import { webhookPage } from './pages/account/webhook.tsx';
import { webhookListPage } from './pages/account/webhooks.tsx';
import * as login from './pages/login/login.tsx';
import * as settings from './pages/login/settings.tsx';
import * as operated from './pages/operator/account.tsx';
import { accountsPage, addAccount, newAccountPage } from './pages/operator/accounts.tsx';
import { auditPage } from './pages/operator/audit.tsx';
import { backendsPage } from './pages/operator/backends.tsx';
import { healthPage } from './pages/operator/health.tsx';
import { queuePage } from './pages/operator/queue.tsx';
import { trafficPage } from './pages/operator/traffic.tsx';
import * as users from './pages/operator/user.tsx';
import { paths, redirect } from './paths.ts';
import { forAccount, forAnyone, forOperator, type Route } from './router.ts';

const ACCOUNT = ':accountId';

/** Every page of the console, one row each. */
export function routesOf(services: PageServices): readonly Route[] {
  return [
    ...startRoutes(services),
    ...accountRoutes(services),
    ...operatorRoutes(services),
    ...webhookRoutes(services),
    ...loginRoutes(services),
  ];
}

function giving<S>(services: S) {
  return function given<C>(page: (services: S, context: C) => Answer): (context: C) => Answer {
    return (context) => page(services, context);
  };
}

/** Where everybody begins, and the colours. */
export function startRoutes({ origin }: Pick<AccountServices, 'origin'>): readonly Route[] {
  return [
    forAnyone(paths.start, {
      get: ({ viewer }) => redirect(viewer === undefined ? paths.login : startPathOf(viewer)),
    }),
    // Keeps the chosen colours in a cookie and comes back to the page.
    forAnyone(paths.theme, {
      post: ({ form }) =>
        redirect(form.get('next') ?? paths.start, undefined, [
          themeCookie(form.get('theme'), origin.startsWith('https:')),
        ]),
    }),
  ];
}

function accountRoutes(services: AccountServices): readonly Route[] {
  const on = giving(services);
  const key = paths.key(ACCOUNT, ':keyId');
  return [
    forAccount(paths.overview(ACCOUNT), { get: on(overviewPage) }),
    forAccount(paths.usage(ACCOUNT), { get: on(usagePage) }),
    forAccount(`${paths.usage(ACCOUNT)}.csv`, { get: on(usageCsv) }),
    forAccount(paths.keys(ACCOUNT), { get: on(keys.keyListPage) }),
    forAccount(`${paths.keys(ACCOUNT)}/new`, { get: on(keys.newKeyPage), post: on(keys.createKey) }),
    forAccount(key, { get: on(keys.keyPage) }),
    forAccount(`${key}/rename`, { post: on(keys.renameKey) }),
    forAccount(`${key}/rotate`, { post: on(keys.rotateKey) }),
    forAccount(`${key}/revoke`, { post: on(keys.revokeKey) }),
    forAccount(paths.quickStart(ACCOUNT), { get: on(quickStartPage) }),
  ];
}

function webhookRoutes(services: WebhookServices): readonly Route[] {
  const on = giving(services);
  const webhooks = paths.webhooks(ACCOUNT);
  const webhook = paths.webhook(ACCOUNT, ':webhookId');
  const delivery = paths.delivery(ACCOUNT, ':deliveryId');
  return [
    forAccount(paths.programs(ACCOUNT), { get: on(programListPage) }),
    forAccount(paths.program(ACCOUNT, ':programId'), { get: on(programPage) }),
    forAccount(webhooks, { get: on(webhookListPage) }),
    forAccount(`${webhooks}/new`, { get: on(forms.newWebhookPage), post: on(forms.createWebhook) }),
    forAccount(`${webhooks}/check`, { post: on(forms.checkUrl) }),
    forAccount(webhook, { get: on(webhookPage) }),
    forAccount(`${webhook}/edit`, { get: on(forms.editWebhookPage), post: on(forms.editWebhook) }),
    forAccount(`${webhook}/pause`, { post: on(actions.changeWebhook('pause')) }),
    forAccount(`${webhook}/resume`, { post: on(actions.changeWebhook('resume')) }),
    forAccount(`${webhook}/rotation`, { post: on(actions.rotateSecret) }),
    forAccount(`${webhook}/rotation/switch`, { post: on(actions.changeWebhook('switchNow')) }),
    forAccount(`${webhook}/rotation/cancel`, { post: on(actions.changeWebhook('cancelRotation')) }),
    forAccount(`${webhook}/test`, { post: on(actions.sendTest) }),
    forAccount(`${webhook}/resend-failed`, {
      get: on(actions.resendFailedPage),
      post: on(actions.resendFailed),
    }),
    forAccount(`${webhook}/delete`, { post: on(actions.deleteWebhook) }),
    forAccount(paths.deliveries(ACCOUNT), { get: on(deliveryListPage) }),
    forAccount(delivery, { get: on(deliveryPage) }),
    forAccount(`${delivery}/resend`, { post: on(resendDelivery) }),
  ];
}

/** The operators' pages; for customers none of them is there. */
function operatorRoutes(services: PageServices): readonly Route[] {
  const on = giving(services);
  const account = paths.operatorAccount(':id');
  const user = paths.user(':userId');
  return [
    forOperator(paths.operatorAccounts, { get: on(accountsPage) }),
    forOperator(`${paths.operatorAccounts}/new`, { get: on(newAccountPage), post: on(addAccount) }),
    forOperator(account, { get: on(operated.accountPage) }),
    forOperator(`${account}/plan`, { post: on(operated.changePlan) }),
    forOperator(`${account}/credits`, { post: on(operated.addCredits) }),
    forOperator(`${account}/rename`, { post: on(operated.renameAccount) }),
    forOperator(`${account}/suspend`, { get: on(operated.suspendPage), post: on(operated.suspendAccount) }),
    forOperator(`${account}/resume`, { post: on(operated.resumeAccount) }),
    forOperator(`${account}/users`, { post: on(operated.addUser) }),
    forOperator(user, { get: on(users.userPage) }),
    forOperator(`${user}/password`, { post: on(users.newPassword) }),
    forOperator(`${user}/sign-out`, { post: on(users.signUserOut) }),
    forOperator(`${user}/second-factor`, {
      get: on(users.resetFactorPage),
      post: on(users.resetSecondFactor),
    }),
    forOperator(`${user}/remove`, { post: on(users.removeUser) }),
    forOperator(paths.backends, { get: on(backendsPage) }),
    forOperator(paths.traffic, { get: on(trafficPage) }),
    forOperator(paths.queue, { get: on(queuePage) }),
    forOperator(paths.audit, { get: on(auditPage) }),
    forOperator(paths.health, { get: on(healthPage) }),
  ];
}

/** Pages of the login and the settings. They read the session by themselves: half a session may see the second step alone. */
export function loginRoutes(services: LoginServices): readonly Route[] {
  const on = giving(services);
  const { config, providerLogin } = services.auth;
  // A rejected form is shown at an address that accepts only POST; a reload by GET leads back.
  const toSettings = () => redirect(paths.settings);
  const toSecondFactor = () => redirect(paths.secondFactor);
  return [
    forAnyone(paths.login, { get: on(login.loginPage), post: on(login.logIn) }),
    forAnyone(paths.secondStep, {
      get: (context) => login.secondStepPage(context),
      post: on(login.enterCode),
    }),
    forAnyone(paths.logout, { get: login.logoutPage, post: on(login.logOut) }),
    ...(providerLogin === undefined
      ? []
      : [
          // A link, not a form: `form-action` of the policy would refuse the way to another origin.
          forAnyone(paths.provider, { get: on(login.providerPage) }),
          forAnyone(paths.providerReturn, { get: on(login.providerReturnPage) }),
        ]),
    forAnyone(paths.firstOperator, {
      get: (context) => login.firstOperatorPage(context),
      post: on(login.makeFirstOperator),
    }),
    ...(config.signUp
      ? [forAnyone(paths.signUp, { get: (context) => login.signUpPage(context), post: on(login.signUp) })]
      : []),
    forAnyone(paths.settings, { get: on(settings.settingsPage) }),
    forAnyone(paths.password, { get: toSettings, post: on(settings.changePassword) }),
    forAnyone(paths.otherSessions, { get: toSettings, post: on(settings.signOutOthers) }),
    forAnyone(paths.secondFactor, {
      get: on(settings.secondFactorPage),
      post: on(settings.beginSecondFactor),
    }),
    forAnyone(`${paths.secondFactor}/confirm`, {
      get: toSecondFactor,
      post: on(settings.confirmSecondFactor),
    }),
    forAnyone(`${paths.secondFactor}/off`, { get: toSecondFactor, post: on(settings.turnSecondFactorOff) }),
  ];
}
