/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { shortened } from '../../components/code.tsx';
import {
  CheckField,
  type FormErrors,
  newFormId,
  PostForm,
  RadioFields,
  TextField,
} from '../../components/forms.tsx';
import { Icon, Panel, type Tone } from '../../components/panels.tsx';
import { Link } from '../../components/links.tsx';
import { type AccountContext, type AccountForm, byOf } from '../../context.ts';
import type { WebhookServices } from '../../page-services.ts';
import { showSecret } from './webhook-actions.tsx';
import { webhookIdIn } from './webhook.tsx';
import { hostOf, refusalText } from './webhooks.tsx';
import { ownPath, paths, redirect } from '../../paths.ts';
import type { ProgramShown } from '../../../watch/readings.ts';
import { DESCRIPTION_CHARACTERS_MAX, type Settings } from '../../../webhooks/settings.ts';
import type { Webhook } from '../../../webhooks/webhook.ts';

export function newWebhookPage(services: WebhookServices, context: AccountContext): Response {
  const program = context.url.searchParams.get('program') ?? '';
  const isWatched = services.programs({}, context.nowMs).some(({ programId }) => programId === program);
  const given = { url: '', description: '', isAll: !isWatched, programs: isWatched ? [program] : [] };
  return showForm(services, context, { given, once: newFormId(services.random) });
}

/** Creates a webhook; the response is the one page that shows its secret. */
export async function createWebhook(services: WebhookServices, context: AccountForm): Promise<Response> {
  const { form, account, request, viewer } = context;
  const given = givenFrom(form);
  const once = form.get('once') ?? newFormId(services.random);
  const again = (errors: FormErrors) => showForm(services, context, { given, once, errors });
  const entry = services.enter(viewer.userId);
  if (entry.kind === 'over-rate') return again({ form: refusalText(entry) });
  const wanted = { ...settingsOf(given), once };
  const created = await services.webhooks.create(byOf(context), wanted, request.signal);
  switch (created.kind) {
    case 'created':
      return showSecret(context, { ...created, title: 'Webhook created' });
    case 'made-before':
      return redirect(paths.webhook(account.id, created.webhookId), 'webhook-created-before');
    case 'unfit':
    case 'unresolved':
      return again({ [created.field]: `${created.text}.` });
    case 'too-many':
      return again({ form: refusalText(created) });
    default:
      return unreachable(created);
  }
}

/** The form of a webhook's URL, programs and description as they are. */
export function editWebhookPage(services: WebhookServices, context: AccountContext): Response {
  const webhook = services.webhooks.find(context.account.id, webhookIdIn(context));
  if (webhook === undefined) return context.notFound();
  const { url, description, programs } = webhook;
  const given = { url, description, isAll: programs === null, programs: programs ?? [] };
  return showForm(services, context, { webhook, given });
}

export async function editWebhook(services: WebhookServices, context: AccountForm): Promise<Response> {
  const { account, form, request, viewer, notFound } = context;
  const id = webhookIdIn(context);
  const given = givenFrom(form);
  const again = (errors: FormErrors) => {
    const webhook = services.webhooks.find(account.id, id);
    return webhook === undefined ? notFound() : showForm(services, context, { webhook, given, errors });
  };
  const entry = services.enter(viewer.userId);
  if (entry.kind === 'over-rate') return again({ form: refusalText(entry) });
  const edited = await services.webhooks.edit(byOf(context), id, settingsOf(given), request.signal);
  switch (edited.kind) {
    case 'edited':
      return redirect(paths.webhook(account.id, id), 'webhook-saved');
    case 'no-webhook':
      return notFound();
    case 'unfit':
    case 'unresolved':
      return again({ [edited.field]: `${edited.text}.` });
    default:
      return unreachable(edited);
  }
}

/** A webhook that is edited; or, of a new one, the id of its form, so that the same one is not taken twice. */
type Filling = Readonly<{ given: GivenSettings; webhook?: Webhook; once?: string; errors?: FormErrors }>;

function showForm(
  services: WebhookServices,
  { account, nowMs, show }: AccountContext,
  { given, webhook, once, errors }: Filling,
): Response {
  const list = paths.webhooks(account.id);
  const path = webhook && paths.webhook(account.id, webhook.id);
  return show({
    title: webhook ? 'Edit webhook' : 'Add webhook',
    status: errors && 422,
    crumbs: [['Webhooks', list], ...(webhook && path ? [[hostOf(webhook), path] as const] : [])],
    body: (
      <Panel title="Endpoint and events">
        <PostForm
          action={path ? `${path}/edit` : `${list}/new`}
          button={webhook ? 'Save' : 'Add webhook'}
          kind="primary"
          beside={<Link to={path ?? list}>Cancel</Link>}
          hidden={once === undefined ? {} : { once }}
          errors={errors}
        >
          <TextField
            name="url"
            label="URL"
            type="url"
            value={given.url}
            isRequired
            isCode
            placeholder="https://hooks.example.com/sluice"
            maxLength={2_048}
            hint="Must start with https:// and be reachable from the public internet."
          />
          {urlCheck(`${list}/check`)}
          {programPicker(given, services.programs({}, nowMs), errors?.['programs'])}
          <TextField
            name="description"
            label="Description"
            value={given.description}
            maxLength={DESCRIPTION_CHARACTERS_MAX}
            hint="For your reference only; it is not sent."
          />
        </PostForm>
      </Panel>
    ),
  });
}

/** All programs or chosen ones. With JavaScript the list can be searched; without, it is a list to scroll. */
function programPicker(given: GivenSettings, programs: readonly ProgramShown[], error: string | undefined) {
  const chosen = new Set(given.programs);
  const unwatched = given.programs
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

/** The settings of a webhook as its form sends them. `isAll` and the chosen ones stay as they were when it comes back. */
type GivenSettings = Readonly<{
  url: string;
  description: string;
  isAll: boolean;
  programs: readonly string[];
}>;

function givenFrom(form: URLSearchParams): GivenSettings {
  return {
    url: (form.get('url') ?? '').trim(),
    description: (form.get('description') ?? '').trim(),
    isAll: form.get('programs') !== 'chosen',
    programs: form.getAll('program'),
  };
}

function settingsOf({ url, description, isAll, programs }: GivenSettings): Settings {
  return { url, description, programs: isAll ? null : programs };
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
export async function checkUrl(
  { webhooks, enter }: WebhookServices,
  { form, viewer, request, show }: AccountForm,
): Promise<Response> {
  const url = (form.get('url') ?? '').trim();
  const answer = async (): Promise<readonly [Tone, string] | undefined> => {
    if (url.length < CHECKED_FROM) return undefined;
    const entry = enter(viewer.userId);
    if (entry.kind === 'over-rate') return ['warning', refusalText(entry)];
    const check = await webhooks.check({ url }, request.signal);
    if (check.kind === 'checked') return ['good', 'Valid: uses https and resolves to public addresses.'];
    if (check.kind === 'unfit') return ['bad', `${check.text}.`];
    return ['warning', `${check.text}. Try again in a moment.`];
  };
  const [tone, text] = (await answer()) ?? ['quiet', ''];
  return show({
    title: 'URL check',
    body: (
      <p id="url-check-answer" class={`tone-${tone} check-result`}>
        {text !== '' && <Icon name={tone === 'good' ? 'check' : 'alert'} />}
        {text}
      </p>
    ),
  });
}
