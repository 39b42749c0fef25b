/** @jsxImportSource preact */
import { type ComponentChildren, type ComponentProps, createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { ownPath } from '../paths.ts';
import { type FormErrors, Here, type Returned } from './here.ts';
import { type Crumb, Link } from './links.tsx';
import { Panel } from './panels.tsx';

/** Hands a form that comes back to its fields. */
const ReturnedForm = createContext<Returned>({});

type PostFormProps = Readonly<{
  action: string;
  /** On the button that sends it; readers of screens hear it as the form's name. */
  button: string;
  kind?: ButtonProps['kind'];
  /** Stands beside the button, such as a way back. */
  beside?: ComponentChildren | undefined;
  /** Values that go along unseen, by name. The sender can change them. */
  hidden?: Readonly<Record<string, string | number>> | undefined;
  /** Fields in a row: a single field and its button. */
  isInline?: boolean | undefined;
  children?: ComponentChildren;
}>;

/**
 * A form that changes something. Where it comes back, its errors are listed above the fields, linked to them, and take
 * the focus.
 */
export function PostForm(props: PostFormProps) {
  const { action, button, kind, beside, hidden = {}, isInline, children } = props;
  const { returned } = useContext(Here);
  const form = returned && (returned.action ?? action) === action ? returned : {};
  const submit = <Submit kind={kind}>{button}</Submit>;
  return (
    <form
      method="post"
      action={ownPath(action)}
      class={isInline ? 'form form-inline' : 'form'}
      aria-label={button}
    >
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {errorSummary(form.errors ?? {})}
      <ReturnedForm.Provider value={form}>{children}</ReturnedForm.Provider>
      {isInline ? (
        submit
      ) : (
        <div class="buttons">
          {submit}
          {beside}
        </div>
      )}
    </form>
  );
}

function errorSummary({ form, ...ofFields }: FormErrors) {
  const found = Object.entries(ofFields).filter(([, text]) => text !== undefined);
  if (form === undefined && found.length === 0) return null;
  return (
    <div class="notice tone-bad error-summary" role="alert" tabindex={-1} autofocus>
      <div>
        {form !== undefined && <p>{form}</p>}
        {found.length > 0 && (
          <>
            <strong>Please fix the following:</strong>
            <ul>
              {found.map(([name, text]) => (
                <li>
                  <a href={`#${name}`}>{text}</a>
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </div>
  );
}

type ButtonProps = Readonly<{
  kind?: 'primary' | 'danger' | 'plain' | 'quiet' | undefined;
  children: ComponentChildren;
}>;

/** The button that sends its form. */
export function Submit({ kind = 'plain', children }: ButtonProps) {
  return (
    <button type="submit" class={`button button-${kind}`}>
      {children}
    </button>
  );
}

type ButtonLinkProps = Readonly<{ to: string; text: string; kind?: ButtonProps['kind'] }>;

/** A link styled as a button: it opens a page and changes nothing. */
export function ButtonLink({ to, text, kind = 'plain' }: ButtonLinkProps) {
  return (
    <Link to={to} class={`button button-${kind}`}>
      {text}
    </Link>
  );
}

type FieldProps = Readonly<{
  name: string;
  label: string;
  hint?: ComponentChildren | undefined;
}>;

type TextFieldProps = FieldProps &
  Pick<ComponentProps<'input'>, 'placeholder' | 'autocomplete' | 'maxLength' | 'inputMode'> &
  Readonly<{
    value?: string | undefined;
    type?: 'text' | 'email' | 'password' | 'search' | 'url' | undefined;
    isRequired?: boolean | undefined;
    isCode?: boolean | undefined;
    /** It begins empty however often its form comes back. */
    isEmpty?: boolean;
  }>;

/** A line of text with its label, hint and error. It is filled with what was sent, except passwords and codes. */
export function TextField(props: TextFieldProps) {
  const {
    name,
    label,
    hint,
    value,
    type = 'text',
    isRequired,
    isCode,
    autocomplete = 'off',
    isEmpty = type === 'password' || autocomplete === 'one-time-code',
    ...more
  } = props;
  const { errors, sent } = useContext(ReturnedForm);
  return (
    <Field {...{ name, label, hint }}>
      <input
        {...described(name, hint, errors?.[name])}
        name={name}
        type={type as 'text'} // preact has a type per kind, and they take the same attributes here
        value={isEmpty ? undefined : (sent?.get(name) ?? value)}
        required={isRequired}
        autocomplete={autocomplete}
        {...more}
        spellcheck={false}
        class={isCode ? 'code-input' : undefined}
      />
    </Field>
  );
}

type SelectFieldProps = FieldProps &
  Readonly<{
    value?: string | undefined;
    options: readonly Option[];
  }>;

/** One of a few; a text is its own label. */
type Option = string | readonly [value: string, label: string, ...unknown[]];

/** A choice of a few. */
export function SelectField({ options: given, ...field }: SelectFieldProps) {
  const { errors, sent } = useContext(ReturnedForm);
  const options = given.map((option) => (typeof option === 'string' ? ([option, option] as const) : option));
  const { name, hint } = field;
  const [value = field.value] = options.find(([known]) => known === sent?.get(name)) ?? [];
  return (
    <Field {...field}>
      <select {...described(name, hint, errors?.[name])} name={name}>
        {options.map(([known, text]) => (
          <option value={known} selected={known === value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** A choice of a few to narrow a list by, or none. */
export function filterSelect(name: string, label: string, options: SelectFieldProps['options']) {
  return <SelectField {...{ name, label }} value="" options={[['', 'All'], ...options]} />;
}

function Field({ name, label, hint, children }: FieldProps & Readonly<{ children?: ComponentChildren }>) {
  const error = useContext(ReturnedForm).errors?.[name];
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
  value: string;
  isChecked: boolean;
}>;

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
  legend: string;
  value: string | undefined;
  options: readonly Readonly<{ value: string; label: string; hint?: string }>[];
}>;

/** One of a few options, all visible. */
export function RadioFields({ name, legend, value, options }: RadioFieldsProps) {
  return (
    <fieldset class="radios">
      <legend>{legend}</legend>
      {options.map((option) => (
        <label class="choice">
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

/** A panel that is a form. */
export function FormPanel({ title, id, isDanger, ...form }: PostFormProps & PanelHead) {
  return (
    <Panel {...{ title, id, isDanger }}>
      <PostForm {...form} />
    </Panel>
  );
}

type PanelHead = Pick<ComponentProps<typeof Panel>, 'title' | 'id' | 'isDanger'>;

/** `phrase` is what must be typed, letter by letter: the name of what will be gone. */
type ConfirmProps = Pick<PostFormProps, 'action' | 'button' | 'children'> &
  PanelHead &
  Readonly<{ phrase: string }>;

/** A panel for what cannot be undone. The phrase is checked by the server (`unconfirmed`), so it holds without JavaScript. */
export function ConfirmPanel({ phrase, children, ...form }: ConfirmProps) {
  const label = `Type ${phrase} to confirm`;
  return (
    <FormPanel {...form} kind="danger" isDanger>
      <div>
        <p>{children}</p>
      </div>
      <TextField name="confirm" label={label} isRequired isCode isEmpty maxLength={200} />
    </FormPanel>
  );
}

/** Refuses a form in which the phrase was not typed; blanks around it do not count. */
export function unconfirmed(form: URLSearchParams, phrase: string): { errors: FormErrors } | undefined {
  if (form.get('confirm')?.trim() === phrase.trim()) return undefined;
  return { errors: { confirm: `Type ${phrase} to confirm.` } };
}

/** `isFiltered` says whether there is something to clear. */
type FiltersProps = Readonly<{ isFiltered: boolean; errors?: FormErrors; children: ComponentChildren }>;

/** A form that narrows a list by its address, which fills its fields, so that a filtered list can be linked and kept. */
export function Filters({ isFiltered, errors, children }: FiltersProps) {
  const { pathname: path, searchParams: sent } = useContext(Here).url;
  return (
    <form method="get" action={ownPath(path)} class="filters" role="search" aria-label="Filter">
      <ReturnedForm.Provider value={{ errors, sent }}>{children}</ReturnedForm.Provider>
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

/**
 * The id of a form, its hidden field `once`: however often the form is sent, it takes effect once. A form that comes
 * back keeps its own.
 */
export function formIdFor(
  { returned }: Readonly<{ returned?: Returned | undefined }>,
  random: (bytes: number) => Uint8Array,
): string {
  const sent = returned?.sent && formIdFrom(returned.sent);
  return sent ?? Buffer.from(random(FORM_ID_BYTES)).toString('base64url');
}

/** Refuses a form without an id, or with an altered one. */
export const INCOMPLETE_FORM = { errors: { form: 'The form was incomplete. Please try again.' } };

/** The id of a form that was sent; `undefined`: it has none from `formIdFor`. */
export function formIdFrom(form: URLSearchParams): string | undefined {
  const id = form.get('once');
  return id !== null && FORM_ID.test(id) ? id : undefined;
}

/** A page whose content is one form. */
type FormPage = PostFormProps &
  Readonly<{
    title: string;
    crumbs?: readonly Crumb[];
    /** The heading of its panel, if it has one. */
    panel?: string;
    above?: ComponentChildren;
    below?: ComponentChildren;
  }>;

/** The content of a page that is one form. */
export function formContent({ title, crumbs, panel, above, below, ...form }: FormPage) {
  return { title, crumbs, body: [above, <FormPanel title={panel} kind="primary" {...form} />, below] };
}
