import type { Clock } from '../../../shared/clock.ts';
import type { Attempt } from '../../users/attempts.ts';
import { LOGOUT_PATH } from '../../users/logout-path.ts';
import type { Asked, Content } from '../asked.ts';
import { secured } from '../security-headers.ts';
import { isSameOrigin } from '../same-origin.ts';
import { seeOther } from '../see-other.ts';
import type { Viewer, ViewerOf } from '../viewer.ts';
import { type AccountOf, admit } from './admit.ts';
import { type FormBody, formFrom } from './form-body.ts';
import { refusalContent, type RouteRefusal, statusOf } from './refusal.tsx';
import type { Answers, Route } from './route.ts';

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
