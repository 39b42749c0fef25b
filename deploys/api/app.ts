import { type AnyElysia, Elysia } from 'elysia';
import type { Health } from '../health.ts';
import { createOpenapi, REFERENCE_PATH } from './openapi.ts';
import { PROGRAMS_PATH } from './programs.ts';
import { PROGRAMS_OPERATION } from './programs-operation.ts';
import { REFERENCE_POLICY, referencePage } from './reference-page.ts';
import { refusalResponse } from './refusal.ts';
import { createWebhookRoutes, type WebhookRoutesDeps } from './webhooks/routes.ts';

/** Pages beside the API, and the page of an address that nothing is at. */
type Pages = Readonly<{ app: AnyElysia; answerNothing(request: Request): Promise<Response> }>;

export type AppDeps = Readonly<{
  answerPrograms(request: Request): Response;
  /** Absent, there are no webhooks. */
  webhooks?: WebhookRoutesDeps | undefined;
  health(): Health;
  /** Hears the status of every answer of the programs endpoint, and of every 500. */
  noteAnswer(status: number): void;
  /** Hears of what should not have happened. */
  noteBroken(error: unknown): void;
  publicUrl: URL;
  /** Absent, `/` leads to the API's reference. */
  console?: Pages | undefined;
}>;

/** What a person types in who was given the service's address. */
const START_PATH = '/';
const API_PATH = '/api/';
const HEALTH_PATH = '/health';
/** Whether the process answers at all: for what restarts it. Whether it does its work, as at `HEALTH_PATH`: for what sends requests. */
const [LIVE_PATH, READY_PATH] = ['/health/live', '/health/ready'];
const HIDDEN = { detail: { hide: true } };

/**
 * The program API and webhooks as an Elysia app. Handlers take the raw request and give a finished `Response`: Elysia parses and
 * validates nothing, and its own error pages, which show messages, are never reached.
 */
export function createApp(deps: AppDeps) {
  const page = referencePage(deps.publicUrl);
  const programs = ({ request }: { request: Request }) => {
    const response = deps.answerPrograms(request);
    deps.noteAnswer(response.status);
    return response;
  };
  const health = () => healthResponse(deps.health());
  const live = () => healthResponse({ isWell: true, sentence: 'ok' });
  const reference = () => pageResponse(page);
  const wrongMethod = () => refusalResponse({ kind: 'wrong-method' });

  // HEAD stands beside every GET, because Elysia does not derive it; Bun leaves its body away.
  return new Elysia()
    .onError(({ code, error, request }) => {
      if (code === 'NOT_FOUND') return nothingAt(request, deps.console);
      deps.noteBroken(error);
      deps.noteAnswer(500);
      return refusalResponse({ kind: 'broken' });
    })
    .use(createOpenapi(deps.publicUrl))
    .use(deps.webhooks ? createWebhookRoutes(deps.webhooks) : new Elysia())
    .get(PROGRAMS_PATH, programs, { detail: PROGRAMS_OPERATION })
    .head(PROGRAMS_PATH, programs, HIDDEN)
    .all(PROGRAMS_PATH, wrongMethod, { ...HIDDEN, parse: 'none' })
    .get(HEALTH_PATH, health, { detail: HEALTH_OPERATION })
    .head(HEALTH_PATH, health, HIDDEN)
    .all(HEALTH_PATH, wrongMethod, { ...HIDDEN, parse: 'none' })
    .get(READY_PATH, health, HIDDEN)
    .head(READY_PATH, health, HIDDEN)
    .all(READY_PATH, wrongMethod, { ...HIDDEN, parse: 'none' })
    .get(LIVE_PATH, live, HIDDEN)
    .head(LIVE_PATH, live, HIDDEN)
    .all(LIVE_PATH, wrongMethod, { ...HIDDEN, parse: 'none' })
    .use(deps.console?.app ?? startAt(REFERENCE_PATH))
    .get(REFERENCE_PATH, reference, HIDDEN)
    .head(REFERENCE_PATH, reference, HIDDEN)
    .all(REFERENCE_PATH, wrongMethod, { ...HIDDEN, parse: 'none' });
}

/** `/` where there is no console. */
function startAt(path: string) {
  const start = () => new Response(null, { status: 302, headers: { location: path } });
  const wrongMethod = () => refusalResponse({ kind: 'wrong-method' });
  return new Elysia()
    .get(START_PATH, start, HIDDEN)
    .head(START_PATH, start, HIDDEN)
    .all(START_PATH, wrongMethod, { ...HIDDEN, parse: 'none' });
}

/** A page for those who look with a browser, the API's own words for everybody else. */
function nothingAt(request: Request, pages: Pages | undefined): Response | Promise<Response> {
  const isPage = request.headers.get('accept')?.includes('text/html') ?? false;
  const isApi = new URL(request.url).pathname.startsWith(API_PATH);
  return pages === undefined || isApi || !isPage
    ? refusalResponse({ kind: 'not-found' })
    : pages.answerNothing(request);
}

const HEALTH_OPERATION = {
  operationId: 'health',
  summary: 'Whether the service does its work, in a sentence',
  tags: ['Operation'],
  security: [],
  responses: { 200: { description: 'It does' }, 503: { description: 'It does not; the text says why' } },
};

function healthResponse({ isWell, sentence }: Health): Response {
  return new Response(`${sentence}\n`, {
    status: isWell ? 200 : 503,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  });
}

function pageResponse(page: string): Response {
  return new Response(page, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': REFERENCE_POLICY,
      'x-content-type-options': 'nosniff',
    },
  });
}
