/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { Link } from './links.tsx';
import { Panel } from './panels.tsx';
import { ownPath } from '../paths.ts';

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
  children: ComponentChildren;
}>;

/** The button that sends the form it stands in. */
export function Submit({ kind = 'plain', children }: ButtonProps) {
  return (
    <button type="submit" class={`button button-${kind}`}>
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

/** A value that goes along with a form unseen. The sender can change it. */
export function Hidden({ name, value }: Readonly<{ name: string; value: string }>) {
  return <input type="hidden" name={name} value={value} />;
}

/** The row of buttons at a form's end. */
export function Buttons({ children }: Readonly<{ children: ComponentChildren }>) {
  return <div class="buttons">{children}</div>;
}

type FieldProps = Readonly<{
  /** The field's name in the form; its id on the page. */
  name: string;
  label: string;
  hint?: ComponentChildren | undefined;
  /** What is wrong with the value that was sent. */
  error?: string | undefined;
}>;

type TextFieldProps = FieldProps &
  Readonly<{
    value?: string | undefined;
    type?: 'text' | 'email' | 'password' | 'search' | 'url' | undefined;
    isRequired?: boolean | undefined;
    placeholder?: string | undefined;
    /** As HTML names it; `off` by default. */
    autocomplete?: string | undefined;
    maxLength?: number | undefined;
    inputMode?: 'numeric' | undefined;
    isCode?: boolean | undefined;
  }>;

/** A line of text with its label, hint and error. */
export function TextField(props: TextFieldProps) {
  const { name, label, hint, error, value, type = 'text', isRequired, isCode } = props;
  return (
    <Field name={name} label={label} hint={hint} error={error}>
      <input
        {...described(name, hint, error)}
        name={name}
        type={type as 'text'} // preact has a type per kind, and they take the same attributes here
        value={value}
        required={isRequired}
        placeholder={props.placeholder}
        autocomplete={props.autocomplete ?? 'off'}
        maxLength={props.maxLength}
        inputMode={props.inputMode}
        spellcheck={false}
        class={isCode ? 'code-input' : undefined}
      />
    </Field>
  );
}

type SelectFieldProps = FieldProps &
  Readonly<{
    value?: string | undefined;
    options: readonly Readonly<{ value: string; label: string }>[];
  }>;

/** A choice of a few. */
export function SelectField({ name, label, hint, error, value, options }: SelectFieldProps) {
  return (
    <Field name={name} label={label} hint={hint} error={error}>
      <select {...described(name, hint, error)} name={name}>
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={option.value === value}>
            {option.label}
          </option>
        ))}
      </select>
    </Field>
  );
}

type FilterSelectProps = Readonly<{
  name: string;
  label: string;
  value: string | undefined;
  options: SelectFieldProps['options'];
  /** Said of no choice. */
  all?: string;
}>;

/** A choice of a few to narrow a list by, or none. */
export function FilterSelect({ value = '', options, all = 'Any', ...field }: FilterSelectProps) {
  return <SelectField {...field} value={value} options={[{ value: '', label: all }, ...options]} />;
}

