import { Elysia } from 'elysia';
import type { Clock } from '../shared/clock.ts';
import { type GatewayConfig, gatewayUrl } from '../shared/config/config.ts';
import { unreadableTls } from '../shared/config/load.ts';
import { listenComplaint } from '../shared/process.ts';
import type { AnswerRequest } from './answer.ts';
import type { Health } from './status.ts';
import type { Peers } from './request/auth.ts';
import { NULL_ID, rpcError } from './request/envelope.ts';
import { JSON_TYPE } from './respond/refusal.ts';

/** A connection pool in use sends its next request within this time. */
const QUIET_MS = 250;

/** The listener, whose clock ticks every four seconds, counts a silent stream as idle: it cuts so much later than its reader. */
const IDLE_SLACK_SECONDS = 8;
/** It cannot wait longer, unless for ever. */
const LISTENER_SECONDS_MAX = 255;

/** Over TLS the listener counts a request without an answer as idle too. Scans, which take longer, say so themselves. */
function listenerSeconds({ idleMs, deadlinesMs: { light, history, send }, tls }: GatewayConfig): number {
  const waitMs = tls === undefined ? 0 : 2 * Math.max(light, history, send);
  const seconds = Math.ceil(Math.max(idleMs, waitMs) / 1_000) + IDLE_SLACK_SECONDS;
  return Math.min(LISTENER_SECONDS_MAX, seconds);
}

/**
 * The routes. `POST /` is compiled to a plain call of its handler: it names nothing of the context but the request, parses
 * no body and has no hooks. No header or status may be set on the context: Elysia would read and encode streams again.
 */
function createApp(config: GatewayConfig, shared: boolean, answer: AnswerRequest, health: Health) {
  const { tls } = config;
  const peers: Peers = {
    requestIP: (request) => app.server?.requestIP(request) ?? null,
    timeout: (request, seconds) => app.server?.timeout(request, seconds),
  };
  const ready = () => {
    const { ok, sentence } = health();
    return new Response(`${sentence}\n`, { status: ok ? 200 : 503 });
  };
  const app = new Elysia({
    precompile: true,
    strictPath: true,
    serve: {
      idleTimeout: listenerSeconds(config),
      // Bodies are bounded where they are read; the listener's own bound would answer with a bare 413.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      reusePort: shared,
      development: false,
      error: internalError,
      ...(tls === undefined ? {} : { tls: { cert: Bun.file(tls.certPath), key: Bun.file(tls.keyPath) } }),
    },
  })
    .onError(({ code, request }) => {
      if (code !== 'NOT_FOUND') return internalError();
      // Here and not in a route: Elysia looks for the path behind a host of three letters or more, or of http alone.
      if (new URL(request.url).pathname === '/') return answer(request, peers);
      return Response.json({ error: 'Not found. The RPC endpoint is POST /.' }, NOT_FOUND);
    })
    .get('/health', ready)
    .get('/health/ready', ready)
    .get('/health/live', () => new Response('ok\n'))
    .post('/', ({ request }) => answer(request, peers), { parse: 'none' });
  return app;
}

const NOT_FOUND = { status: 404, headers: { 'content-type': 'application/json' } };

/** Unexpected errors end here; their messages are not sent. */
function internalError(): Response {
  const { bytes } = rpcError(-32603, 'Internal error', NULL_ID);
  return new Response(bytes, { status: 500, headers: { 'content-type': JSON_TYPE } });
}

/** How long the listener stays open for new connections after a stop: a load balancer reads the health two or three times. */
const LEAVE_MS = 5_000;

/** Opens the RPC listener, or says in one sentence why it cannot. `shared`: other workers listen on the same address. */
export function listen(
  config: GatewayConfig,
  { answer, health }: Readonly<{ answer: AnswerRequest; health: Health }>,
  { clock, shared }: Readonly<{ clock: Clock; shared: boolean }>,
) {
  const unreadable = unreadableTls(config.tls);
  if (unreadable !== undefined) return { kind: 'refused', sentence: unreadable } as const;
  let isDraining = false;
  let requestAtMs = 0;
  const app = createApp(
    config,
    shared,
    (request, peers) => (isDraining ? last(answer(request, peers)) : answer(request, peers)),
    () => (isDraining ? { ok: false, sentence: 'draining' } : health()),
  );
  try {
    app.listen(config.listen);
  } catch (error) {
    return { kind: 'refused', sentence: refusalOf(config, error) } as const;
  }
  const port = app.server?.port ?? config.listen.port;
  const url = gatewayUrl({ ...config, listen: { ...config.listen, port } });
  return {
    kind: 'listening',
    url,
    /** Closes connections without a request under way: for when descriptors are short. */
    closeIdle: () => void app.server?.closeIdleConnections(),
    close,
  } as const;

  /** Ends the connection of a response while it drains, so that none is closed under a request that is on its way. */
  async function last(pending: Response | Promise<Response>): Promise<Response> {
    requestAtMs = clock.monotonic();
    const response = await pending;
    response.headers.set('connection', 'close');
    return response;
  }

  /** Drains while requests come, for `leaveMs` at most; lets responses under way end, and cuts them after `drainMs`. */
  async function close(drainMs = config.drainMs, leaveMs = LEAVE_MS): Promise<void> {
    const closed = new AbortController();
    void clock.sleep(drainMs, closed.signal).then(() => {
      if (!closed.signal.aborted) void app.server?.stop(true);
    });
    isDraining = true;
    requestAtMs = clock.monotonic();
    const endMs = requestAtMs + Math.min(leaveMs, drainMs);
    const waitMs = () => Math.min(requestAtMs + QUIET_MS, endMs) - clock.monotonic();
    // New connections are still accepted, for clients that do not know yet.
    while (waitMs() > 0) await clock.sleep(waitMs(), closed.signal);
    await app.server?.stop();
    closed.abort();
  }
}

function refusalOf({ listen: address, tls }: GatewayConfig, error: unknown): string {
  const isAboutAddress =
    error instanceof Error && 'code' in error && /^EA(DDR|CCES)/.test(String(error.code));
  if (tls === undefined || isAboutAddress) return listenComplaint('gateway.listen', address, error);
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate and key of gateway.tls cannot be used (${reason}).`;
}
