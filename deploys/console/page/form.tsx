/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { ownPath } from '../own-path.ts';
import { Link } from './link.tsx';

/** What is wrong with a form, by the name of its field; `form` for the form as a whole. */
export type FormErrors = Readonly<Record<string, string | undefined>>;

type PostFormProps = Readonly<{
  /** A path of the console. */
  action: string;
  errors?: FormErrors | undefined;
  /** Fields in a row: a single field and its button. */
  isInline?: boolean | undefined;
  /** Names the form to readers of screens when a page has several alike. */
  label?: string | undefined;
  children: ComponentChildren;
}>;

/** A form that changes something. What was wrong stands above the fields, in links to them, and takes the focus. */
export function PostForm({ action, errors, isInline, label, children }: PostFormProps) {
  return (
    <form
      method="post"
      action={ownPath(action)}
      class={isInline ? 'form form-inline' : 'form'}
      aria-label={label}
    >
      {errors && <ErrorSummary errors={errors} />}
      {children}
    </form>
  );
}

function ErrorSummary({ errors }: Readonly<{ errors: FormErrors }>) {
  const found = Object.entries(errors).filter(([, text]) => text !== undefined);
  if (found.length === 0) return null;
  return (
    <div class="notice tone-bad error-summary" role="alert" tabindex={-1} autofocus>
      <div>
        <strong>Nothing was changed.</strong>
        <ul>
          {found.map(([name, text]) => (
            <li key={name}>{name === 'form' ? text : <a href={`#${name}`}>{text}</a>}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

type ButtonProps = Readonly<{
  kind?: 'primary' | 'danger' | 'plain' | 'quiet' | undefined;
  /** Sent with the form when this button is pressed. */
  name?: string | undefined;
  value?: string | undefined;
  /** Says more than the words on it, where several say the same. */
  label?: string | undefined;
  children: ComponentChildren;
}>;

/** The button that sends the form it stands in. */
export function Submit({ kind = 'plain', name, value, label, children }: ButtonProps) {
  return (
    <button type="submit" class={`button button-${kind}`} name={name} value={value} aria-label={label}>
      {children}
    </button>
  );
}

/** A link that looks like a button: it opens a page and changes nothing. */
export function ButtonLink({
  to,
  kind = 'plain',
  children,
}: Pick<ButtonProps, 'kind' | 'children'> & Readonly<{ to: string }>) {
  return (
    <Link to={to} class={`button button-${kind}`}>
      {children}
    </Link>
  );
}

/** A value that goes along with a form unseen. It can be changed by whoever sends it. */
export function Hidden({ name, value }: Readonly<{ name: string; value: string }>) {
  return <input type="hidden" name={name} value={value} />;
}

/** The row of buttons at a form's end. */
export function Buttons({ children }: Readonly<{ children: ComponentChildren }>) {
  return <div class="buttons">{children}</div>;
}
