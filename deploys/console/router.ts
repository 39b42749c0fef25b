import { Elysia } from 'elysia';
import { unreachable } from '../../shared/brand.ts';
import type { Clock } from '../../shared/clock.ts';
import { ASSETS_PATH, createAssets } from './assets/assets.ts';
import type { Action, Asked, AskedByViewer, AskedOfAccount, Content, Page, PageAccount } from './context.ts';
import { createShow } from './layout.tsx';
import { LOGOUT_PATH } from './paths.ts';
import { seeOther } from './redirect.ts';
import { refusalContent, type RouteRefusal, statusOf } from './refusal.tsx';
import { secured } from './security-headers.ts';
import type { Attempt } from '../users/attempts.ts';
import { isSameOrigin, type Viewer, type ViewerOf } from '../users/viewer.ts';

/** Who may see a route. */
export type Audience = 'anyone' | 'account' | 'operator';

/** What a route answers; a method without a function is a 405. */
export type Answers<A extends Asked> = Readonly<{
  get?: Page<A> | undefined;
  post?: Action<A> | undefined;
}>;

/** One row of the console's table. */
export type Route =
  | Readonly<{ path: string; audience: 'anyone'; answers: Answers<Asked> }>
  | Readonly<{ path: string; audience: 'operator'; answers: Answers<AskedByViewer> }>
  | Readonly<{ path: string; audience: 'account'; answers: Answers<AskedOfAccount> }>;

/** A page for everybody, signed in or not. */
export function forAnyone(path: string, answers: Answers<Asked>): Route {
  return { path, audience: 'anyone', answers };
}

/** A page about an account, under `/accounts/:accountId`: its own users and every operator see it. */
export function forAccount(path: string, answers: Answers<AskedOfAccount>): Route {
  return { path: `/accounts/:accountId${path}`, audience: 'account', answers };
}

/** A page under `/operator` that does not exist for customers. */
export function forOperator(path: string, answers: Answers<AskedByViewer>): Route {
  return { path: `/operator${path}`, audience: 'operator', answers };
}

/** Finds an account by its id; `undefined`: there is none. */
export type AccountOf = (accountId: number) => PageAccount | undefined;

export type Admission =
  | { readonly kind: 'admitted'; readonly viewer: Viewer | undefined; readonly account?: PageAccount }
  | { readonly kind: 'sign-in-first' }
  /** Also for what exists and is somebody else's, so that nobody can tell. */
  | { readonly kind: 'not-found' };

/** Whether a viewer may see a route of this audience; `accountId` is the path's own text. The only place that decides this. */
export function admit(
  audience: Audience,
  viewer: Viewer | undefined,
  accountId: string | undefined,
  accountOf: AccountOf,
): Admission {
  if (audience === 'anyone') return { kind: 'admitted', viewer };
  if (viewer === undefined) return { kind: 'sign-in-first' };
  switch (audience) {
    case 'operator':
      return viewer.role === 'operator' ? { kind: 'admitted', viewer } : { kind: 'not-found' };
    case 'account': {
      const id = idFrom(accountId);
      if (id === undefined || !maySee(viewer, id)) return { kind: 'not-found' };
      const account = accountOf(id);
      return account === undefined ? { kind: 'not-found' } : { kind: 'admitted', viewer, account };
    }
    default:
      return unreachable(audience);
  }
}

function maySee(viewer: Viewer, accountId: number): boolean {
  return viewer.role === 'operator' || viewer.accountId === accountId;
}

/** One spelling per account: `01` and `1e3` are no ids. */
function idFrom(text: string | undefined): number | undefined {
  return text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;
}

const FORM_TYPE = 'application/x-www-form-urlencoded';
/** How long the body of a form may take to arrive; one of 64 KiB needs moments on any line. */
const FORM_MS = 15_000;

/** What came with a POST: the fields of a form, something else, or nothing whole within `FORM_MS`. */
export type FormBody =
  | { readonly kind: 'form'; readonly form: URLSearchParams }
  | { readonly kind: 'no-form' }
  | { readonly kind: 'too-slow' };

