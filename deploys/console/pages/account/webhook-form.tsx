/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { shortened } from '../../components/code.tsx';
import { CheckField, formContent, formIdFor, RadioFields, TextField } from '../../components/forms.tsx';
import { Icon, type Tone } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import type { PageServices } from '../../page-services.ts';
import { type AccountContext, accountPage, type Content, type FormRefusal } from '../../page.ts';
import { ACCOUNT, ownPath, paths, redirect } from '../../paths.ts';
import type { ProgramShown } from '../../../watch/readings.ts';
import { DESCRIPTION_CHARACTERS_MAX, type Settings } from '../../../webhooks/settings.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';
import type { Webhooks } from '../../../webhooks/webhooks.ts';
import { secretContent } from './webhook-secret.tsx';
import { crumbsTo, refusedText, webhookIn } from './webhooks.tsx';

/** The form of a new webhook; the response to it is the one page that shows the secret. */
export const newWebhookPage = accountPage({
  path: `${paths.webhooks(ACCOUNT)}/new`,
  show(services, context) {
    const program = context.url.searchParams.get('program') ?? '';
    const isWatched = services.programs({}, context.nowMs).some(({ programId }) => programId === program);
    const list = paths.webhooks(context.account.id);
    return formContent({
      title: 'Add webhook',
      crumbs: [['Webhooks', list]],
      panel: PANEL,
      action: `${list}/new`,
      button: 'Add webhook',
      beside: <Link to={list}>Cancel</Link>,
      // The id of the form, so that the same webhook is not made twice.
      hidden: { once: context.returned?.sent?.get('once') ?? formIdFor(context, services.random) },
      children: fields(services, context, {
        url: '',
        description: '',
        programs: isWatched ? [program] : null,
      }),
    });
  },
  forms: {
    async ''({ webhooks, enter, random }, context) {
      const { form, account, request, viewer, by } = context;
      const entry = enter(viewer.userId);
      if (entry.kind === 'over-rate') return { errors: { form: refusedText(entry) } };
      const wanted = { ...settingsOf(form), once: form.get('once') ?? formIdFor(context, random) };
      const created = await webhooks.create(by, wanted, request.signal);
      return answered(account.id, created);
    },
  },
});

/** The form of a webhook's URL, programs and description as they are. */
export const editWebhookPage = accountPage({
  path: `${paths.webhook(ACCOUNT, ':webhookId')}/edit`,
  find: webhookIn,
  show(services, context, webhook) {
    const { id } = context.account;
    const path = paths.webhook(id, webhook.id);
    return formContent({
      title: 'Edit webhook',
      crumbs: crumbsTo(id, webhook),
      panel: PANEL,
      action: `${path}/edit`,
      button: 'Save',
      beside: <Link to={path}>Cancel</Link>,
      children: fields(services, context, webhook),
    });
  },
  forms: {
    async ''({ webhooks, enter }, { account, form, request, viewer, by }, { id }) {
      const entry = enter(viewer.userId);
      if (entry.kind === 'over-rate') return { errors: { form: refusedText(entry) } };
      const edited = await webhooks.edit(by, id, settingsOf(form), request.signal);
      return answered(account.id, edited);
    },
  },
});

type SaveResult = Awaited<ReturnType<Webhooks['create' | 'edit']>>;

/** How a form ends: with the secret of a new webhook, on the webhook's page, or as it comes back. */
function answered(accountId: number, result: SaveResult): Content | Response | FormRefusal | undefined {
  switch (result.kind) {
    case 'created':
      return secretContent(accountId, { ...result, title: 'Webhook created' });
    case 'made-before':
      return redirect(paths.webhook(accountId, result.webhookId), 'webhook-created-before');
    case 'edited':
      return redirect(paths.webhook(accountId, result.webhook.id), 'webhook-saved');
    case 'no-webhook':
      return undefined;
    case 'unfit':
    case 'unresolved':
      return { errors: { [result.field]: `${result.text}.` } };
    case 'too-many':
      return { errors: { form: refusedText(result) } };
    default:
      return unreachable(result);
  }
}

const PANEL = 'Endpoint and events';

/** The fields of a webhook, as they were sent where the form comes back. */
function fields(
  { programs }: PageServices,
  { account, nowMs, returned }: AccountContext,
  stored: Pick<Webhook, 'url' | 'description' | 'programs'>,
) {
  const sent = returned?.sent;
  const given = {
    isAll: sent ? isAll(sent) : stored.programs === null,
    chosen: sent?.getAll('program') ?? stored.programs ?? [],
  };
  return (
    <>
      <TextField
        name="url"
        label="URL"
        type="url"
        value={stored.url}
        isRequired
        isCode
        placeholder="https://hooks.example.com/sluice"
        maxLength={2_048}
        hint="Must start with https:// and be reachable from the public internet."
      />
      {urlCheck(`${paths.webhooks(account.id)}/check`)}
      {programPicker(given, programs({}, nowMs), returned?.errors?.['programs'])}
      <TextField
        name="description"
        label="Description"
        value={stored.description}
        maxLength={DESCRIPTION_CHARACTERS_MAX}
        hint="For your reference only; it is not sent."
      />
    </>
  );
}

