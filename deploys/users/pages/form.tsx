/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { type FormErrors, Hidden, PostForm, Submit, TextField } from '../../console/components/forms.tsx';
import { Icon } from '../../console/components/icons.tsx';
import { PASSWORD_CHARACTERS } from '../password-rules.ts';

/** What one comes to before one is signed in: a single form on a card. */
export function Card({ children }: Readonly<{ children: ComponentChildren }>) {
  return (
    <div class="panel">
      <div class="panel-body">{children}</div>
    </div>
  );
}

/** What went wrong with a form as a whole, said aloud by screen readers. */
export function Complaint({ sentence }: Readonly<{ sentence: string | undefined }>) {
  if (sentence === undefined) return null;
  return (
    <div class="notice tone-bad" role="alert">
      <Icon name="cross" />
      <div>{sentence}</div>
    </div>
  );
}

type FieldProps = Readonly<{
  name: string;
  label: string;
  type?: 'email' | 'password' | 'text';
  autocomplete: string;
  value?: string;
  hint?: string;
  /** What is wrong with what was typed. */
  error?: string | undefined;
}>;

/** A labelled field that must be filled. */
export function Field(props: FieldProps) {
  return <TextField {...props} isRequired />;
}

/** The field of a password that is made here; the rule stands beside it. */
export function NewPassword({
  label = 'Password',
  error,
}: Readonly<{ label?: string; error?: string | undefined }>) {
  const { min, max } = PASSWORD_CHARACTERS;
  const hint = `${min} to ${max} characters; a few words in a row are good.`;
  return (
    <Field
      name="new-password"
      label={label}
      type="password"
      autocomplete="new-password"
      hint={hint}
      error={error}
    />
  );
}

type FormProps = Readonly<{
  action: string;
  button: string;
  kind?: 'primary' | 'plain' | 'danger';
  children?: ComponentChildren;
  /** Fields that go along unseen. */
  hidden?: Readonly<Record<string, string>>;
  errors?: FormErrors | undefined;
}>;

/** A form that is posted to a path of the console. */
export function Form({ action, button, kind = 'primary', children, hidden = {}, errors }: FormProps) {
  return (
    <PostForm action={action} errors={errors}>
      {Object.entries(hidden).map(([name, value]) => (
        <Hidden name={name} value={value} key={name} />
      ))}
      {children}
      <Submit kind={kind}>{button}</Submit>
    </PostForm>
  );
}
