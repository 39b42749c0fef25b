import { forAccount, type Route } from '../../router.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
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
