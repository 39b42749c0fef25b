import type { ComponentChildren } from 'preact';
import type { Crumb } from '../../console/components/links.tsx';

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
