import type { PageDeps } from '../../page-services.ts';
import { forOperator, type Route } from '../../router.ts';
import {
  createAddCredits,
  createChangePlan,
  createRename,
  createResume,
  createSuspend,
  createSuspendPage,
} from './account-actions.tsx';
import { createAccountPage } from './account.tsx';
import { createAccountsPage, createAddAccount, createNewAccountPage } from './accounts.tsx';
import { createAddUser } from './add-user.ts';
import { createAuditPage } from './audit.tsx';
import { createBackendsPage } from './backends.tsx';
import { createHealthPage } from './health.tsx';
import { createQueuePage } from './queue.tsx';
import { createTrafficPage } from './traffic.tsx';
import {
  createNewPassword,
  createRemoveUser,
  createResetSecondFactor,
  createSecondFactorPage,
  createSignOut,
  createUserPage,
} from './user.tsx';

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
