import type { ComponentChildren } from 'preact';
import { actorOf, type By } from '../accounts/audit.ts';
import type { Viewer } from '../auth/auth-service.ts';
import type { Crumb } from './components/links.tsx';

/** The account a page is about. `plan` is `undefined` for the program API alone. */
export type PageAccount = Readonly<{ id: number; name: string; plan: string | undefined }>;

/** What a page puts into the document. */
export type Content = Readonly<{
  /** The page's one `h1` and the window's title. Plain text. */
  title: string;
  body: ComponentChildren;
  /** Shown beside the title, such as a button. */
  aside?: ComponentChildren | undefined;
  /** The way here, without the page itself. */
  crumbs?: readonly Crumb[] | undefined;
  /** 200 by default; 422 for a form that comes back with errors. */
  status?: number | undefined;
  retryAfterSeconds?: number | undefined;
}>;

/** A request to a page, and the ways to answer it. */
export type PageContext = Readonly<{
  request: Request;
  url: URL;
  /** The named parts of the path, decoded. */
  params: Readonly<Record<string, string>>;
  nowMs: number;
  /** `undefined`: no session. */
  viewer: Viewer | undefined;
  account?: PageAccount | undefined;
  /** The content in the console's document, as an answer. */
  show(content: Content): Response;
  /** The page of a thing that is not there, or not the viewer's. */
  notFound(): Response;
}>;

/** With a signed-in viewer. */
export type ViewerContext = PageContext & Readonly<{ viewer: Viewer }>;
/** About an account that exists and that the viewer may see. */
export type AccountContext = ViewerContext & Readonly<{ account: PageAccount }>;
/** With the fields of a form that came from one of the console's own pages. */
export type FormContext<C extends PageContext = PageContext> = C & Readonly<{ form: URLSearchParams }>;

export type ViewerForm = FormContext<ViewerContext>;
export type AccountForm = FormContext<AccountContext>;

export type Answer = Response | Promise<Response>;
/** Handles a GET. If it throws, the viewer gets a 500 page and the log gets the reason. */
export type Page<C extends PageContext> = (context: C) => Answer;
/** Handles a POST: it changes something and redirects, or shows the form again with its errors. */
export type Action<C extends PageContext> = (context: FormContext<C>) => Answer;

/** Renders content into the document, as a response with its headers. */
export type Show = (
  content: Content,
  at: Pick<PageContext, 'request' | 'url' | 'viewer' | 'nowMs'> & Partial<Pick<PageContext, 'account'>>,
) => Response;

/** Who makes a change on a page of an account, for the audit log. */
export function byOf({ viewer, account }: Pick<AccountContext, 'viewer' | 'account'>): By {
  return { accountId: account.id, actor: actorOf(viewer.userId, viewer.role) };
}
