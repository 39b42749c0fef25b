/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';

type Shared = Readonly<{
  /** The field's name in the form; its id on the page. */
  name: string;
  label: string;
  hint?: ComponentChildren | undefined;
  /** What is wrong with the value that was sent. */
  error?: string | undefined;
}>;

type TextFieldProps = Shared &
  Readonly<{
    value?: string | undefined;
    type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'url' | 'date' | undefined;
    isRequired?: boolean | undefined;
    placeholder?: string | undefined;
    /** As HTML names it; `off` unless told otherwise. */
    autocomplete?: string | undefined;
    maxLength?: number | undefined;
    min?: number | undefined;
    max?: number | undefined;
    inputMode?: 'numeric' | 'text' | undefined;
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
        min={props.min}
        max={props.max}
        inputMode={props.inputMode}
        spellcheck={false}
        class={isCode ? 'code-input' : undefined}
      />
    </Field>
  );
}

type SelectFieldProps = Shared &
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

function Field({ name, label, hint, error, children }: Shared & Readonly<{ children: ComponentChildren }>) {
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
