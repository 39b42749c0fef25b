import { Elysia } from 'elysia';
import { type DeploysConfig, urlOf } from '../shared/config/config.ts';
import type { Listen } from '../shared/config/kinds.ts';
import { listenComplaint } from '../shared/process.ts';
import { createOpenapi, PROGRAMS_OPERATION, REFERENCE_PATH } from './api/openapi.ts';
import { PROGRAMS_PATH } from './api/programs.ts';
import { REFERENCE_POLICY, referencePage } from './api/reference-page.ts';
import { refusalResponse, thrownRefusal } from './api/refusal.ts';
import { createWebhookRoutes, type WebhookRoutesDeps } from './api/webhook-routes.ts';
import type { Console } from './console/router.ts';
import type { Health } from './health/health.ts';

type AppDeps = Readonly<{
  answerPrograms(request: Request): Response;
  /** Absent, there are no webhooks. */
  webhooks?: WebhookRoutesDeps | undefined;
  health(): Health;
  /** Called with the status of every answer of the programs endpoint, and of what was thrown. */
  noteAnswer(status: number): void;
  noteBroken(error: unknown): void;
  publicUrl: URL;
  /** Absent, `/` leads to the API's reference. */
  console?: Console | undefined;
}>;

const START_PATH = '/';
const API_PATH = '/api/';
const HEALTH_PATH = '/health';
/** Liveness, for what restarts the process, and readiness, for what routes requests to it, which is `HEALTH_PATH`. */
const [LIVE_PATH, READY_PATH] = ['/health/live', '/health/ready'];
const HIDDEN = { detail: { hide: true } };

/** The routes. Elysia parses and validates nothing, and its own error pages, which show messages, are never reached. */
export function createApp(deps: AppDeps) {
  const page = referencePage(deps.publicUrl);
  const programs = ({ request }: { request: Request }) => {
    const response = deps.answerPrograms(request);
    deps.noteAnswer(response.status);
    return response;
  };
  const health = () => healthResponse(deps.health());
  const live = () => healthResponse({ isWell: true, sentence: 'ok' });
  const reference = () => new Response(page, { headers: PAGE_HEADERS });
  const start = () => new Response(null, { status: 302, headers: { location: REFERENCE_PATH } });

  return new Elysia()
    .onError(({ code, error, request }) => {
      if (code === 'NOT_FOUND') return nothingAt(request, deps.console);
      deps.noteBroken(error);
      const response = refusalResponse(thrownRefusal(error));
      deps.noteAnswer(response.status);
      return response;
    })
    .use(createOpenapi(deps.publicUrl))
    .use(deps.webhooks ? createWebhookRoutes(deps.webhooks) : new Elysia())
    .use(readAt(PROGRAMS_PATH, programs, PROGRAMS_OPERATION))
    .use(readAt(HEALTH_PATH, health, HEALTH_OPERATION))
    .use(readAt(READY_PATH, health))
    .use(readAt(LIVE_PATH, live))
    .use(deps.console?.app ?? readAt(START_PATH, start))
    .use(readAt(REFERENCE_PATH, reference));
}

/** A read-only path. Elysia does not derive HEAD from GET; Bun drops its body. */
function readAt(
  path: string,
  answer: (context: { request: Request }) => Response,
  operation?: typeof PROGRAMS_OPERATION | typeof HEALTH_OPERATION,
) {
  return new Elysia()
    .get(path, answer, operation === undefined ? HIDDEN : { detail: operation })
    .head(path, answer, HIDDEN)
    .all(path, () => refusalResponse({ kind: 'wrong-method' }), { ...HIDDEN, parse: 'none' });
}

/** A page for browsers, a JSON error for everything else. */
function nothingAt(request: Request, pages: Console | undefined): Response | Promise<Response> {
  const isPage = request.headers.get('accept')?.includes('text/html') ?? false;
  const isApi = new URL(request.url).pathname.startsWith(API_PATH);
  return pages === undefined || isApi || !isPage
    ? refusalResponse({ kind: 'not-found' })
    : pages.answerNothing(request);
}

