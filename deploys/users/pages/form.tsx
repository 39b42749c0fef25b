/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { PASSWORD_CHARACTERS } from '../password-rules.ts';

/** What went wrong with a form, said aloud by screen readers. */
export function Complaint({ sentence }: Readonly<{ sentence: string | undefined }>) {
  if (sentence === undefined) return null;
  return (
    <p class="complaint" role="alert">
      {sentence}
    </p>
  );
}

type FieldProps = Readonly<{
  name: string;
  label: string;
  type?: 'email' | 'password' | 'text';
  autocomplete: string;
  value?: string;
  hint?: string;
}>;

/** A labelled field that must be filled. */
export function Field({ name, label, type = 'text', autocomplete, value = '', hint }: FieldProps) {
  const hintId = hint === undefined ? undefined : `${name}-hint`;
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        // The types know each kind of input apart and no union of them.
        type={type as 'text'}
        value={value}
        autocomplete={autocomplete}
        required
        {...(hintId && { 'aria-describedby': hintId })}
      />
      {hintId && (
        <p class="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** The field of a password that is made here; the rule stands beside it. */
export function NewPassword({ label = 'Password' }: Readonly<{ label?: string }>) {
  const { min, max } = PASSWORD_CHARACTERS;
  const hint = `${min} to ${max} characters; a few words in a row are good.`;
  return <Field name="new-password" label={label} type="password" autocomplete="new-password" hint={hint} />;
}

type FormProps = Readonly<{
  action: string;
  button: string;
  children?: ComponentChildren;
  /** Fields that go along unseen. */
  hidden?: Readonly<Record<string, string>>;
}>;

/** A form that is posted to a path of the console. */
export function Form({ action, button, children, hidden = {} }: FormProps) {
  return (
    <form method="post" action={action} class="stack">
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} key={name} />
      ))}
      {children}
      <button type="submit">{button}</button>
    </form>
  );
}
