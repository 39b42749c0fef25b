import { Elysia } from 'elysia';
import type { Clock } from '../../shared/clock.ts';
import { thrownRefusal } from '../api/refusal.ts';
import { ASSETS_PATH, createAssets } from './assets/assets.ts';
import type { AccountContext, Action, Page, PageAccount, PageContext, ViewerContext } from './context.ts';
import { createShow, refusalContent, type RouteRefusal } from './layout.tsx';
import { idFrom, paths, redirect, withNext } from './paths.ts';
import { secured } from './security-headers.ts';
import type { Attempt } from '../auth/attempts.ts';
import { isSameOrigin, type Viewer, type ViewerOf } from '../auth/auth-service.ts';

/** What a route answers; a method without a function is a 405. */
type Answers<C extends PageContext> = Readonly<{ get?: Page<C> | undefined; post?: Action<C> | undefined }>;

/** One row of the console's table. */
export type Route =
  | Readonly<{ path: string; audience: 'anyone'; answers: Answers<PageContext> }>
  | Readonly<{ path: string; audience: 'operator'; answers: Answers<ViewerContext> }>
  | Readonly<{ path: string; audience: 'account'; answers: Answers<AccountContext> }>;

/** A page for everybody, signed in or not. */
export function forAnyone(path: string, answers: Answers<PageContext>): Route {
  return { path, audience: 'anyone', answers };
}

/** A page about the account in its path: its own users and every operator see it. */
export function forAccount(path: string, answers: Answers<AccountContext>): Route {
  return { path, audience: 'account', answers };
}

/** A page that does not exist for customers. */
export function forOperator(path: string, answers: Answers<ViewerContext>): Route {
  return { path, audience: 'operator', answers };
}

/** What the console needs to find the viewer and the account of a request. */
export type ConsoleDeps = Readonly<{
  viewerOf: ViewerOf;
  /** Finds an account by its id; `undefined`: there is none. */
  accountOf(accountId: number): PageAccount | undefined;
  clock: Pick<Clock, 'now' | 'sleep'>;
  /** What a changing request's `Origin` must be, such as `https://console.example.com`. */
  origin: string;
  /** Counts a change that a user is about to make. */
  takeChange(userId: string, nowMs: number): Attempt;
  /** Why changes are refused, as a sentence. Absent, they never are. */
  whyReadOnly?: (() => string | undefined) | undefined;
  /** Hears of what should not have happened. */
  noteBroken(error: unknown): void;
}>;

/** What the app takes in: the routes, and the page of an address without one. */
export type Console = ReturnType<typeof createConsole>;

/** Left out of the API's document, and its body left to the page. */
const RAW = { detail: { hide: true }, parse: 'none' } as const;

/** The console as an Elysia app, and the answer to every other address. GET and HEAD are listed, else an `all` of another app wins. */
export function createConsole(deps: ConsoleDeps, routes: readonly Route[]) {
  const assets = createAssets();
  const answer = createAnswer(deps, createShow(assets.paths));
  const answerNothing = (request: Request) => answer(request, {}, undefined);
  const app = new Elysia();
  for (const route of routes) {
    const handle = ({ request, params }: { request: Request; params?: Params }) =>
      answer(request, params ?? {}, route); // a path without names has none
    app
      .get(route.path, handle, RAW)
      .head(route.path, handle, RAW)
      .post(route.path, handle, RAW)
      .all(route.path, handle, RAW);
  }
  const asset = ({ request }: { request: Request }) => assets.answer(request) ?? answerNothing(request);
  app.get(`${ASSETS_PATH}/*`, asset, RAW).head(`${ASSETS_PATH}/*`, asset, RAW);
  return { app, answerNothing };
}

type Params = Readonly<Record<string, string>>;
/** A request with its viewer. */
type Visit = Readonly<{ request: Request; url: URL; viewer: Viewer | undefined; nowMs: number }>;

