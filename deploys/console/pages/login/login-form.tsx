/** @jsxImportSource preact */
import type { ComponentChildren } from 'preact';
import { unreachable } from '../../../../shared/brand.ts';
import { type FormErrors, TextField } from '../../components/forms.tsx';
import type { TooMany } from '../../../auth/login.ts';
import { type Busy, PASSWORD_CHARACTERS } from '../../../auth/passwords.ts';

/** Why a form comes back: its errors, the status, and when to try again; the last two are members of `Content`. */
export type FormRefusal = Readonly<{ errors: FormErrors; status: number; retryAfterSeconds?: number }>;

/** Why an attempt is rejected unseen. */
export function notTried(result: TooMany | Busy): FormRefusal {
  switch (result.kind) {
    case 'too-many': {
      const { retryAfterSeconds } = result;
      const wait =
        retryAfterSeconds < 120
          ? `${retryAfterSeconds} seconds`
          : `${Math.ceil(retryAfterSeconds / 60)} minutes`;
      const form = `Too many attempts. Try again in ${wait}.`;
      return { errors: { form }, status: 429, retryAfterSeconds };
    }
    case 'busy':
      return {
        errors: { form: 'Too many sign-ins in progress. Try again in a few seconds.' },
        status: 503,
        retryAfterSeconds: 2,
      };
    default:
      return unreachable(result);
  }
}

/** A field of a form as text; at most what a body can hold. */
export function field(form: URLSearchParams, name: string): string {
  return form.get(name) ?? '';
}

/** The single form of a page before sign-in. */
export function Card({ children }: Readonly<{ children: ComponentChildren }>) {
  return (
    <div class="panel">
      <div class="panel-body">{children}</div>
    </div>
  );
}

export function EmailField() {
  return <TextField name="email" label="Email" type="email" autocomplete="username" isRequired />;
}

export function CodeField({ hint }: Readonly<{ hint?: string }>) {
  return <TextField name="code" label="Code" autocomplete="one-time-code" hint={hint} isRequired />;
}

/** The field of the current password. */
export function PasswordField({ label = 'Password' }: Readonly<{ label?: string }>) {
  return (
    <TextField name="password" label={label} type="password" autocomplete="current-password" isRequired />
  );
}

/** The field of a new password, with its rule. */
export function NewPasswordField({ label = 'Password' }: Readonly<{ label?: string }>) {
  const { min, max } = PASSWORD_CHARACTERS;
  return (
    <TextField
      name="new-password"
      label={label}
      type="password"
      autocomplete="new-password"
      hint={`${min}–${max} characters. A passphrase works well.`}
      isRequired
    />
  );
}
