import { createContext } from 'preact';

/** Complaints about a form, by the name of its field; `form` for the form as a whole. */
export type FormErrors = Readonly<Record<string, string | undefined>>;

/** A form that comes back. */
export type Returned = Readonly<{
  errors?: FormErrors | undefined;
  /** A sentence for the page, where the form has no field for it. */
  notice?: string | undefined;
  /** Where it was sent, which finds it among the forms of its page; without it, it is the only one. */
  action?: string | undefined;
  /** The form as it was sent, which fills its fields again. */
  sent?: URLSearchParams | undefined;
}>;

/** Tells the parts of a page about it: its address, when it was asked for, and its form that comes back. */
export const Here = createContext<Readonly<{ url: URL; nowMs: number; returned?: Returned | undefined }>>({
  url: new URL('http://localhost/'),
  nowMs: 0,
});