/** The way of every request to the console: viewer, admission, page. Never rejects. */
function createAnswer(deps: ConsoleDeps, show: ReturnType<typeof createShow>) {
  const { viewerOf, clock, origin, takeChange, whyReadOnly, noteBroken } = deps;

  /** Answers for `route`; without one there is nothing at this address. */
  return async function answer(
    request: Request,
    params: Params,
    route: Route | undefined,
  ): Promise<Response> {
    const url = new URL(request.url);
    let viewer: Viewer | undefined;
    try {
      // Before the session is looked up: a form that comes slowly must not outlive the session that it began with.
      const body = takesForm(request, route) ? await formFrom(request, clock) : undefined;
      viewer = await viewerOf(request);
      const visit = { request, url, viewer, nowMs: clock.now() };
      const reached = await reach(visit, params, route, body);
      return secured(reached instanceof Response ? reached : refuse(reached, visit));
    } catch (error) {
      noteBroken(error);
      return secured(
        brokenResponse(() => refuse(thrownRefusal(error), { request, url, viewer, nowMs: clock.now() })),
      );
    }
  };

  async function reach(
    visit: Visit,
    params: Params,
    route: Route | undefined,
    body: FormBody | undefined,
  ): Promise<Response | RouteRefusal> {
    const { request, url, viewer } = visit;
    if (route === undefined) return { kind: 'not-found' };
    const admission = admit(route.audience, viewer, params['accountId'], deps.accountOf);
    if (admission.kind === 'not-found') return { kind: 'not-found' };
    if (admission.kind === 'sign-in-first') return redirect(loginPath(request, url));

    // `admit` has just seen to it that the audience's members are there.
    const answers = route.answers as Answers<PageContext>;
    const context = contextOf({ ...visit, account: admission.account }, params);
    if ((request.method === 'GET' || request.method === 'HEAD') && answers.get !== undefined)
      return answers.get(context);
    if (request.method !== 'POST' || answers.post === undefined)
      return {
        kind: 'wrong-method',
        allow: [answers.get && 'GET, HEAD', answers.post && 'POST'].filter(Boolean).join(', '),
      };
    if (body === undefined) return { kind: 'other-origin' };
    if (body.kind !== 'form') return body;
    const text = SESSION_PATHS.includes(route.path) ? undefined : whyReadOnly?.();
    if (text !== undefined) return { kind: 'read-only', text };
    const pace = paceOf(route, viewer, context.nowMs);
    return pace.kind === 'allowed' ? answers.post({ ...context, form: body.form }) : pace;
  }

  /** Every change is an entry of the audit log for 400 days. Logging in has limits of its own, and out is always open. */
  function paceOf({ path }: Route, viewer: Viewer | undefined, nowMs: number): Attempt {
    if (viewer === undefined || path === paths.logout) return { kind: 'allowed' };
    return takeChange(viewer.userId, nowMs);
  }

  /** Whether there is a form to read: nothing is read of what another site sent. */
  function takesForm(request: Request, route: Route | undefined): boolean {
    return request.method === 'POST' && route?.answers.post !== undefined && isSameOrigin(request, origin);
  }

  function contextOf(visit: Visit & Pick<PageContext, 'account'>, params: Params): PageContext {
    return {
      ...visit,
      params,
      show: (content) => show(content, visit),
      notFound: () => refuse({ kind: 'not-found' }, visit),
    };
  }

  function refuse(refusal: RouteRefusal, visit: Visit): Response {
    const response = show(refusalContent(refusal), visit);
    if (refusal.kind === 'wrong-method') response.headers.set('allow', refusal.allow);
    return response;
  }
}

/** `not-found` also for what exists and is another account's, so that the two look the same. */
type Admission =
  | Readonly<{ kind: 'admitted'; account?: PageAccount }>
  | Readonly<{ kind: 'sign-in-first' }>
  | Readonly<{ kind: 'not-found' }>;

/** Whether a viewer may see a route of this audience; `accountId` is the path's own text. The only place that decides this. */
function admit(
  audience: Route['audience'],
  viewer: Viewer | undefined,
  accountId: string | undefined,
  accountOf: ConsoleDeps['accountOf'],
): Admission {
  if (audience === 'anyone') return { kind: 'admitted' };
  if (viewer === undefined) return { kind: 'sign-in-first' };
  const isOperator = viewer.role === 'operator';
  if (audience === 'operator') return { kind: isOperator ? 'admitted' : 'not-found' };
  const id = idFrom(accountId);
  const isSeen = id !== undefined && (isOperator || viewer.accountId === id);
  const account = isSeen ? accountOf(id) : undefined;
  return account === undefined ? { kind: 'not-found' } : { kind: 'admitted', account };
}

/** Sessions are nobody else's: who may log in looks at pages, whatever else is refused. */
const SESSION_PATHS: readonly string[] = [paths.login, paths.secondStep, paths.logout, paths.theme];

const FORM_TYPE = 'application/x-www-form-urlencoded';
/** How long the body of a form may take to arrive; one of 64 KiB needs moments on any line. */
const FORM_MS = 15_000;

/** What came with a POST: the fields of a form, something else, or nothing whole within `FORM_MS`. */
type FormBody =
  { readonly kind: 'form'; readonly form: URLSearchParams } | { readonly kind: 'no-form' | 'too-slow' };

/** Reads a posted form. The listener bounds its size. Rejects when the connection ends before the form does. */
async function formFrom(request: Request, { sleep }: Pick<Clock, 'sleep'>): Promise<FormBody> {
  const type = request.headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase();
  if (type !== FORM_TYPE) return { kind: 'no-form' };
  const read = new AbortController();
  const late = sleep(FORM_MS, read.signal).then(() => undefined);
  try {
    const text = await Promise.race([request.text(), late]);
    return text === undefined ? { kind: 'too-slow' } : { kind: 'form', form: new URLSearchParams(text) };
  } finally {
    read.abort();
  }
}

/** A page that can be come back to is named; a form that was sent without a session is not. */
function loginPath({ method }: Request, { pathname, search }: URL): string {
  return method !== 'GET' || pathname === paths.start
    ? paths.login
    : withNext(paths.login, `${pathname}${search}`);
}

/** The page of a 500, or a word alone when the document itself is what broke. */
function brokenResponse(page: () => Response): Response {
  try {
    return page();
  } catch {
    return new Response('Something went wrong.\n', { status: 500 });
  }
}
