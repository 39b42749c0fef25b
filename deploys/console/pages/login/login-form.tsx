/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { unreachable } from '../../../../shared/brand.ts';
import { type FormErrors, Hidden, PostForm, Submit, TextField } from '../../components/forms.tsx';
import { Icon } from '../../components/icons.tsx';
import type { Crumb } from '../../components/links.tsx';
import type { Busy } from '../../../users/hashing.ts';
import type { TooMany } from '../../../users/login.ts';
import { PASSWORD_CHARACTERS } from '../../../users/password-rules.ts';

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

/**
 * Why a form comes back: what to say, at which of its fields if at one, with which status, and when to try again (whole
 * seconds).
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

/** The answer with the refusal's status and `Retry-After`. */
export function refused(response: Response, { retryAfterSeconds }: FormRefusal): Response {
  if (retryAfterSeconds !== undefined) response.headers.set('retry-after', String(retryAfterSeconds));
  return response;
}

/** What is said at a field. */
export function errorAt(refusal: FormRefusal | undefined, field: string): string | undefined {
  return refusal?.field === field ? refusal.sentence : undefined;
}

/** What is said of the form as a whole. */
export function errorOfForm(refusal: FormRefusal | undefined): string | undefined {
  return refusal?.field === undefined ? refusal?.sentence : undefined;
}

/** What a page puts into the document; `status` is 200 unless told otherwise. */
export type Content = Readonly<{
  title: string;
  body: ComponentChildren;
  status?: number;
  /** The way here, without the page itself. */
  crumbs?: readonly Crumb[];
}>;

/** What a page is asked with: the part of the console's own `Asked` that these pages need. */
export type Asked = Readonly<{
  request: Request;
  url: URL;
  /** The content in the console's document. */
  show(content: Content): Response;
}>;

/** With the fields of a form that came from a page of the console. */
export type Filled = Asked & Readonly<{ form: URLSearchParams }>;

type Answer = Response | Promise<Response>;

/** One address of the login and the settings. Everybody may ask; a page looks at the session by itself. */
export type PersonPage = Readonly<{
  path: string;
  get?: (asked: Asked) => Answer;
  post?: (asked: Filled) => Answer;
}>;

/** A field of a form as text; at most what a body can hold. */
export function field(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}
