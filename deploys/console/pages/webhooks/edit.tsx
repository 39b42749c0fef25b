/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { AskedOfAccount } from '../../context.ts';
import { byOf } from '../../by.ts';
import type { FormErrors } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Answers } from '../../router.ts';
import { seeOther } from '../../redirect.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { type GivenSettings, givenFrom, settingsOf } from './given.ts';
import { webhookPath, webhooksPath } from '../../paths.ts';
import { refusalText } from './refusal-text.ts';
import { SettingsForm } from './settings-form.tsx';
import { hostOf } from './shown-webhook.tsx';

/** Changes a webhook's URL, programs and description. */
export function editWebhookPage(deps: WebhookPageDeps): Answers<AskedOfAccount> {
  function showForm(asked: AskedOfAccount, given?: GivenSettings, errors?: FormErrors): Response {
    const { account, nowMs, params, show, notFound } = asked;
    const webhook = deps.webhooks.find(account.id, params['webhookId'] ?? '');
    if (webhook === undefined) return notFound();
    const path = webhookPath(account, webhook.id);
    const { url, description, programs } = webhook;
    return show({
      title: 'Edit webhook',
      ...(errors && { status: 422 }),
      crumbs: [
        { label: 'Webhooks', to: webhooksPath(account) },
        { label: hostOf(webhook), to: path },
      ],
      body: (
        <Panel title="Where to, and what">
          <SettingsForm
            action={`${path}/edit`}
            checkPath={`${webhooksPath(account)}/check`}
            given={given ?? { url, description, isAll: programs === null, programs: programs ?? [] }}
            errors={errors}
            programs={deps.programs({}, nowMs)}
            button="Save"
            back={path}
          />
        </Panel>
      ),
    });
  }

  return {
    get: (asked) => showForm(asked),
    post: async (asked) => {
      const id = asked.params['webhookId'] ?? '';
      const given = givenFrom(asked.form);
      const entry = deps.enter(asked.viewer.userId);
      if (entry.kind === 'over-rate') return showForm(asked, given, { form: refusalText(entry) });
      const edited = await deps.webhooks.edit(byOf(asked), id, settingsOf(given), asked.request.signal);
      switch (edited.kind) {
        case 'edited':
          return seeOther(webhookPath(asked.account, id), 'webhook-saved');
        case 'no-webhook':
          return asked.notFound();
        case 'unfit':
        case 'unresolved':
          return showForm(asked, given, { [edited.field]: `${edited.text}.` });
        default:
          return unreachable(edited);
      }
    },
  };
}
