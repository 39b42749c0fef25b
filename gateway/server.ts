import { Elysia } from 'elysia';
import type { Clock } from '../shared/clock.ts';
import { type GatewayConfig, gatewayUrl } from '../shared/config/config.ts';
import { unreadableTls } from '../shared/config/tls.ts';
import { listenComplaint } from '../shared/listen-complaint.ts';
import { fired } from '../shared/stop.ts';
import type { AnswerRequest } from './answer.ts';
import type { Gateway } from './compose.ts';
import type { Health } from './health.ts';
import { listenForMetrics } from './metrics.ts';
import type { Seat } from './workers.ts';

/**
 * How a listener sends its callers away before it closes: every answer ends its connection, so that none is closed
 * under a request that is already on its way. New connections are still taken, for those that have not heard yet.
 */
type Leaving = Readonly<{
  hasBegun(): boolean;
  /** Marks an answer as the last one of its connection. */
  last(answer: Promise<Response>): Promise<Response>;
  /** Resolves when no request has come for a quarter of a second, or after `mostMs`. */
  begin(mostMs: number): Promise<void>;
}>;

/** A pool of connections in use asks again within this time. */
const QUIET_MS = 250;

export function createLeaving(clock: Clock): Leaving {
  const never = new AbortController().signal;
  let begun = false;
  let lastMs = 0;

  async function last(answer: Promise<Response>): Promise<Response> {
    lastMs = clock.monotonic();
    const response = await answer;
    response.headers.set('connection', 'close');
    return response;
  }

  async function begin(mostMs: number): Promise<void> {
    begun = true;
    lastMs = clock.monotonic();
    const endMs = lastMs + mostMs;
    for (;;) {
      const waitMs = Math.min(lastMs + QUIET_MS, endMs) - clock.monotonic();
      if (waitMs <= 0) return;
      await clock.sleep(waitMs, never);
    }
  }

  return { hasBegun: () => begun, last, begin };
}

/** `shared`: other processes of ours listen on the same address, and the system spreads connections over all. */
type AppOptions = Readonly<{ shared: boolean; leaving: Leaving }>;

const IDLE_SECONDS_MIN = 8;
const DRAINING = { ok: false, sentence: 'draining' };
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * The listener. The RPC route is one of Bun's own, beside Elysia's: it takes the raw request and its Response goes
 * out untouched, because Elysia reads and re-encodes a stream as soon as anything has set a header on it.
 */
function createApp(
  { idleMs, tls }: GatewayConfig,
  answer: AnswerRequest,
  health: Health,
  { shared, leaving }: AppOptions,
) {
  const route: AnswerRequest = (request, peers) =>
    leaving.hasBegun() ? leaving.last(Promise.resolve(answer(request, peers))) : answer(request, peers);
  return new Elysia({
    serve: {
      // The system's clock for idle connections ticks every four seconds: below eight it would cut what is not idle.
      idleTimeout: Math.max(IDLE_SECONDS_MIN, Math.ceil(idleMs / 1_000)),
      // Bodies are bounded where they are read; the listener's own bound would answer with a bare 413.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      reusePort: shared,
      development: false,
      routes: { '/': route },
      error: () => internalError(),
      ...(tls === undefined ? {} : { tls: { cert: Bun.file(tls.certPath), key: Bun.file(tls.keyPath) } }),
    },
  })
    .onError(({ code }) => (code === 'NOT_FOUND' ? notFound() : internalError()))
    .get('/health', () => {
      const { ok, sentence } = leaving.hasBegun() ? DRAINING : health();
      return new Response(`${sentence}\n`, { status: ok ? 200 : 503 });
    });
}

function notFound(): Response {
  return new Response('Not found. The RPC endpoint is POST /.\n', { status: 404 });
}

/** The one place where the unexpected ends; its message stays inside. */
function internalError(): Response {
  const body = '{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":null}';
  return new Response(body, { status: 500, headers: { 'content-type': JSON_TYPE } });
}

type Listening =
  | {
      readonly kind: 'listening';
      readonly url: URL;
      /**
       * Sends callers away for as long as they come, at most `leaveMs`; then takes no more connections, lets answers
       * under way end, and cuts them `drainMs` after the call.
       */
      close(drainMs: number, leaveMs: number): Promise<void>;
    }
  | { readonly kind: 'refused'; readonly sentence: string };

