import { forAccount, type Route } from '../../routing/route.ts';
import type { WebhookPageDeps } from '../webhook-page-deps.ts';
import { deliveryListPage } from './list.tsx';
import { deliveryPage, resendAction } from './one.tsx';

/** Every page on what was sent to an account's webhooks. */
export function deliveryPages(deps: WebhookPageDeps): readonly Route[] {
  return [
    forAccount('/deliveries', { get: deliveryListPage(deps) }),
    forAccount('/deliveries/:deliveryId', { get: deliveryPage(deps) }),
    forAccount('/deliveries/:deliveryId/resend', { post: resendAction(deps) }),
  ];
}
