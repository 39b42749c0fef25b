import { Elysia } from 'elysia';
import type { Clock } from '../../shared/clock.ts';
import { actorOf } from '../accounts/audit.ts';
import { thrownRefusal } from '../api/refusal.ts';
import type { Attempt } from '../auth/attempts.ts';
import { isSameOrigin, type Viewer, type ViewerOf } from '../auth/auth-service.ts';
import { ASSETS_PATH, createAssets } from './assets/assets.ts';
import { createShow, refusalContent, type RouteRefusal } from './layout.tsx';
import type { Content, PageAccount, PageContext, PageRoute } from './page.ts';
import { idFrom, paths, redirect, withNext } from './paths.ts';
import { secured } from './security-headers.ts';

/** The services by which the console finds the viewer and the account of a request. */
export type ConsoleDeps = Readonly<{
  viewerOf: ViewerOf;
  /** Finds an account by its id; `undefined`: there is none. */
  accountOf(accountId: number): PageAccount | undefined;
  clock: Pick<Clock, 'now' | 'sleep'>;
  /** The `Origin` that a changing request must have, such as `https://console.example.com`. */
  origin: string;
  /** Counts a change that a user is about to make. */
  takeChange(userId: string, nowMs: number): Attempt;
  /** Why changes are refused, as a sentence. Absent, they never are. */
  whyReadOnly?: (() => string | undefined) | undefined;
  /** Hears of what should not have happened. */
  noteBroken(error: unknown): void;
}>;

/** The console as the app mounts it: the pages, and the page of an address without one. */
export type Console = ReturnType<typeof createConsole>;

/** Left out of the API's document, and its body left to the page. */
const RAW = { detail: { hide: true }, parse: 'none' } as const;

type Params = Readonly<Record<string, string>>;
/** An address of a page: its own, which is `''`, or that of one of its forms, as what is added to the page's. */
type Address<S> = Readonly<{ page: PageRoute<S>; added: string }>;
/** A request with its viewer. */
type Visit = Readonly<{ request: Request; url: URL; viewer: Viewer | undefined; nowMs: number }>;

/** The console as an Elysia app, and the answer to every other address. GET and HEAD are listed, else an `all` of another app wins. */
export function createConsole<S>(deps: ConsoleDeps, services: S, pages: readonly PageRoute<S>[]) {
  const assets = createAssets();
  const there = pages.filter((page) => page.isThere?.(services) ?? true);
  const answer = createAnswer(deps, services, createShow(assets.paths, there));
  const answerNothing = (request: Request) => answer(request, {}, undefined);
  const app = new Elysia();
  for (const page of there)
    for (const added of new Set([...(page.show ? [''] : []), ...Object.keys(page.forms ?? {})])) {
      const path = `${page.path}${added}`;
      const handle = ({ request, params }: { request: Request; params?: Params }) =>
        answer(request, params ?? {}, { page, added }); // a path without names has none
      app.get(path, handle, RAW).head(path, handle, RAW).post(path, handle, RAW).all(path, handle, RAW);
    }
  const asset = ({ request }: { request: Request }) => assets.answer(request) ?? answerNothing(request);
  app.get(`${ASSETS_PATH}/*`, asset, RAW).head(`${ASSETS_PATH}/*`, asset, RAW);
  return { app, answerNothing };
}

const NOT_FOUND = { kind: 'not-found' } as const;

