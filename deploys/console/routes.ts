import type { Answer, FormContext } from './context.ts';
import { startPathOf, themeCookie } from './layout.tsx';
import type { AccountServices, LoginServices, PageServices, WebhookServices } from './page-services.ts';
import { deliveryListPage } from './pages/account/deliveries.tsx';
import { deliveryPage, resendDelivery } from './pages/account/delivery.tsx';
import { keyPage, renameKey, revokeKey, rotateKey } from './pages/account/key.tsx';
import { createKey, keyListPage, newKeyPage } from './pages/account/keys.tsx';
import { overviewPage } from './pages/account/overview.tsx';
import { programListPage, programPage } from './pages/account/programs.tsx';
import { quickStartPage } from './pages/account/quick-start.tsx';
import { usageCsv } from './pages/account/usage-csv.ts';
import { usagePage } from './pages/account/usage.tsx';
import {
  changeWebhook,
  deleteWebhook,
  resendFailed,
  resendFailedPage,
  rotateSecret,
  sendTest,
} from './pages/account/webhook-actions.tsx';
import {
  checkUrl,
  createWebhook,
  editWebhook,
  editWebhookPage,
  newWebhookPage,
} from './pages/account/webhook-form.tsx';
import { webhookPage } from './pages/account/webhook.tsx';
import { webhookListPage } from './pages/account/webhooks.tsx';
import {
  enterCode,
  logIn,
  loginPage,
  logOut,
  logoutPage,
  providerPage,
  providerReturnPage,
  secondStepPage,
} from './pages/login/login.tsx';
import {
  beginSecondFactor,
  confirmSecondFactor,
  secondFactorPage,
  turnSecondFactorOff,
} from './pages/login/second-factor.tsx';
import { changePassword, settingsPage, signOutOthers } from './pages/login/settings.tsx';
import { firstOperatorPage, makeFirstOperator, signUp, signUpPage } from './pages/login/sign-up.tsx';
import {
  addCredits,
  addUser,
  changePlan,
  renameAccount,
  resumeAccount,
  suspendAccount,
  suspendPage,
} from './pages/operator/account-actions.tsx';
import { accountPage } from './pages/operator/account.tsx';
import { accountsPage, addAccount, newAccountPage } from './pages/operator/accounts.tsx';
import { auditPage } from './pages/operator/audit.tsx';
import { backendsPage } from './pages/operator/backends.tsx';
import { healthPage } from './pages/operator/health.tsx';
import { queuePage } from './pages/operator/queue.tsx';
import { trafficPage } from './pages/operator/traffic.tsx';
import {
  newPassword,
  removeUser,
  resetFactorPage,
  resetSecondFactor,
  signUserOut,
  userPage,
} from './pages/operator/user.tsx';
import { paths } from './paths.ts';
import { redirect } from './redirect.ts';
import { forAccount, forAnyone, forOperator, type Route } from './router.ts';

const ACCOUNT = ':accountId';

/** Every page of the console, one row each. */
export function routesOf(services: PageServices): readonly Route[] {
  const { webhookPages } = services;
  return [
    ...startRoutes(services),
    ...accountRoutes(services),
    ...operatorRoutes(services),
    ...(webhookPages === undefined ? [] : webhookRoutes(webhookPages)),
    ...loginRoutes(services),
  ];
}

/** Binds pages to their services. */
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
    forAnyone(paths.theme, { post: (context) => chooseTheme(context, origin.startsWith('https:')) }),
  ];
}

/** Keeps the chosen colours in a cookie and comes back to the page. */
function chooseTheme({ form }: FormContext, isSecure: boolean): Response {
  return redirect(form.get('next') ?? paths.start, undefined, [themeCookie(form.get('theme'), isSecure)]);
}

/** Every page on an account's calls and keys. */
export function accountRoutes(services: AccountServices): readonly Route[] {
  const on = giving(services);
  const key = paths.key(ACCOUNT, ':keyId');
  return [
    forAccount(paths.overview(ACCOUNT), { get: on(overviewPage) }),
    forAccount(paths.usage(ACCOUNT), { get: on(usagePage) }),
    forAccount(`${paths.usage(ACCOUNT)}.csv`, { get: on(usageCsv) }),
    forAccount(paths.keys(ACCOUNT), { get: on(keyListPage) }),
    forAccount(`${paths.keys(ACCOUNT)}/new`, { get: on(newKeyPage), post: on(createKey) }),
    forAccount(key, { get: on(keyPage) }),
    forAccount(`${key}/rename`, { post: on(renameKey) }),
    forAccount(`${key}/rotate`, { post: on(rotateKey) }),
    forAccount(`${key}/revoke`, { post: on(revokeKey) }),
    forAccount(paths.quickStart(ACCOUNT), { get: on(quickStartPage) }),
  ];
}