type ListenOptions = Readonly<{
  clock: Clock;
  /** Other processes of ours listen on the same address; whether a stranger has it is then not noticed here. */
  shared: boolean;
}>;

/** Opens the RPC listener, or says in one sentence why it cannot be had. */
export function listen(
  config: GatewayConfig,
  { answer, health }: Pick<Gateway, 'answer' | 'health'>,
  { clock, shared }: ListenOptions,
): Listening {
  const unreadable = unreadableTls(config.tls);
  if (unreadable !== undefined) return { kind: 'refused', sentence: unreadable };
  const leaving = createLeaving(clock);
  const app = createApp(config, answer, health, { shared, leaving });
  try {
    app.listen(config.listen);
  } catch (error) {
    const sentence = listenComplaint('gateway.listen', config.listen, error);
    return {
      kind: 'refused',
      sentence: config.tls === undefined || isAboutAddress(error) ? sentence : badTls(error),
    };
  }
  const listen = { hostname: config.listen.hostname, port: app.server?.port ?? config.listen.port };
  return { kind: 'listening', url: gatewayUrl({ ...config, listen }), close };

  async function close(drainMs: number, leaveMs: number): Promise<void> {
    const closed = new AbortController();
    void clock.sleep(drainMs, closed.signal).then(() => {
      if (!closed.signal.aborted) void app.server?.stop(true);
    });
    if (leaveMs > 0) await leaving.begin(leaveMs);
    await app.server?.stop();
    closed.abort();
  }
}

function isAboutAddress(error: unknown): boolean {
  return error instanceof Error && 'code' in error && /^EA(DDR|CCES)/.test(String(error.code));
}

function badTls(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate and key of gateway.tls cannot be used (${reason}).`;
}

/** How long requests under way may take to end after a stop was asked for. */
const DRAIN_MS = 25_000;

/** How long callers are sent away before the listener closes: a load balancer looks at the health two or three times. */
const LEAVE_MS = 5_000;

type Opened =
  | {
      readonly kind: 'open';
      readonly url: URL;
      /** `undefined` when the supervisor has the metrics. */
      readonly metricsUrl: URL | undefined;
      /** Resolves when the last answer has ended or was cut. */
      drain(): Promise<void>;
    }
  | { readonly kind: 'refused'; readonly sentence: string }
  /** A stop was asked for before it could listen. */
  | { readonly kind: 'stopped' };

type OpeningOptions = Readonly<{ clock: Clock; seat: Seat | undefined; stop: AbortSignal }>;

/** Opens what a gateway process listens on: alone, both listeners; in a seat, the RPC listener on the port it is given. */
export async function openListeners(
  config: GatewayConfig,
  gateway: Gateway,
  { clock, seat, stop }: OpeningOptions,
): Promise<Opened> {
  return seat === undefined
    ? openAlone(config, gateway, clock)
    : openSeated(config, gateway, clock, seat, stop);
}

function openAlone(config: GatewayConfig, gateway: Gateway, clock: Clock): Opened {
  const rpc = listen(config, gateway, { clock, shared: false });
  if (rpc.kind === 'refused') return rpc;
  const metrics = listenForMetrics(config.metrics, gateway.metrics, gateway.status);
  if (metrics.kind === 'refused') {
    void rpc.close(0, 0);
    return metrics;
  }
  return {
    kind: 'open',
    url: rpc.url,
    metricsUrl: metrics.url,
    async drain() {
      await rpc.close(DRAIN_MS, LEAVE_MS);
      await metrics.close();
    },
  };
}

async function openSeated(
  config: GatewayConfig,
  gateway: Gateway,
  clock: Clock,
  seat: Seat,
  stop: AbortSignal,
): Promise<Opened> {
  const port = await Promise.race([seat.port(), fired(stop)]);
  if (port === undefined) return { kind: 'stopped' };
  const address = { hostname: config.listen.hostname, port };
  const rpc = listen({ ...config, listen: address }, gateway, { clock, shared: true });
  if (rpc.kind === 'refused') return rpc;
  return {
    kind: 'open',
    url: rpc.url,
    metricsUrl: undefined,
    drain: () => rpc.close(DRAIN_MS, LEAVE_MS),
  };
}
