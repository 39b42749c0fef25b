/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import type { Action, AskedOfAccount, Page } from '../../context.ts';
import { byOf } from '../../by.ts';
import type { FormErrors } from '../../components/forms.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Answers } from '../../router.ts';
import { seeOther } from '../../redirect.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { emptySettings, type GivenSettings, givenFrom, settingsOf } from './given.ts';
import { webhookPath, webhooksPath } from '../../paths.ts';
import { refusalText } from './refusal-text.ts';
import { showSecret } from './secret-page.tsx';
import { SettingsForm } from './settings-form.tsx';

/** The form that makes a webhook, and the one page that shows its secret. */
export function createWebhookPage(
  deps: WebhookPageDeps,
  random: (bytes: number) => Uint8Array,
): Answers<AskedOfAccount> {
  const newForm = () => Buffer.from(random(16)).toString('hex');

  const get: Page<AskedOfAccount> = (asked) => {
    const program = asked.url.searchParams.get('program') ?? undefined;
    const isWatched = deps.programs({}, asked.nowMs).some(({ programId }) => programId === program);
    return showForm(deps, asked, emptySettings(isWatched ? program : undefined), newForm());
  };

  const post: Action<AskedOfAccount> = async (asked) => {
    const { form, account, request, viewer } = asked;
    const given = givenFrom(form);
    const once = form.get('once') ?? newForm();
    const again = (errors: FormErrors) => showForm(deps, asked, given, once, errors);
    const entry = deps.enter(viewer.userId);
    if (entry.kind === 'over-rate') return again({ form: refusalText(entry) });
    const created = await deps.webhooks.create(byOf(asked), { ...settingsOf(given), once }, request.signal);
    switch (created.kind) {
      case 'created':
        return showSecret(asked, { ...created, title: 'Webhook created' });
      case 'made-before':
        return seeOther(webhookPath(account, created.webhookId), 'webhook-made-before');
      case 'unfit':
      case 'unresolved':
        return again({ [created.field]: `${created.text}.` });
      case 'too-many':
        return again({ form: refusalText(created) });
      default:
        return unreachable(created);
    }
  };
  return { get, post };
}

function showForm(
  deps: WebhookPageDeps,
  { account, nowMs, show }: AskedOfAccount,
  given: GivenSettings,
  once: string,
  errors?: FormErrors,
): Response {
  const path = webhooksPath(account);
  return show({
    title: 'Add webhook',
    ...(errors && { status: 422 }),
    crumbs: [{ label: 'Webhooks', to: path }],
    body: (
      <Panel title="Where to, and what">
        <SettingsForm
          action={`${path}/new`}
          checkPath={`${path}/check`}
          given={given}
          errors={errors}
          programs={deps.programs({}, nowMs)}
          once={once}
          button="Add webhook"
          back={path}
        />
      </Panel>
    ),
  });
}