const HEALTH_OPERATION = {
  operationId: 'health',
  summary: 'Whether the service is healthy, in a sentence',
  tags: ['Operation'],
  security: [],
  responses: { 200: { description: 'Healthy' }, 503: { description: 'Not healthy; the text says why' } },
};

function healthResponse({ isWell, sentence }: Health): Response {
  return new Response(`${sentence}\n`, {
    status: isWell ? 200 : 503,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
  });
}

const PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': REFERENCE_POLICY,
  'x-content-type-options': 'nosniff',
};

/** `address` is the IP of the connection's other end. */
type RequestHandler = (request: Request, address?: string) => Response | Promise<Response>;

const IDLE_SECONDS = 30;
/** A webhook's settings take a few kilobytes, with every program named. */
const BODY_BYTES_MAX = 65_536;

/** Opens the API and metrics listeners, or says in one sentence which of them cannot be opened. */
export function listen(
  config: Pick<DeploysConfig, 'listen' | 'metrics'>,
  answer: RequestHandler,
  answerMetrics: RequestHandler,
) {
  const api = serve('deploys.listen', config.listen, answer);
  if (typeof api === 'string') return { kind: 'refused', sentence: api } as const;
  const metrics = serve('deploys.metrics', config.metrics, answerMetrics);
  if (typeof metrics === 'string') {
    void api.stop(true);
    return { kind: 'refused', sentence: metrics } as const;
  }
  return {
    kind: 'listening',
    url: urlOf({ ...config.listen, port: api.port ?? config.listen.port }),
    metricsUrl: urlOf({ ...config.metrics, port: metrics.port ?? config.metrics.port }),
    /** Takes no more connections, lets answers under way end for `drainMs`, then cuts them. */
    close: async (drainMs: number): Promise<void> => {
      AbortSignal.timeout(drainMs).addEventListener('abort', () => void api.stop(true), { once: true });
      await api.stop();
      await metrics.stop(true);
    },
  } as const;
}

/** The host of a request that names none. */
const NO_HOST = 'http://localhost';

function serve(
  key: string,
  { hostname, port }: Listen,
  fetch: RequestHandler,
): Bun.Server<undefined> | string {
  try {
    return Bun.serve({
      hostname,
      port,
      fetch: (request, server) => {
        const whole = withWholeUrl(request);
        if (whole === undefined) return Response.json({ error: 'Invalid Host header' }, { status: 400 });
        return fetch(whole, server.requestIP(request)?.address);
      },
      reusePort: false, // a second process must fail here, not share the port unseen
      development: false, // its error page shows source to the caller
      idleTimeout: IDLE_SECONDS,
      maxRequestBodySize: BODY_BYTES_MAX,
      error: () => Response.json({ error: 'Internal error' }, { status: 500 }),
    });
  } catch (error) {
    return listenComplaint(key, { hostname, port }, error);
  }
}

/** The request with a URL that can be parsed: probes of HTTP/1.0 name no host. `undefined` when its host is invalid. */
function withWholeUrl(request: Request): Request | undefined {
  if (URL.canParse(request.url)) return request;
  const isNamed = (request.headers.get('host') ?? '') !== '';
  if (isNamed || !URL.canParse(request.url, NO_HOST)) return undefined;
  return new Request(new URL(request.url, NO_HOST).href, request);
}

/** Tells browsers that used https, by what the proxy says or by the public host, to stay with it (RFC 6797). */
export function withStrictTransport(response: Response, request: Request, publicUrl: URL): Response {
  const said = request.headers.get('x-forwarded-proto')?.split(',').at(-1)?.trim();
  const isHttps = said === undefined ? new URL(request.url).host === publicUrl.host : said === 'https';
  if (isHttps && publicUrl.protocol === 'https:')
    response.headers.set('strict-transport-security', 'max-age=31536000');
  return response;
}
