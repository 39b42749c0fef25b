import { unreachable } from '../../../../shared/brand.ts';
import type { Action, AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import { seeOther } from '../../redirect.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { showWebhook } from './one.tsx';
import { webhookPath } from '../../paths.ts';
import { showSecret } from './secret-page.tsx';
import { TAKEOVER_NAMES } from './secret-panel.tsx';

/** Makes a new secret and shows it, this once. */
export function rotateAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function rotate(asked) {
    const { form, params } = asked;
    const id = params['webhookId'] ?? '';
    const takeover = TAKEOVER_NAMES.find((name) => name === form.get('takes-over')) ?? '24h';
    const seen = form.get('seen') ?? '';
    const seenAtMs = /^\d{1,15}$/.test(seen) ? Number(seen) : 0;
    const rotated = deps.webhooks.rotate(byOf(asked), id, takeover, seenAtMs);
    switch (rotated.kind) {
      case 'rotated':
        return showSecret(asked, { ...rotated, title: 'New secret' });
      case 'no-webhook':
        return asked.notFound();
      case 'rotation-pending':
      case 'changed-meanwhile':
        return showWebhook(deps, asked, id, { refusal: rotated });
      default:
        return unreachable(rotated);
    }
  };
}

/** Lets the waiting secret take over at once, or forgets it. */
export function settleAction(deps: WebhookPageDeps, to: 'switch' | 'cancel'): Action<AskedOfAccount> {
  const { switchNow, cancelRotation } = deps.webhooks;
  return function settle(asked) {
    const id = asked.params['webhookId'] ?? '';
    const settled = (to === 'switch' ? switchNow : cancelRotation)(byOf(asked), id);
    switch (settled.kind) {
      case 'settled':
        return seeOther(
          webhookPath(asked.account, id),
          to === 'switch' ? 'rotation-completed' : 'rotation-cancelled',
        );
      case 'no-webhook':
        return asked.notFound();
      case 'no-rotation':
        return showWebhook(deps, asked, id, { refusal: settled });
      default:
        return unreachable(settled);
    }
  };
}
