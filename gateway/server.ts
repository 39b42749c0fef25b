import {
  Elysia,
  type ElysiaAdapter,
  ElysiaCustomStatusResponse,
  InvalidCookieSignature,
  NotFoundError,
  ParseError,
} from 'elysia';
import type { GatewayConfig } from '../shared/config/config.ts';
import { unreadableTls } from '../shared/config/load.ts';
import { listenComplaint } from '../shared/process.ts';
import type { AnswerRequest } from './answer.ts';
import { createAdapter } from './listener/adapter.ts';
import { RpcResponse } from './listener/rpc.ts';
import { type ListenerOptions, SocketListener } from './listener/listener.ts';
import { rpcRequestOf } from './listener/web.ts';
import { NULL_ID, rpcError } from './request/envelope.ts';
import { JSON_TYPE } from './respond/refusal.ts';
import { type Health, HOST_DRAINING } from './health.ts';

type ServerStages = Readonly<{ answer: AnswerRequest; health: Health }>;

const UNREAD = { parse: 'none' } as const;

/**
 * The routes, for `adapter` or for an app that uses them. `answer` reads the body of `/` itself, in its own bounds, and
 * refuses other methods than POST. HEAD is named beside GET: the one that Elysia makes sets fields on a `Response`. Nothing is
 * precompiled: a route that is loses the fields that hooks behind it set.
 */
export function createApp({ answer, health }: ServerStages, adapter: ElysiaAdapter) {
  // By its text Elysia sees that it is to be awaited, so that errors come to `onError`.
  const rpc = ({ request }: { request: Request }) => answer(rpcRequestOf(request));
  const ready = () => {
    const { ok, sentence } = health();
    return text(ok ? 200 : 503, sentence);
  };
  const live = () => text(200, 'ok');

  return new Elysia({ adapter, strictPath: true, handler: { standardHostname: false } })
    .onError({ as: 'global' }, ({ error }) => {
      if (error instanceof NotFoundError) return NOT_FOUND;
      return isRefusal(error) ? undefined : INTERNAL_ERROR;
    })
    .post('/', rpc, UNREAD)
    .head('/', rpc)
    .all('/', rpc, UNREAD)
    .get('/health', ready)
    .head('/health', ready)
    .get('/health/ready', ready)
    .head('/health/ready', ready)
    .get('/health/live', live)
    .head('/health/live', live);
}

/** Whether an error is how a plugin's route refuses a request: Elysia knows its answer. */
function isRefusal(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  if ('toResponse' in error && typeof error.toResponse === 'function') return true;
  return REFUSALS.some((each) => error instanceof each);
}

const REFUSALS = [ElysiaCustomStatusResponse, ParseError, InvalidCookieSignature];

function text(status: number, sentence: string): RpcResponse {
  const fields = { 'content-type': 'text/plain;charset=utf-8' };
  return new RpcResponse({ status, fields, body: Buffer.from(`${sentence}\n`) });
}

const NOT_FOUND = new RpcResponse({
  status: 404,
  fields: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify({ error: 'Not found. The RPC endpoint is POST /.' })),
});

/** Unexpected errors end here; their messages are not sent. */
const INTERNAL_ERROR = new RpcResponse({
  status: 500,
  fields: { 'content-type': JSON_TYPE },
  body: rpcError(-32603, 'Internal error', NULL_ID).bytes,
});

/** Opens the app on its address, or says in one sentence why it cannot. */
export function listen(config: GatewayConfig, { answer, health }: ServerStages, options: ListenerOptions) {
  const unreadable = unreadableTls(config.tls);
  if (unreadable !== undefined) return { kind: 'refused', sentence: unreadable } as const;
  const listener = new SocketListener(config, options);
  // One of several that drains alone says how the host is.
  const healthNow = () => (listener.isDraining && !options.shared ? HOST_DRAINING : health());
  const app = createApp({ answer, health: healthNow }, createAdapter(listener));
  try {
    app.listen(config.listen);
  } catch (error) {
    return { kind: 'refused', sentence: refusalOf(config, error) } as const;
  }
  return {
    kind: 'listening',
    app,
    url: listener.url,
    closeIdle: () => listener.closeIdle(),
    /** `app.stop()`, with other limits than those of the config. */
    async close(drainMs?: number, leaveMs?: number): Promise<void> {
      await listener.close(drainMs, leaveMs);
      await app.stop();
    },
  } as const;
}

function refusalOf({ listen: address, tls }: GatewayConfig, error: unknown): string {
  const isAboutAddress =
    error instanceof Error && 'code' in error && /^EA(DDR|CCES)/.test(String(error.code));
  if (tls === undefined || isAboutAddress) return listenComplaint('gateway.listen', address, error);
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate and key of gateway.tls cannot be used (${reason}).`;
}
