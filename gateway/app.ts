import { Elysia } from 'elysia';
import type { GatewayConfig } from '../shared/config/config.ts';
import type { AnswerRequest } from './answer.ts';
import type { Health } from './health.ts';
import type { Leaving } from './leaving.ts';

/** `shared`: other processes of ours listen on the same address, and the system spreads connections over all. */
export type AppOptions = Readonly<{ shared: boolean; leaving: Leaving }>;

const IDLE_SECONDS_MIN = 8;
const DRAINING = { ok: false, sentence: 'draining' };
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * The listener. The RPC route is one of Bun's own, beside Elysia's: it takes the raw request and its Response goes
 * out untouched, because Elysia reads and re-encodes a stream as soon as anything has set a header on it.
 */
export function createApp(
  { idleMs, tls }: GatewayConfig,
  answer: AnswerRequest,
  health: Health,
  { shared, leaving }: AppOptions,
) {
  const route: AnswerRequest = (request, peers) =>
    leaving.hasBegun() ? leaving.last(answer(request, peers)) : answer(request, peers);
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