/** Reads a posted form. The listener bounds its size. Rejects when the connection ends before the form does. */
export async function formFrom(request: Request, { sleep }: Pick<Clock, 'sleep'>): Promise<FormBody> {
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

/** Puts content into the document, as an answer with every header. */
export type Show = (
  content: Content,
  place: Pick<Asked, 'request' | 'url' | 'viewer'> & Partial<Pick<Asked, 'account'>>,
) => Response;

export type RouteDeps = Readonly<{
  viewerOf: ViewerOf;
  accountOf: AccountOf;
  show: Show;
  clock: Pick<Clock, 'now' | 'sleep'>;
  /** What a changing request's `Origin` must be, such as `https://console.example.com`. */
  origin: string;
  /** Counts a change that a user is about to make. */
  takeChange(userId: string, nowMs: number): Attempt;
  /** Hears of what should not have happened. */
  noteBroken(error: unknown): void;
}>;

type Params = Readonly<Record<string, string>>;
type Place = Readonly<{ request: Request; url: URL; viewer: Viewer | undefined }>;

/** The way of every request to the console: who asks, whether they may, what the page says. Never rejects. */
export function createAnswer(deps: RouteDeps) {
  const { viewerOf, accountOf, show, clock, origin, takeChange, noteBroken } = deps;

  /** Answers for `route`; without one there is nothing at this address. */
  return async function answer(
    request: Request,
    params: Params,
    route: Route | undefined,
  ): Promise<Response> {
    const url = new URL(request.url);
    let viewer: Viewer | undefined;
    try {
      // Before anybody asks who it is: a form that comes slowly must not outlive the session that it began with.
      const body = takesForm(request, route) ? await formFrom(request, clock) : undefined;
      viewer = await viewerOf(request);
      const place = { request, url, viewer };
      const reached = await reach(place, params, route, body);
      return secured(reached instanceof Response ? reached : refuse(reached, place));
    } catch (error) {
      noteBroken(error);
      return secured(brokenResponse(() => refuse({ kind: 'broken' }, { request, url, viewer })));
    }
  };

  async function reach(
    place: Place,
    params: Params,
    route: Route | undefined,
    body: FormBody | undefined,
  ): Promise<Response | RouteRefusal> {
    const { request, url, viewer } = place;
    if (route === undefined) return { kind: 'not-found' };
    const admission = admit(route.audience, viewer, params['accountId'], accountOf);
    if (admission.kind === 'not-found') return { kind: 'not-found' };
    if (admission.kind === 'sign-in-first') return seeOther(loginPath(request, url));

    // `admit` has just seen to it that the audience's members are there.
    const answers = route.answers as Answers<Asked>;
    const asked = askedAt({ ...place, account: admission.account }, params);
    if (isReading(request) && answers.get !== undefined) return answers.get(asked);
    if (request.method !== 'POST' || answers.post === undefined)
      return { kind: 'wrong-method', allow: allowOf(answers) };
    if (body === undefined) return { kind: 'other-origin' };
    if (body.kind !== 'form') return body;
    const pace = paceOf(route, viewer, asked.nowMs);
    return pace.kind === 'allowed' ? answers.post({ ...asked, form: body.form }) : pace;
  }

  /** Every change is an entry of the audit log for 400 days. Logging in has limits of its own, and out is always open. */
  function paceOf({ path }: Route, viewer: Viewer | undefined, nowMs: number): Attempt {
    if (viewer === undefined || path === LOGOUT_PATH) return { kind: 'allowed' };
    return takeChange(viewer.userId, nowMs);
  }

  /** Whether there is a form to read: nothing is read of what another site sent. */
  function takesForm(request: Request, route: Route | undefined): boolean {
    return request.method === 'POST' && route?.answers.post !== undefined && isSameOrigin(request, origin);
  }

  function askedAt(place: Place & Pick<Asked, 'account'>, params: Params): Asked {
    return {
      ...place,
      params,
      nowMs: clock.now(),
      show: (content) => show(content, place),
      notFound: () => refuse({ kind: 'not-found' }, place),
    };
  }

  function refuse(refusal: RouteRefusal, place: Place): Response {
    const response = show(refusalContent(refusal), place);
    if (refusal.kind === 'wrong-method') response.headers.set('allow', refusal.allow);
    if (refusal.kind === 'too-many') response.headers.set('retry-after', String(refusal.retryAfterSeconds));
    return response;
  }
}

function isReading({ method }: Request): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** A page that can be come back to is named; a form that was sent without a session is not. */
function loginPath(request: Request, url: URL): string {
  if (request.method !== 'GET' || url.pathname === '/') return '/login';
  return `/login?next=${encodeURIComponent(`${url.pathname}${url.search}`)}`;
}

function allowOf({ get, post }: Answers<Asked>): string {
  return [get && 'GET, HEAD', post && 'POST'].filter(Boolean).join(', ');
}

/** The page of a 500, or a word alone when the document itself is what broke. */
function brokenResponse(page: () => Response): Response {
  try {
    return page();
  } catch {
    return new Response('Something went wrong.\n', { status: statusOf({ kind: 'broken' }) });
  }
}

type AnswerRoute = (request: Request, params: Params, route: Route) => Promise<Response>;

/** Left out of the API's document, and its body left to the page. */
const RAW = { detail: { hide: true }, parse: 'none' } as const;

/**
 * The routes as an Elysia app. Every method goes to `answer`, which knows which of them there are; GET and HEAD stand
 * by themselves, because an `all` of another app must not win over them.
 */
export function createConsoleApp(
  routes: readonly Route[],
  answer: AnswerRoute,
  assetsPath: string,
  answerAsset: (request: Request) => Response | Promise<Response>,
) {
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
  const handleAsset = ({ request }: { request: Request }) => answerAsset(request);
  return app.get(`${assetsPath}/*`, handleAsset, RAW).head(`${assetsPath}/*`, handleAsset, RAW);
}

export type ConsoleDeps = Omit<RouteDeps, 'show'>;
/** What the app takes in: the routes, and the page of an address without one. */
export type Console = ReturnType<typeof createConsole>;

/** The console as an Elysia app with its assets under `ASSETS_PATH`, and the answer to every address that nothing is at. */
export function createConsole(deps: ConsoleDeps, routes: readonly Route[]) {
  const assets = createAssets();
  const answer = createAnswer({ ...deps, show: createShow(assets.paths) });
  const nothing = (request: Request) => answer(request, {}, undefined);
  return {
    app: createConsoleApp(
      routes,
      answer,
      ASSETS_PATH,
      (request) => assets.answer(request) ?? nothing(request),
    ),
    answerNothing: nothing,
  };
}
