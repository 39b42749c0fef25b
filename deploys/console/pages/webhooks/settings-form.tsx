/** @jsxImportSource preact */
import type { ProgramShown } from '../../../programs/list.ts';
import { DESCRIPTION_CHARACTERS_MAX } from '../../../webhooks/settings.ts';
import { Buttons, type FormErrors, PostForm, Submit, TextField } from '../../components/forms.tsx';
import { Link } from '../../components/links.tsx';
import type { GivenSettings } from './given.ts';
import { ProgramPicker } from './program-picker.tsx';
import { UrlCheck } from './url-check.tsx';

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
