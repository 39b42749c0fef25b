/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { unreachable } from '../../../../shared/brand.ts';
import { type FormErrors, Hidden, PostForm, Submit, TextField } from '../../components/forms.tsx';
import { Notice } from '../../components/icons.tsx';
import type { TooMany } from '../../../auth/login.ts';
import { type Busy, PASSWORD_CHARACTERS } from '../../../auth/passwords.ts';

/**
 * Why a form comes back: what to say, at which of its fields if at one, with which status, and when to try again (whole
 * seconds). The last two are members of a page's content.
 */
export type FormRefusal = Readonly<{
  sentence: string;
  status: number;
  field?: string | undefined;
  retryAfterSeconds?: number;
}>;

/** Why it is not tried at all. */
export function notTried(result: TooMany | Busy): FormRefusal {
  switch (result.kind) {
    case 'too-many': {
      const { retryAfterSeconds } = result;
      const wait =
        retryAfterSeconds < 120
          ? `${retryAfterSeconds} seconds`
          : `${Math.ceil(retryAfterSeconds / 60)} minutes`;
      return { sentence: `Too many attempts. Try again in ${wait}.`, status: 429, retryAfterSeconds };
    }
    case 'busy':
      return {
        sentence: 'Too many people log in at this moment. Try again in a few seconds.',
        status: 503,
        retryAfterSeconds: 2,
      };
    default:
      return unreachable(result);
  }
}

/** What is said at a field. */
export function errorAt(refusal: FormRefusal | undefined, field: string): string | undefined {
  return refusal?.field === field ? refusal.sentence : undefined;
}

/** A field of a form as text; at most what a body can hold. */
export function field(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}

/** What one comes to before one is signed in: a single form on a card. */
export function Card({ children }: Readonly<{ children: ComponentChildren }>) {
  return (
    <div class="panel">
      <div class="panel-body">{children}</div>
    </div>
  );
}

/** What went wrong with a form as a whole, said aloud by screen readers. */
export function Complaint({ refusal }: Readonly<{ refusal: FormRefusal | undefined }>) {
  if (refusal === undefined || refusal.field !== undefined) return null;
  return (
    <Notice tone="bad" role="alert">
      {refusal.sentence}
    </Notice>
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
  refusal,
}: Readonly<{ label?: string; refusal: FormRefusal | undefined }>) {
  const { min, max } = PASSWORD_CHARACTERS;
  return (
    <Field
      name="new-password"
      label={label}
      type="password"
      autocomplete="new-password"
      hint={`${min} to ${max} characters; a few words in a row are good.`}
      error={errorAt(refusal, 'new-password')}
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
