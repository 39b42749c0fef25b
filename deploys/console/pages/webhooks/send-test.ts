import { unreachable } from '../../../../shared/brand.ts';
import type { Action, AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import { seeOther } from '../../redirect.ts';
import { deliveryPath, webhookPath } from '../../paths.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { showWebhook } from './one.tsx';

/** Sends a test. A page with JavaScript stays where it is; without, the delivery's page shows how it ends. */
export function testAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function sendTest(asked) {
    const { account, params, request } = asked;
    const id = params['webhookId'] ?? '';
    const isPart = request.headers.get('hx-request') === 'true';
    const tested = deps.webhooks.sendTest(byOf(asked), id);
    switch (tested.kind) {
      case 'queued':
        return isPart
          ? seeOther(`${webhookPath(account, id)}?test=${tested.deliveryId}`)
          : seeOther(deliveryPath(account, tested.deliveryId), 'test-queued');
      case 'webhook-paused':
      case 'over-rate':
        return showWebhook(deps, asked, id, { refusal: tested, ...(isPart && { status: 200 }) });
      case 'no-webhook':
        return asked.notFound();
      default:
        return unreachable(tested);
    }
  };
}
