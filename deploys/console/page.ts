import type { ComponentChildren } from 'preact';
import type { Actor, By } from '../accounts/audit.ts';
import type { Viewer } from '../auth/auth-service.ts';
import type { Returned } from './components/here.ts';
import type { Crumb } from './components/links.tsx';
import type { IconName } from './components/panels.tsx';
import type { LoginServices, PageServices } from './page-services.ts';

/** The account a page is about. `plan` is `undefined` for the program API alone. */
export type PageAccount = Readonly<{ id: number; name: string; plan: string | undefined }>;

/** Why a form is refused: its page is shown again, with 422 unless it says otherwise. */
export type FormRefusal = Pick<Returned, 'errors' | 'notice'> & Pick<Content, 'status' | 'retryAfterSeconds'>;

/** The content that a page puts into the document. */
export type Content = Readonly<{
  /** The page's one `h1` and the window's title. Plain text. */
  title: string;
  body: ComponentChildren;
  /** Shown beside the title, such as a button. */
  aside?: ComponentChildren | undefined;
  /** The way here, without the page itself. */
  crumbs?: readonly Crumb[] | undefined;
  status?: number | undefined;
  retryAfterSeconds?: number | undefined;
  returned?: Returned | undefined;
}>;

/** A request to a page. */
export type PageContext = Readonly<{
  request: Request;
  /** The page's own address, without a query where one of its forms comes back. */
  url: URL;
  /** The named parts of the path, decoded. */
  params: Readonly<Record<string, string>>;
  nowMs: number;
  /** `undefined`: no session. */
  viewer?: Viewer | undefined;
  account?: PageAccount | undefined;
  /** One of the page's forms that comes back. */
  returned?: Returned | undefined;
}>;

/** With a signed-in viewer, as the audit log names them. */
export type ViewerContext = PageContext & Readonly<{ viewer: Viewer; actor: Actor }>;
/** About an account that exists and that the viewer may see. */
export type AccountContext = ViewerContext & Readonly<{ account: PageAccount; by: By }>;
/** With the fields of a form that came from one of the console's own pages. */
export type FormContext<C extends PageContext = PageContext> = C & Readonly<{ form: URLSearchParams }>;

/** Content, a redirect or a file; `undefined`: there is no such thing. */
type PageAnswer = Content | Response | undefined;
/** Content of its own, such as a secret that is shown once; a redirect; or the form again. */
type FormAnswer = PageAnswer | FormRefusal;

/** A page of the console. If one of its functions throws, the viewer gets a 500 page and the log gets the reason. */
type PageDeclaration<S, C extends PageContext, T = unknown> = Readonly<{
  path: string;
  /** Its entry in the navigation; what it is called there and how it looks. */
  entry?: readonly [label: string, icon: IconName];
  /** Whether this installation has it; it has unless this says otherwise. */
  isThere?(services: S): boolean;
  /** Finds the thing that the page and its forms are about. */
  find?(services: S, context: C): T | Response | undefined;
  /** Absent, the address takes forms alone. */
  show?(services: S, context: C, thing: T): PageAnswer | Promise<PageAnswer>;
  /** Handlers of forms that are posted to the page's path or below it, by what is added to the path. */
  forms?: Readonly<
    Record<string, (services: S, context: FormContext<C>, thing: T) => FormAnswer | Promise<FormAnswer>>
  >;
  /** A GET of an address of its forms leads to the page, which somebody reloads where a form came back. */
  isReloaded?: boolean;
}>;

/** A row of the table of pages. */
export type PageRoute<S = PageServices> = PageDeclaration<S, PageContext> &
  Readonly<{ audience: 'anyone' | 'account' | 'operator' }>;

/** A page for everybody, signed in or not. */
export function openPage<T>(page: PageDeclaration<LoginServices, PageContext, T>): PageRoute<LoginServices> {
  return { ...(page as PageDeclaration<LoginServices, PageContext>), audience: 'anyone' }; // `find` gives what the others take
}

/** A page about the account in its path: its own users and every operator see it. */
export function accountPage<T>(page: PageDeclaration<PageServices, AccountContext, T>): PageRoute {
  return { ...(page as PageDeclaration<PageServices, PageContext>), audience: 'account' }; // the router admits no others
}

/** A page that does not exist for customers. */
export function operatorPage<T>(page: PageDeclaration<PageServices, ViewerContext, T>): PageRoute {
  return { ...(page as PageDeclaration<PageServices, PageContext>), audience: 'operator' }; // as above
}
