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

export type ListenerOptions = Readonly<{
  clock: Clock;
  /** Whether other workers listen on the same address. */
  shared: boolean;
  /** Called about once a second while requests are answered: timers may have no turn meanwhile. */
  beat?: (() => void) | undefined;
}>;

type ListenerState = 'new' | 'open' | 'draining' | 'stopped';

/**
 * A listener for the connections of callers, which is opened once (docs/decisions/listener.md).
 *
 *     new ── open ──▶ open ── close ──▶ draining ── no request for 250 ms, 5 s, or no time for it ──▶ stopped
 *
 * Draining it still accepts connections, for clients that do not know yet, and each ends with its answer. Stopped it accepts none,
 * and `close` resolves when the last has ended, or was cut.
 */
export class SocketListener {
  readonly #config: GatewayConfig;
  readonly #clock: Clock;
  readonly #options: ListenerOptions;
  #state: ListenerState = 'new';
  #address: Listen;
  #socket: Bun.TCPSocketListener<CallerConnection> | undefined;
  #requestAtMs = 0;
  #beatAtMs = 0;
  #closing: Promise<void> | undefined;
  readonly #connections = new Set<CallerConnection>();
  /** Resolves when no connection is left after the stop. */
  readonly #allClosed = Promise.withResolvers<void>();
  /** Aborts when nothing is waited for any more. */
  readonly #ended = new AbortController();

  constructor(config: GatewayConfig, options: ListenerOptions) {
    this.#config = config;
    this.#options = options;
    this.#clock = options.clock;
    this.#address = config.listen;
  }

  get url(): URL {
    return gatewayUrl({ ...this.#config, listen: this.#address });
  }

  get isDraining(): boolean {
    return this.#state === 'draining' || this.#state === 'stopped';
  }

  /** Throws where the address, the certificate or its key cannot be used. Gives what hooks of the app know of a server. */
  open(at: Partial<Listen>, fetch: (request: Request) => unknown) {
    if (this.#state !== 'new') throw new Error('It has been opened already.');
    const { tls } = this.#config;
    const address = { ...this.#address, ...at };
    const connections = this.#connections;
    const listener = this.#listener(fetch);
    const socket = (this.#socket = Bun.listen<CallerConnection>({
      ...address,
      allowHalfOpen: true,
      // The runtime has it, its type does not.
      ...(this.#options.shared ? { reusePort: true } : {}),
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
    }));
    this.#state = 'open';
    this.#address = { ...address, port: socket.port };
    void this.#tick();
    return {
      ...this.#address,
      url: this.url,
      development: false,
      requestIP: (request: unknown) => (request instanceof CallerRequest ? request.peer : null),
      stop: (isNow = false) => (isNow ? this.close(0, 0) : this.close()),
    };
  }

  /** The part of it that connections see. */
  #listener(fetch: (request: Request) => unknown): Listener {
    const clock = this.#clock;
    return {
      clock,
      bodies: new BodyBudget(this.#config.bodiesBytes),
      intake: new Intake(this.#connections),
      quietMs: this.#config.idleMs + IDLE_SLACK_MS,
      answer: (request) => {
        if (this.#state !== 'open') this.#requestAtMs = clock.monotonic();
        this.#beat();
        const asElysiaReads = request as unknown as Request; // it has what Elysia reads of one
        return fetch(asElysiaReads) as ReturnType<Listener['answer']>; // what the adapter made of the answer
      },
      isDraining: () => this.#state !== 'open',
      date: createDate(clock),
      onClose: (connection) => {
        this.#connections.delete(connection);
        if (this.#state === 'stopped' && this.#connections.size === 0) this.#allClosed.resolve();
      },
    };
  }

  #beat(): void {
    const { beat } = this.#options;
    if (beat === undefined || this.#clock.monotonic() < this.#beatAtMs) return;
    this.#beatAtMs = this.#clock.monotonic() + BEAT_MS;
    beat();
  }

  async #tick(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      await this.#clock.sleep(TICK_MS, this.#ended.signal);
      for (const connection of this.#connections) connection.onTick(this.#clock.monotonic());
    }
  }

  /**
   * For when descriptors are short: closes connections without a whole request under way, and unfinished handshakes; the
   * bodies of an account only if those alone would keep others out.
   */
  closeIdle(): void {
    const most = Math.max(UPLOADS_SPARED, this.#connections.size * UPLOADS_PART);
    const uploads = new Map<number, CallerConnection[]>();
    for (const connection of this.#connections) {
      const { uploader } = connection;
      if (connection.isSpare) connection.destroy();
      else if (uploader !== undefined) uploads.getOrInsert(uploader, []).push(connection);
    }
    for (const held of uploads.values())
      if (held.length > most) for (const connection of held) connection.destroy();
  }

  /** Drains, once; with no time for it, cuts what is under way, also when it drains already. */
  close(drainMs = this.#config.drainMs, leaveMs = LEAVE_MS): Promise<void> {
    if (drainMs === 0 && this.#closing !== undefined) this.#ended.abort();
    return (this.#closing ??= this.#drain(drainMs, leaveMs));
  }

  /** Drains while requests come, for `leaveMs` at most; lets responses under way end, and cuts them after `drainMs`. */
  async #drain(drainMs: number, leaveMs: number): Promise<void> {
    const clock = this.#clock;
    const { signal } = this.#ended;
    const cut = clock.sleep(drainMs, signal);
    this.#state = 'draining';
    this.#requestAtMs = clock.monotonic();
    const endMs = this.#requestAtMs + Math.min(leaveMs, drainMs);
    const waitMs = () => Math.min(this.#requestAtMs + QUIET_MS, endMs) - clock.monotonic();
    while (waitMs() > 0 && !signal.aborted) await clock.sleep(waitMs(), signal);
    this.#socket?.stop();
    this.#state = 'stopped';
    const { promise: allClosed } = this.#allClosed;
    // The last that were accepted bring their first request yet.
    if (this.#connections.size > 0 && leaveMs > 0)
      await Promise.race([cut, allClosed, clock.sleep(QUIET_MS, signal)]);
    for (const connection of this.#connections) connection.endWhenAnswered();
    if (this.#connections.size > 0) await Promise.race([cut, allClosed]);
    for (const connection of this.#connections) connection.destroy();
    this.#ended.abort();
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
