import { unreachable } from '../../../../shared/brand.ts';
import type { Action, AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import { isConfirmed } from '../../components/forms.tsx';
import { seeOther } from '../../redirect.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { showWebhook } from './one.tsx';
import { webhookPath, webhooksPath } from '../../paths.ts';
import { hostOf } from './shown-webhook.tsx';

/** Pauses a webhook or resumes it. */
export function toggleAction({ webhooks }: WebhookPageDeps, to: 'pause' | 'resume'): Action<AskedOfAccount> {
  return function toggle(asked) {
    const id = asked.params['webhookId'] ?? '';
    const toggled = webhooks[to](byOf(asked), id);
    switch (toggled.kind) {
      case 'paused':
        return seeOther(webhookPath(asked.account, id), 'webhook-paused');
      case 'resumed':
        return seeOther(webhookPath(asked.account, id), 'webhook-resumed');
      case 'no-webhook':
        return asked.notFound();
      default:
        return unreachable(toggled);
    }
  };
}

/** Deletes a webhook whose host was typed. */
export function deleteAction(deps: WebhookPageDeps): Action<AskedOfAccount> {
  return function deleteWebhook(asked) {
    const { account, form, notFound } = asked;
    const id = asked.params['webhookId'] ?? '';
    const webhook = deps.webhooks.find(account.id, id);
    if (webhook === undefined) return notFound();
    const host = hostOf(webhook);
    if (!isConfirmed(form, host))
      return showWebhook(deps, asked, id, { deleteErrors: { confirm: `That is not ${host}.` } });
    deps.webhooks.remove(byOf(asked), id);
    return seeOther(webhooksPath(account), 'webhook-deleted');
  };
}
