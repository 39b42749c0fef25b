import type { ComponentChildren } from 'preact';
import type { Crumb } from './components/links.tsx';
import type { Viewer } from '../users/viewer.ts';

/** The account a page is about. `plan` is `undefined` for the program API alone. */
export type PageAccount = Readonly<{ id: number; name: string; plan: string | undefined }>;

/** What a page puts into the document. */
export type Content = Readonly<{
  /** The page's one `h1` and the window's title. Plain text. */
  title: string;
  body: ComponentChildren;
  /** What stands beside the title, such as a button. */
  aside?: ComponentChildren | undefined;
  /** The way here, without the page itself. */
  crumbs?: readonly Crumb[] | undefined;
  /** 200 unless told otherwise; 422 for a form that comes back with errors. */
  status?: number | undefined;
}>;

/** What every page is asked with. */
export type Asked = Readonly<{
  request: Request;
  url: URL;
  /** The named parts of the path, decoded. */
  params: Readonly<Record<string, string>>;
  nowMs: number;
  /** `undefined`: nobody is signed in. */
  viewer: Viewer | undefined;
  account?: PageAccount | undefined;
  /** The content in the console's document, as an answer. */
  show(content: Content): Response;
  /** The calm page of a thing that is not there, or not the viewer's. */
  notFound(): Response;
}>;

/** Asked by somebody who is signed in. */
export type AskedByViewer = Asked & Readonly<{ viewer: Viewer }>;
/** Asked about an account that exists and that the viewer may see. */
export type AskedOfAccount = AskedByViewer & Readonly<{ account: PageAccount }>;
/** The fields of a form that came from one of the console's own pages. */
export type Filled = Readonly<{ form: URLSearchParams }>;

/** Answers a GET. It may throw: the viewer then sees a calm page, and the log the reason. */
export type Page<A extends Asked> = (asked: A) => Response | Promise<Response>;
/** Answers a POST: it changes something and sends elsewhere (`seeOther`), or shows the form again with what is wrong. */
export type Action<A extends Asked> = (asked: A & Filled) => Response | Promise<Response>;