/** Every page on watched programs, an account's webhooks and what was sent to them. */
export function webhookRoutes(services: WebhookServices): readonly Route[] {
  const on = giving(services);
  const webhooks = paths.webhooks(ACCOUNT);
  const webhook = paths.webhook(ACCOUNT, ':webhookId');
  const delivery = paths.delivery(ACCOUNT, ':deliveryId');
  return [
    forAccount(paths.programs(ACCOUNT), { get: on(programListPage) }),
    forAccount(paths.program(ACCOUNT, ':programId'), { get: on(programPage) }),
    forAccount(webhooks, { get: on(webhookListPage) }),
    forAccount(`${webhooks}/new`, { get: on(newWebhookPage), post: on(createWebhook) }),
    forAccount(`${webhooks}/check`, { post: on(checkUrl) }),
    forAccount(webhook, { get: on(webhookPage) }),
    forAccount(`${webhook}/edit`, { get: on(editWebhookPage), post: on(editWebhook) }),
    forAccount(`${webhook}/pause`, { post: on(changeWebhook('pause')) }),
    forAccount(`${webhook}/resume`, { post: on(changeWebhook('resume')) }),
    forAccount(`${webhook}/rotation`, { post: on(rotateSecret) }),
    forAccount(`${webhook}/rotation/switch`, { post: on(changeWebhook('switchNow')) }),
    forAccount(`${webhook}/rotation/cancel`, { post: on(changeWebhook('cancelRotation')) }),
    forAccount(`${webhook}/test`, { post: on(sendTest) }),
    forAccount(`${webhook}/resend-failed`, { get: on(resendFailedPage), post: on(resendFailed) }),
    forAccount(`${webhook}/delete`, { post: on(deleteWebhook) }),
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
    forOperator(account, { get: on(accountPage) }),
    forOperator(`${account}/plan`, { post: on(changePlan) }),
    forOperator(`${account}/credits`, { post: on(addCredits) }),
    forOperator(`${account}/rename`, { post: on(renameAccount) }),
    forOperator(`${account}/suspend`, { get: on(suspendPage), post: on(suspendAccount) }),
    forOperator(`${account}/resume`, { post: on(resumeAccount) }),
    forOperator(`${account}/users`, { post: on(addUser) }),
    forOperator(user, { get: on(userPage) }),
    forOperator(`${user}/password`, { post: on(newPassword) }),
    forOperator(`${user}/sign-out`, { post: on(signUserOut) }),
    forOperator(`${user}/second-factor`, { get: on(resetFactorPage), post: on(resetSecondFactor) }),
    forOperator(`${user}/remove`, { post: on(removeUser) }),
    forOperator(paths.backends, { get: on(backendsPage) }),
    forOperator(paths.traffic, { get: on(trafficPage) }),
    forOperator(paths.queue, { get: on(queuePage) }),
    forOperator(paths.audit, { get: on(auditPage) }),
    forOperator(paths.health, { get: on(healthPage) }),
  ];
}

/**
 * Every page of the login and the settings. They look at the session by themselves: who has half a session is let into
 * the second step alone.
 */
export function loginRoutes(services: LoginServices): readonly Route[] {
  const on = giving(services);
  const { config, providerLogin } = services.auth;
  // A rejected form is shown at an address that accepts only POST; a reload by GET leads back.
  const toSettings = () => redirect(paths.settings);
  const toSecondFactor = () => redirect(paths.secondFactor);
  return [
    forAnyone(paths.login, { get: on(loginPage), post: on(logIn) }),
    forAnyone(paths.secondStep, { get: (context) => secondStepPage(context), post: on(enterCode) }),
    forAnyone(paths.logout, { get: logoutPage, post: on(logOut) }),
    ...(providerLogin === undefined
      ? []
      : [
          // A link, not a form: `form-action` of the policy would refuse the way to another origin.
          forAnyone(paths.provider, { get: on(providerPage) }),
          forAnyone(paths.providerReturn, { get: on(providerReturnPage) }),
        ]),
    forAnyone(paths.firstOperator, {
      get: (context) => firstOperatorPage(context),
      post: on(makeFirstOperator),
    }),
    ...(config.signUp
      ? [forAnyone(paths.signUp, { get: (context) => signUpPage(context), post: on(signUp) })]
      : []),
    forAnyone(paths.settings, { get: on(settingsPage) }),
    forAnyone(paths.password, { get: toSettings, post: on(changePassword) }),
    forAnyone(paths.otherSessions, { get: toSettings, post: on(signOutOthers) }),
    forAnyone(paths.secondFactor, { get: on(secondFactorPage), post: on(beginSecondFactor) }),
    forAnyone(`${paths.secondFactor}/confirm`, { get: toSecondFactor, post: on(confirmSecondFactor) }),
    forAnyone(`${paths.secondFactor}/off`, { get: toSecondFactor, post: on(turnSecondFactorOff) }),
  ];
}
