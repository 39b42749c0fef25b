import type { Clock } from '../../shared/clock.ts';
import { type GatewayConfig, gatewayUrl } from '../../shared/config/config.ts';
import type { Listen } from '../../shared/config/kinds.ts';
import { BodyBudget } from './body-budget.ts';
import { CallerConnection, type Listener } from './caller-connection.ts';
import { CallerRequest } from './caller-request.ts';
import { Intake } from './intake.ts';

/** A connection pool in use sends its next request within this time. */
const QUIET_MS = 250;

/** A caller that reads nothing is cut by the idle limit of its stream, exactly, and by its connection's so much later. */
const IDLE_SLACK_MS = 8_000;

/** Where descriptors are short, an account may have so many bodies under way, and such a part of all connections. */
const UPLOADS_SPARED = 16;
const UPLOADS_PART = 1 / 8;

const TICK_MS = 500;

const BEAT_MS = 1_000;

/** So long at most the listener stays open after a stop, while requests come: a load balancer reads the health two or three times. */
const LEAVE_MS = 5_000;

export type SocketListener = ReturnType<typeof createListener>;

export type ListenerOptions = Readonly<{
  clock: Clock;
  /** Whether other workers listen on the same address. */
  shared: boolean;
  /** Called about once a second while requests are answered: timers may have no turn meanwhile. */
  beat?: (() => void) | undefined;
}>;

/** A listener for the connections of callers, which is opened once (docs/decisions/listener.md). */
export function createListener(config: GatewayConfig, { clock, shared, beat }: ListenerOptions) {
  let address = config.listen;
  let socket: Bun.TCPSocketListener<CallerConnection> | undefined;
  let isDraining = false;
  let requestAtMs = 0;
  let beatAtMs = 0;
  let isStopped = false;
  let closing: Promise<void> | undefined;
  const connections = new Set<CallerConnection>();
  /** Resolves when no connection is left after the stop. */
  const allClosed = Promise.withResolvers<void>();
  const ended = new AbortController();
  return { open, url, closeIdle, close, isDraining: () => isDraining };

  /** Throws where the address, the certificate or its key cannot be used. Gives what hooks of the app know of a server. */
  function open(at: Partial<Listen>, fetch: (request: Request) => unknown) {
    if (socket !== undefined) throw new Error('It has been opened already.');
    const { tls } = config;
    address = { ...address, ...at };
    const listener: Listener = {
      clock,
      bodies: new BodyBudget(config.bodiesBytes),
      intake: new Intake(connections),
      quietMs: config.idleMs + IDLE_SLACK_MS,
      answer(request) {
        if (isDraining) requestAtMs = clock.monotonic();
        if (beat !== undefined && clock.monotonic() >= beatAtMs) {
          beatAtMs = clock.monotonic() + BEAT_MS;
          beat();
        }
        // It has what Elysia reads of a request, and gets what the adapter made of the answer.
        return fetch(request as unknown as Request) as ReturnType<Listener['answer']>;
      },
      isDraining: () => isDraining,
      date: createDate(clock),
      onClose(connection) {
        connections.delete(connection);
        if (isStopped && connections.size === 0) allClosed.resolve();
      },
    };
    socket = Bun.listen<CallerConnection>({
      ...address,
      allowHalfOpen: true,
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
        end: ({ data }) => data.onHalfClose(),
        drain: ({ data }) => data.onDrain(),
        close: ({ data }) => data?.onClose(),
        error: ({ data }) => data?.destroy(),
      },
    });
    address = { ...address, port: socket.port };
    void tick();
    return {
      ...address,
      url: url(),
      development: false,
      requestIP: (request: unknown) => (request instanceof CallerRequest ? request.peer : null),
      stop: (isNow = false) => (isNow ? close(0, 0) : close()),
    };
  }

  function url(): URL {
    return gatewayUrl({ ...config, listen: address });
  }

  async function tick(): Promise<void> {
    while (!ended.signal.aborted) {
      await clock.sleep(TICK_MS, ended.signal);
      for (const connection of connections) connection.onTick(clock.monotonic());
    }
  }

  /**
   * For when descriptors are short: closes connections without a whole request under way, and unfinished handshakes; the
   * bodies of an account only if those alone would keep others out.
   */
  function closeIdle(): void {
    const most = Math.max(UPLOADS_SPARED, connections.size * UPLOADS_PART);
    const uploads = new Map<number, CallerConnection[]>();
    for (const connection of connections) {
      const { uploader } = connection;
      if (connection.isSpare) connection.destroy();
      else if (uploader !== undefined) uploads.getOrInsert(uploader, []).push(connection);
    }
    for (const held of uploads.values())
      if (held.length > most) for (const connection of held) connection.destroy();
  }

  /** Drains, once; with no time for it, cuts what is under way, also when it drains already. */
  function close(drainMs = config.drainMs, leaveMs = LEAVE_MS): Promise<void> {
    if (drainMs === 0 && closing !== undefined) ended.abort();
    return (closing ??= drain(drainMs, leaveMs));
  }

  /** Drains while requests come, for `leaveMs` at most; lets responses under way end, and cuts them after `drainMs`. */
  async function drain(drainMs: number, leaveMs: number): Promise<void> {
    const cut = clock.sleep(drainMs, ended.signal);
    isDraining = true;
    requestAtMs = clock.monotonic();
    const endMs = requestAtMs + Math.min(leaveMs, drainMs);
    const waitMs = () => Math.min(requestAtMs + QUIET_MS, endMs) - clock.monotonic();
    // New connections are still accepted, for clients that do not know yet.
    while (waitMs() > 0 && !ended.signal.aborted) await clock.sleep(waitMs(), ended.signal);
    socket?.stop();
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