/** The way of every request to the console: viewer, admission, page. Never rejects. */
function createAnswer<S>(deps: ConsoleDeps, services: S, show: ReturnType<typeof createShow>) {
  const { viewerOf, clock, origin, noteBroken } = deps;

  /** Answers for an address of a page; without one there is nothing here. */
  return async function answer(
    request: Request,
    params: Params,
    address: Address<S> | undefined,
  ): Promise<Response> {
    const url = new URL(request.url);
    let viewer: Viewer | undefined;
    try {
      // Before the session is looked up: a form that comes slowly must not outlive the session that it began with.
      const isForm = request.method === 'POST' && address?.page.forms?.[address.added] !== undefined;
      // Nothing is read of what another site sent.
      const body = isForm && isSameOrigin(request, origin) ? await formFrom(request, clock) : undefined;
      viewer = await viewerOf(request);
      const visit = { request, url, viewer, nowMs: clock.now() };
      const reached = address ? await reach(visit, params, address, body) : NOT_FOUND;
      return secured(reached instanceof Response ? reached : refuse(reached, visit));
    } catch (error) {
      noteBroken(error);
      return secured(
        brokenResponse(() => refuse(thrownRefusal(error), { request, url, viewer, nowMs: clock.now() })),
      );
    }
  };

  function refuse(refusal: RouteRefusal, at: Parameters<typeof show>[1]): Response {
    const response = show(refusalContent(refusal), at);
    if (refusal.kind === 'wrong-method') response.headers.set('allow', refusal.allow);
    return response;
  }

  async function reach(
    visit: Visit,
    params: Params,
    { page, added }: Address<S>,
    body: FormBody | undefined,
  ): Promise<Response | RouteRefusal> {
    const { request, url, viewer, nowMs } = visit;
    const admission = admit(page.audience, viewer, params['accountId'], deps.accountOf);
    if (admission.kind === 'not-found') return admission;
    if (admission.kind === 'sign-in-first') return redirect(loginPath(request, url));

    const { account } = admission;
    const actor = viewer && actorOf(viewer.userId, viewer.role);
    const by = actor && account && { accountId: account.id, actor };
    const context = { ...visit, params, account, actor, by };
    const form = page.forms?.[added];
    const isShown = page.show !== undefined && (added === '' || page.isReloaded);
    if ((request.method === 'GET' || request.method === 'HEAD') && isShown)
      return added === '' ? await shown(page, context) : redirect(page.path);
    if (request.method !== 'POST' || form === undefined)
      return {
        kind: 'wrong-method',
        allow: [isShown && 'GET, HEAD', form && 'POST'].filter(Boolean).join(', '),
      };
    if (body === undefined) return { kind: 'other-origin' };
    if (body.kind !== 'form') return body;
    const text = SESSION_PATHS.includes(page.path) ? undefined : deps.whyReadOnly?.();
    if (text !== undefined) return { kind: 'read-only', text };
    // Every change is an entry of the audit log for 400 days. Logging in has limits of its own, and out is always open.
    const isCounted = viewer !== undefined && page.path !== paths.logout;
    const pace: Attempt = isCounted ? deps.takeChange(viewer.userId, nowMs) : { kind: 'allowed' };
    if (pace.kind !== 'allowed') return pace;

    const thing = found(page, context);
    if (thing instanceof Response) return thing;
    const done = await form(services, { ...context, form: body.form }, thing.found);
    if (done === undefined) return refuse(NOT_FOUND, context);
    if (done instanceof Response) return done;
    if ('title' in done) return show(done, context);
    const returned = { ...done, action: url.pathname, sent: body.form };
    const own = new URL(url.pathname.slice(0, url.pathname.length - added.length), url);
    const { status = 422, retryAfterSeconds } = done;
    return shown(page, { ...context, url: own, returned }, { status, retryAfterSeconds, returned });
  }

  /** Finds the thing that a page is about, if there is one; or the answer in place of the page. */
  function found({ find }: PageRoute<S>, context: PageContext): Response | Readonly<{ found: unknown }> {
    if (find === undefined) return { found: undefined };
    const thing = find(services, context) ?? refuse(NOT_FOUND, context);
    return thing instanceof Response ? thing : { found: thing };
  }

  /** The page, with what differs where one of its forms comes back. */
  async function shown(page: PageRoute<S>, context: PageContext, more: Partial<Content> = {}) {
    const thing = found(page, context);
    if (thing instanceof Response) return thing;
    const content = await page.show?.(services, context, thing.found);
    if (content === undefined) return refuse(NOT_FOUND, context);
    return content instanceof Response ? content : show({ ...content, ...more }, context);
  }
}

/** `not-found` also for what exists and is another account's, so that the two look the same. */
type PageAdmission =
  | Readonly<{ kind: 'admitted'; account?: PageAccount }>
  | Readonly<{ kind: 'sign-in-first' }>
  | Readonly<{ kind: 'not-found' }>;

/** Whether a viewer may see a page of this audience; `accountId` is the path's own text. The only place that decides this. */
function admit(
  audience: PageRoute<never>['audience'],
  viewer: Viewer | undefined,
  accountId: string | undefined,
  accountOf: ConsoleDeps['accountOf'],
): PageAdmission {
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

/** The body of a POST: the fields of a form, something else, or nothing whole within `FORM_MS`. */
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
