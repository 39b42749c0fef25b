import { forAccount, type Route } from '../../router.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { deleteAction, toggleAction } from './change.ts';
import { createWebhookPage } from './create.tsx';
import { editWebhookPage } from './edit.tsx';
import { webhookListPage } from './list.tsx';
import { webhookPage } from './one.tsx';
import { resendFailedPage } from './resend-failed.tsx';
import { rotateAction, settleAction } from './rotate.ts';
import { testAction } from './send-test.ts';
import { urlCheckAction } from './url-check.tsx';

/** Every page on the webhooks of an account. `random` gives n uniform bytes. */
export function webhookPages(deps: WebhookPageDeps, random: (bytes: number) => Uint8Array): readonly Route[] {
  const one = '/webhooks/:webhookId';
  return [
    forAccount('/webhooks', { get: webhookListPage(deps) }),
    forAccount('/webhooks/new', createWebhookPage(deps, random)),
    forAccount('/webhooks/check', { post: urlCheckAction(deps) }),
    forAccount(one, { get: webhookPage(deps) }),
    forAccount(`${one}/edit`, editWebhookPage(deps)),
    forAccount(`${one}/pause`, { post: toggleAction(deps, 'pause') }),
    forAccount(`${one}/resume`, { post: toggleAction(deps, 'resume') }),
    forAccount(`${one}/rotation`, { post: rotateAction(deps) }),
    forAccount(`${one}/rotation/switch`, { post: settleAction(deps, 'switch') }),
    forAccount(`${one}/rotation/cancel`, { post: settleAction(deps, 'cancel') }),
    forAccount(`${one}/test`, { post: testAction(deps) }),
    forAccount(`${one}/resend-failed`, resendFailedPage(deps)),
    forAccount(`${one}/delete`, { post: deleteAction(deps) }),
  ];
}
