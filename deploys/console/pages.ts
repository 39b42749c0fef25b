import type { LoginServices } from './page-services.ts';
import type { PageRoute } from './page.ts';
import { deliveryListPage } from './pages/account/deliveries.tsx';
import { deliveryPage } from './pages/account/delivery.tsx';
import { keyListPage, keyPage, newKeyPage } from './pages/account/keys.tsx';
import { overviewPage } from './pages/account/overview.tsx';
import { programListPage, programPage } from './pages/account/programs.tsx';
import { quickStartPage } from './pages/account/quick-start.tsx';
import { usageFile, usagePage } from './pages/account/usage.tsx';
import { resendFailedPage } from './pages/account/resend-failed.tsx';
import { editWebhookPage, newWebhookPage, urlCheckPage } from './pages/account/webhook-form.tsx';
import { webhookPage } from './pages/account/webhook.tsx';
import { webhookListPage } from './pages/account/webhooks.tsx';
import * as login from './pages/login/login.tsx';
import { secondFactorPage, settingsPage } from './pages/login/settings.tsx';
import { accountPage, suspendPage } from './pages/operator/account.tsx';
import { accountListPage, newAccountPage } from './pages/operator/accounts.tsx';
import { auditPage } from './pages/operator/audit.tsx';
import { backendsPage } from './pages/operator/backends.tsx';
import { healthPage } from './pages/operator/health.tsx';
import { queuePage } from './pages/operator/queue.tsx';
import { trafficPage } from './pages/operator/traffic.tsx';
import { resetFactorPage, userPage } from './pages/operator/user.tsx';

/** Pages for everybody, and of the login: half a session may see the second step alone. */
export const OPEN_PAGES: readonly PageRoute<LoginServices>[] = [
  login.startPage,
  login.themePage,
  login.loginPage,
  login.secondStepPage,
  login.logoutPage,
  login.providerPage,
  login.providerReturnPage,
  login.firstOperatorPage,
  login.signUpPage,
  settingsPage,
  secondFactorPage,
];

/** Every page of the console, a row each, in the order of the navigation. */
export const PAGES: readonly PageRoute[] = [
  ...OPEN_PAGES,

  accountListPage,
  newAccountPage,
  accountPage,
  suspendPage,
  userPage,
  resetFactorPage,
  backendsPage,
  trafficPage,
  queuePage,
  auditPage,
  healthPage,

  overviewPage,
  usagePage,
  usageFile,
  keyListPage,
  newKeyPage,
  keyPage,
  programListPage,
  programPage,
  webhookListPage,
  newWebhookPage,
  urlCheckPage,
  webhookPage,
  editWebhookPage,
  resendFailedPage,
  deliveryListPage,
  deliveryPage,
  quickStartPage,
];