/** The chosen programs stay as they were when the form comes back, also beside "all". */
type GivenForm = Readonly<{ isAll: boolean; chosen: readonly string[] }>;

const isAll = (form: URLSearchParams) => form.get('programs') !== 'chosen';

function settingsOf(form: URLSearchParams): Settings {
  const [url = '', description = ''] = ['url', 'description'].map((name) => (form.get(name) ?? '').trim());
  return { url, description, programs: isAll(form) ? null : form.getAll('program') };
}

/** All programs or chosen ones. With JavaScript the list can be searched; without, it is a list to scroll. */
function programPicker(given: GivenForm, programs: readonly ProgramShown[], error: string | undefined) {
  const chosen = new Set(given.chosen);
  const unwatched = given.chosen
    .filter((address) => !programs.some(({ programId }) => programId === address))
    .map((programId) => ({ programId, label: 'No longer watched' }));
  const chosenFirst = programs.toSorted(
    (a, b) => Number(chosen.has(b.programId)) - Number(chosen.has(a.programId)),
  );
  return (
    <div class={error === undefined ? 'picker' : 'picker field-wrong'} id="programs" tabindex={-1}>
      <RadioFields
        name="programs"
        legend="Programs"
        value={given.isAll ? 'all' : 'chosen'}
        options={[
          {
            value: 'all',
            label: `All ${programs.length} watched programs`,
            hint: 'Including programs added later.',
          },
          { value: 'chosen', label: 'Selected programs' },
        ]}
      />
      {error !== undefined && <p class="field-error">{error}</p>}
      <div class="picker-choice">
        <div class="field script-only">
          <label for="picker-search">Search programs</label>
          <input type="search" id="picker-search" data-narrows="picker-list" autocomplete="off" />
          <p class="field-hint" data-narrowed="picker-list" role="status" />
        </div>
        <fieldset class="picker-list" id="picker-list">
          <legend class="hidden">Selected programs</legend>
          {[...chosenFirst, ...unwatched].map(({ programId, label }) => (
            <CheckField
              name="program"
              value={programId}
              isChecked={chosen.has(programId)}
              label={
                // The whole address can be searched for, though its ends are what is shown.
                <span data-text={`${label} ${programId}`.toLowerCase()}>
                  {label} <code class="soft">{shortened(programId)}</code>
                </span>
              }
            />
          ))}
        </fieldset>
      </div>
    </div>
  );
}

/** Characters before a URL is checked: "https://a.b". */
const CHECKED_FROM = 11;

/** Shows the result of checking the URL while it is typed. Without JavaScript it is checked when the form is sent. */
function urlCheck(path: string) {
  return (
    <div
      id="url-check"
      class="url-check script-only"
      role="status"
      hx-post={ownPath(path)}
      hx-trigger="input changed delay:500ms from:#url"
      hx-include="#url"
      hx-select="#url-check-answer"
      hx-sync="this:replace"
    />
  );
}

/** Checks a URL as for a new webhook, without creating one. POST, because a URL may hold a secret. */
export const urlCheckPage = accountPage({
  path: `${paths.webhooks(ACCOUNT)}/check`,
  forms: {
    async ''({ webhooks, enter }, { form, viewer, request }) {
      const url = (form.get('url') ?? '').trim();
      const answer = async (): Promise<readonly [Tone, string]> => {
        if (url.length < CHECKED_FROM) return ['quiet', ''];
        const entry = enter(viewer.userId);
        if (entry.kind === 'over-rate') return ['warning', refusedText(entry)];
        const check = await webhooks.check({ url }, request.signal);
        if (check.kind === 'checked') return ['good', 'Valid: uses https and resolves to public addresses.'];
        if (check.kind === 'unfit') return ['bad', `${check.text}.`];
        return ['warning', `${check.text}. Try again in a moment.`];
      };
      const [tone, text] = await answer();
      return {
        title: 'URL check',
        body: (
          <p id="url-check-answer" class={`tone-${tone} check-result`}>
            {text !== '' && <Icon name={tone === 'good' ? 'check' : 'alert'} />}
            {text}
          </p>
        ),
      };
    },
  },
});
