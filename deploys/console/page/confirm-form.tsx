/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { TextField } from './field.tsx';
import { type FormErrors, PostForm, Submit } from './form.tsx';

type ConfirmFormProps = Readonly<{
  action: string;
  /** What must be typed, letter by letter: the name of what will be gone. */
  phrase: string;
  /** What will happen, and that it cannot be undone. */
  children: ComponentChildren;
  button: string;
  errors?: FormErrors | undefined;
}>;

/** A form for what cannot be undone. The phrase is checked by the server (`isConfirmed`), so it holds without JavaScript. */
export function ConfirmForm({ action, phrase, children, button, errors }: ConfirmFormProps) {
  return (
    <PostForm action={action} errors={errors}>
      <div>{children}</div>
      <TextField
        name="confirm"
        label={`Type ${phrase} to confirm`}
        isRequired
        isCode
        error={errors?.['confirm']}
        maxLength={200}
      />
      <Submit kind="danger">{button}</Submit>
    </PostForm>
  );
}

/** Whether the phrase was typed; blanks around it do not count. */
export function isConfirmed(form: URLSearchParams, phrase: string): boolean {
  return form.get('confirm')?.trim() === phrase.trim();
}