function Field({
  name,
  label,
  hint,
  error,
  children,
}: FieldProps & Readonly<{ children: ComponentChildren }>) {
  return (
    <div class={error === undefined ? 'field' : 'field field-wrong'}>
      <label for={name}>{label}</label>
      {children}
      {hint !== undefined && (
        <p class="field-hint" id={`${name}-hint`}>
          {hint}
        </p>
      )}
      {error !== undefined && (
        <p class="field-error" id={`${name}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** The error is read before the hint: it is what the viewer came back for. */
function described(name: string, hint: unknown, error: string | undefined) {
  const ids = [error !== undefined && `${name}-error`, hint !== undefined && `${name}-hint`].filter(Boolean);
  return {
    id: name,
    'aria-invalid': error === undefined ? undefined : ('true' as const), // one of ARIA's own words
    'aria-describedby': ids.length === 0 ? undefined : ids.join(' '),
  };
}

type CheckFieldProps = Readonly<{
  name: string;
  label: ComponentChildren;
  /** What is sent when it is ticked. */
  value: string;
  isChecked?: boolean | undefined;
}>;

/** A box to tick. */
export function CheckField({ name, label, value, isChecked }: CheckFieldProps) {
  return (
    <label class="choice">
      <input type="checkbox" name={name} value={value} checked={isChecked} />
      <span>{label}</span>
    </label>
  );
}

type RadioFieldsProps = Readonly<{
  name: string;
  /** What is chosen. */
  legend: string;
  value: string | undefined;
  options: readonly Readonly<{ value: string; label: string; hint?: string }>[];
}>;

/** One of a few, all of them seen at once. */
export function RadioFields({ name, legend, value, options }: RadioFieldsProps) {
  return (
    <fieldset class="radios">
      <legend>{legend}</legend>
      {options.map((option) => (
        <label key={option.value} class="choice">
          <input type="radio" name={name} value={option.value} checked={option.value === value} />
          <span>
            {option.label}
            {option.hint && <span class="field-hint">{option.hint}</span>}
          </span>
        </label>
      ))}
    </fieldset>
  );
}

type ActionProps = Readonly<{
  title: string;
  action: string;
  /** Names the form to readers of screens when a page has several alike. */
  label?: string | undefined;
  button: string;
  kind?: ButtonProps['kind'];
  /** What will happen. */
  children: ComponentChildren;
}>;

/** A panel with one button that changes something. */
export function ActionPanel({ title, action, label, button, kind, children }: ActionProps) {
  return (
    <Panel title={title}>
      <PostForm action={action} label={label}>
        <p>{children}</p>
        <div>
          <Submit kind={kind}>{button}</Submit>
        </div>
      </PostForm>
    </Panel>
  );
}

type ConfirmProps = Omit<ActionProps, 'label' | 'kind'> &
  Readonly<{
    id?: string | undefined;
    /** What must be typed, letter by letter: the name of what will be gone. */
    phrase: string;
    errors?: FormErrors | undefined;
  }>;

/** A panel for what cannot be undone. The phrase is checked by the server (`isConfirmed`), so it holds without JavaScript. */
export function ConfirmPanel({ title, id, action, phrase, button, errors, children }: ConfirmProps) {
  return (
    <Panel title={title} id={id} isDanger>
      <PostForm action={action} errors={errors}>
        <div>
          <p>{children}</p>
        </div>
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
    </Panel>
  );
}

/** Whether the phrase was typed; blanks around it do not count. */
export function isConfirmed(form: URLSearchParams, phrase: string): boolean {
  return form.get('confirm')?.trim() === phrase.trim();
}

type FiltersProps = Readonly<{
  /** The list's own path, without a query. */
  path: string;
  /** Something is filtered, so there is something to clear. */
  isFiltered: boolean;
  children: ComponentChildren;
}>;

/** A form that narrows a list by its address, so that a filtered list can be linked and kept. */
export function Filters({ path, isFiltered, children }: FiltersProps) {
  return (
    <form method="get" action={ownPath(path)} class="filters" role="search" aria-label="Filter">
      {children}
      <div class="filters-buttons">
        <button type="submit" class="button">
          Filter
        </button>
        {isFiltered && <Link to={path}>Clear</Link>}
      </div>
    </form>
  );
}

const FORM_ID_BYTES = 16;
const FORM_ID = /^[\w-]{22}$/;

/** The field that a form's id goes in. */
export const FORM_ID_FIELD = 'once';

/** A name for one form on one page, so that what it asks for is done once, however often it is sent. `random` gives n uniform bytes. */
export function newFormId(random: (bytes: number) => Uint8Array): string {
  return Buffer.from(random(FORM_ID_BYTES)).toString('base64url');
}

/** The id of a form that was sent; `undefined`: it has none that was made here. */
export function formIdFrom(form: URLSearchParams): string | undefined {
  const id = form.get(FORM_ID_FIELD);
  return id !== null && FORM_ID.test(id) ? id : undefined;
}
