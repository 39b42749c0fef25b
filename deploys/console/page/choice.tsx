/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';

type CheckFieldProps = Readonly<{
  name: string;
  label: ComponentChildren;
  /** What is sent when it is ticked. */
  value?: string | undefined;
  isChecked?: boolean | undefined;
  isRequired?: boolean | undefined;
}>;

/** A box to tick. */
export function CheckField({ name, label, value = 'on', isChecked, isRequired }: CheckFieldProps) {
  return (
    <label class="choice">
      <input type="checkbox" name={name} value={value} checked={isChecked} required={isRequired} />
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
