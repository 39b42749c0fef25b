/** @jsxImportSource preact */
import { unreachable } from '../../../../shared/brand.ts';
import { byOf } from '../../by.ts';
import { shortened } from '../../components/code.tsx';
import {
  Buttons,
  CheckField,
  type FormErrors,
  PostForm,
  RadioFields,
  Submit,
  TextField,
} from '../../components/forms.tsx';
import { Icon, type Tone } from '../../components/icons.tsx';
import { Link } from '../../components/links.tsx';
import { Panel } from '../../components/panels.tsx';
import type { Action, AskedOfAccount, Page } from '../../context.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { showSecret } from './webhook-actions.tsx';
import { hostOf, refusalText } from './webhooks.tsx';
import { ownPath, webhookPath, webhooksPath } from '../../paths.ts';
import { seeOther } from '../../redirect.ts';
import type { Answers } from '../../router.ts';
import type { ProgramShown } from '../../../programs/list.ts';
import { type Check, DESCRIPTION_CHARACTERS_MAX, type Settings } from '../../../webhooks/settings.ts';

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

type SettingsFormProps = Readonly<{
  action: string;
  /** Where URLs are checked while they are typed. */
  checkPath: string;
  given: GivenSettings;
  errors?: FormErrors | undefined;
  programs: readonly ProgramShown[];
  /** Names the form, so that the same one is not taken twice. */
  once?: string;
  button: string;
  back: string;
}>;

/** What a customer sets of a webhook. */
export function SettingsForm(props: SettingsFormProps) {
  const { action, checkPath, given, errors, programs, once, button, back } = props;
  return (
    <PostForm action={action} errors={errors} label="Webhook">
      <TextField
        name="url"
        label="URL"
        type="url"
        value={given.url}
        isRequired
        isCode
        placeholder="https://hooks.example.com/sluice"
        maxLength={2_048}
        hint="Begins with https:// and can be reached from the public internet."
        error={errors?.['url']}
      />
      <UrlCheck path={checkPath} />
      <ProgramPicker given={given} programs={programs} error={errors?.['programs']} />
      <TextField
        name="description"
        label="Description"
        value={given.description}
        maxLength={DESCRIPTION_CHARACTERS_MAX}
        hint="For yourself; it is not sent."
        error={errors?.['description']}
      />
      <Buttons>
        <Submit kind="primary">{button}</Submit>
        <Link to={back}>Cancel</Link>
      </Buttons>
      {once !== undefined && <input type="hidden" name="once" value={once} />}
    </PostForm>
  );
}

type PickerProps = Readonly<{
  given: GivenSettings;
  programs: readonly ProgramShown[];
  error?: string | undefined;
}>;

/** All programs or chosen ones. With JavaScript the list can be searched; without, it is a list to scroll. */
export function ProgramPicker({ given, programs, error }: PickerProps) {
  const chosen = new Set(given.programs);
  const unwatched = given.programs.filter(
    (address) => !programs.some(({ programId }) => programId === address),
  );
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
            hint: 'Also those that are added later.',
          },
          { value: 'chosen', label: 'Chosen programs' },
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
          <legend class="hidden">Chosen programs</legend>
          {chosenFirst.map(({ programId, label }) => (
            <CheckField
              key={programId}
              name="program"
              value={programId}
              isChecked={chosen.has(programId)}
              label={<Name label={label} address={programId} />}
            />
          ))}
          {unwatched.map((address) => (
            <CheckField
              key={address}
              name="program"
              value={address}
              isChecked
              label={<Name label="No longer watched" address={address} />}
            />
          ))}
        </fieldset>
      </div>
    </div>
  );
}

/** The whole address can be searched for, though its ends are what is shown. */
function Name({ label, address }: Readonly<{ label: string; address: string }>) {
  return (
    <span data-text={`${label} ${address}`.toLowerCase()}>
      {label} <code class="soft">{shortened(address)}</code>
    </span>
  );
}

/** The settings of a webhook as its form sends them. `isAll` and the chosen ones stay as they were when it comes back. */
export type GivenSettings = Readonly<{
  url: string;
  description: string;
  isAll: boolean;
  programs: readonly string[];
}>;

/** Nothing filled in; with a program, that one chosen. */
export function emptySettings(program?: string): GivenSettings {
  const programs = program === undefined ? [] : [program];
  return { url: '', description: '', isAll: program === undefined, programs };
}

/** What a form says. Blanks around the URL come from copying. */
export function givenFrom(form: URLSearchParams): GivenSettings {
  return {
    url: (form.get('url') ?? '').trim(),
    description: (form.get('description') ?? '').trim(),
    isAll: form.get('programs') !== 'chosen',
    programs: form.getAll('program'),
  };
}

/** What the service is asked for. */
export function settingsOf({ url, description, isAll, programs }: GivenSettings): Settings {
  return { url, description, programs: isAll ? null : programs };
}

/** Characters before a URL is worth a look: "https://a.b". */
const LOOKED_AT_FROM = 11;

/** Says under the field how the URL fares while it is typed. Without JavaScript it is checked when it is sent. */
export function UrlCheck({ path }: Readonly<{ path: string }>) {
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

/** Checks a URL as the service does when a webhook is made, and makes nothing. POST, because a URL may hold a secret. */
export function urlCheckAction({ webhooks, enter }: WebhookPageDeps): Action<AskedOfAccount> {
  return async function checkUrl({ form, viewer, request, show }) {
    const url = (form.get('url') ?? '').trim();
    const answer = async (): Promise<readonly [Tone, string] | undefined> => {
      if (url.length < LOOKED_AT_FROM) return undefined;
      const entry = enter(viewer.userId);
      if (entry.kind === 'over-rate') return ['warning', refusalText(entry)];
      return toldOf(await webhooks.check({ url }, request.signal));
    };
    const [tone, text] = (await answer()) ?? ['quiet', ''];
    return show({
      title: 'Check of a URL',
      body: (
        <p id="url-check-answer" class={`tone-${tone} told`}>
          {text !== '' && <Icon name={tone === 'good' ? 'check' : 'alert'} />}
          {text}
        </p>
      ),
    });
  };
}

function toldOf(check: Check): readonly [Tone, string] {
  switch (check.kind) {
    case 'checked':
      return ['good', 'https, resolves, and every address is public.'];
    case 'unfit':
      return ['bad', `${check.text}.`];
    case 'unresolved':
      return ['warning', `${check.text}. It may be known in a moment.`];
    default:
      return unreachable(check);
  }
}
