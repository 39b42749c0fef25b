import type { Clock } from '../shared/clock.ts';
import { type GatewayConfig, gatewayUrl } from '../shared/config/config.ts';
import { unreadableTls } from '../shared/config/load.ts';
import { listenComplaint } from '../shared/process.ts';
import type { AnswerRequest } from './answer.ts';
import { CallerConnection, type Listener } from './listener/caller-connection.ts';
import { NULL_ID, rpcError } from './request/envelope.ts';
import type { RpcRequest, RpcResponse } from './listener/http.ts';
import { JSON_TYPE } from './respond/refusal.ts';
import type { Health } from './status.ts';

/** A connection pool in use sends its next request within this time. */
const QUIET_MS = 250;

/** A caller that reads nothing is cut by the idle limit of its stream, exactly, and by its connection's so much later. */
const IDLE_SLACK_MS = 8_000;

const TICK_MS = 1_000;

/** The path of a target, which may be a whole URL (RFC 9112 3.2.2). */
const PATH = /^(?:https?:\/\/[^/?#]*)?([^?#]*)/i;

type Stages = Readonly<{ answer: AnswerRequest; health: Health }>;

/** The routes. `POST /` alone, with or without a query, comes to its handler without a look at a pattern. */
function createRoutes({ answer, health }: Stages): AnswerRequest {
  const ready = () => {
    const { ok, sentence } = health();
    return text(ok ? 200 : 503, `${sentence}\n`);
  };
  const pages = new Map([
    ['/health', ready],
    ['/health/ready', ready],
    ['/health/live', () => text(200, 'ok\n')],
  ]);
  return function route(request: RpcRequest) {
    const { url, method } = request;
    if (url === '/' || url.startsWith('/?')) return answer(request);
    const [, path = ''] = PATH.exec(url) ?? [];
    if (path === '/' || path === '') return answer(request);
    const page = method === 'GET' || method === 'HEAD' ? pages.get(path) : undefined;
    return page?.() ?? NOT_FOUND;
  };
}

function text(status: number, sentence: string): RpcResponse {
  return { status, fields: { 'content-type': 'text/plain;charset=utf-8' }, body: Buffer.from(sentence) };
}

const NOT_FOUND: RpcResponse = {
  status: 404,
  fields: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify({ error: 'Not found. The RPC endpoint is POST /.' })),
};

/** Unexpected errors end here; their messages are not sent. */
function internalError(): RpcResponse {
  const { bytes } = rpcError(-32603, 'Internal error', NULL_ID);
  return { status: 500, fields: { 'content-type': JSON_TYPE }, body: bytes };
}

/** The field `date`, made once a second. */
function createDate(clock: Clock) {
  let second = -1;
  let date = '';
  return () => {
    const now = Math.floor(clock.now() / 1_000);
    if (now !== second) date = new Date(now * 1_000).toUTCString();
    second = now;
    return date;
  };
}

/** So long at most the listener stays open after a stop, while requests come: a load balancer reads the health two or three times. */
const LEAVE_MS = 5_000;

/** Opens the RPC listener, or says in one sentence why it cannot. `shared`: other workers listen on the same address. */
export function listen(
  config: GatewayConfig,
  { answer, health }: Stages,
  { clock, shared }: Readonly<{ clock: Clock; shared: boolean }>,
) {
  const { tls } = config;
  const unreadable = unreadableTls(tls);
  if (unreadable !== undefined) return { kind: 'refused', sentence: unreadable } as const;
  let isDraining = false;
  let requestAtMs = 0;
  let isStopped = false;
  const connections = new Set<CallerConnection>();
  /** Resolves when no connection is left after the stop. */
  const allClosed = Promise.withResolvers<void>();
  const ended = new AbortController();
  const route = createRoutes({
    answer,
    health: () => (isDraining ? { ok: false, sentence: 'draining' } : health()),
  });
  const listener: Listener = {
    clock,
    quietMs: config.idleMs + IDLE_SLACK_MS,
    answer(request) {
      if (isDraining) requestAtMs = clock.monotonic();
      return route(request);
    },
    internalError,
    isDraining: () => isDraining,
    date: createDate(clock),
    onClose(connection) {
      connections.delete(connection);
      if (isStopped && connections.size === 0) allClosed.resolve();
    },
  };
  const opened = open();
  if (typeof opened === 'string') return { kind: 'refused', sentence: opened } as const;
  const socket = opened;
  const url = gatewayUrl({ ...config, listen: { ...config.listen, port: socket.port } });
  void tick();
  return {
    kind: 'listening',
    url,
    /** Closes connections without a request under way, unfinished heads and handshakes too: for when descriptors are short. */
    closeIdle,
    close,
  } as const;

  function open() {
    try {
      return Bun.listen<CallerConnection>({
        hostname: config.listen.hostname,
        port: config.listen.port,
        // The runtime has it, its type does not.
        ...(shared ? { reusePort: true } : {}),
        ...(tls === undefined ? {} : { tls: { cert: Bun.file(tls.certPath), key: Bun.file(tls.keyPath) } }),
        socket: {
          open(socket) {
            socket.data = new CallerConnection(socket, listener);
            connections.add(socket.data);
            socket.setNoDelay(true);
          },
          // Without it the runtime opens a connection only after its handshake: one that sends none would never end.
          handshake: () => undefined,
          data: ({ data }, bytes) => data.onData(bytes),
          drain: ({ data }) => data.onDrain(),
          close: ({ data }) => data?.onClose(),
          error: ({ data }) => data?.destroy(),
        },
      });
    } catch (error) {
      return refusalOf(config, error);
    }
  }

  async function tick(): Promise<void> {
    while (!ended.signal.aborted) {
      await clock.sleep(TICK_MS, ended.signal);
      for (const connection of connections) connection.onTick(clock.monotonic());
    }
  }

  function closeIdle(): void {
    for (const connection of connections) if (connection.isIdle) connection.destroy();
  }

  /** Drains while requests come, for `leaveMs` at most; lets responses under way end, and cuts them after `drainMs`. */
  async function close(drainMs = config.drainMs, leaveMs = LEAVE_MS): Promise<void> {
    const cut = clock.sleep(drainMs, ended.signal);
    isDraining = true;
    requestAtMs = clock.monotonic();
    const endMs = requestAtMs + Math.min(leaveMs, drainMs);
    const waitMs = () => Math.min(requestAtMs + QUIET_MS, endMs) - clock.monotonic();
    // New connections are still accepted, for clients that do not know yet.
    while (waitMs() > 0 && !ended.signal.aborted) await clock.sleep(waitMs(), ended.signal);
    socket.stop();
    isStopped = true;
    // The last that were accepted bring their first request yet.
    if (connections.size > 0 && leaveMs > 0)
      await Promise.race([cut, allClosed.promise, clock.sleep(QUIET_MS, ended.signal)]);
    for (const connection of connections) connection.endWhenAnswered();
    if (connections.size > 0) await Promise.race([cut, allClosed.promise]);
    for (const connection of connections) connection.destroy();
    ended.abort();
  }
}

function refusalOf({ listen: address, tls }: GatewayConfig, error: unknown): string {
  const isAboutAddress =
    error instanceof Error && 'code' in error && /^EA(DDR|CCES)/.test(String(error.code));
  if (tls === undefined || isAboutAddress) return listenComplaint('gateway.listen', address, error);
  const reason = error instanceof Error ? error.message : String(error);
  return `The certificate and key of gateway.tls cannot be used (${reason}).`;
}
