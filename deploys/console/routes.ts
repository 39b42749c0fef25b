import { personPages } from '../users/person-pages.ts';
import { forAnyone, type Route } from './router.ts';
import { accountPages } from './pages/account-pages.ts';
import { deliveryPages } from './pages/deliveries/delivery-pages.ts';
import { programPages } from './pages/programs/program-pages.ts';
import { webhookPages } from './pages/webhooks/webhook-pages.ts';
import type { PageDeps } from './page-services.ts';
import { operatorPages } from './pages/operator/operator-pages.ts';
import { createStartPage } from './start-page.ts';
import { createThemeAction } from './theme-action.ts';

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
