import type { Clock } from '../shared/clock.ts';
import type { Environment } from '../shared/config/table.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';

/** One metric of a process with its values, in prom-client's own shape; it goes from process to process as JSON. */
export type MetricJson = Readonly<{
  name: string;
  /** `counter`, `gauge`, `histogram` or `summary`. */
  type: string;
  values: readonly Readonly<{ value: number; labels: Readonly<Record<string, string | number>> }>[];
}>;

/** The metrics of a registry; prom-client declares `type` to be a number, and writes the word. */
export function metricsFrom(values: readonly Readonly<{ name: string }>[]): readonly MetricJson[] {
  return values as readonly MetricJson[]; // the shape is the one that prom-client's own aggregation reads
}

/** What a supervisor tells one of its processes, over the channel that the system opens between parent and child. */
type ToChild =
  /** It may listen now, on this port. */
  | { readonly kind: 'listen'; readonly port: number }
  /** It is asked for its metrics; the answer carries the number. */
  | { readonly kind: 'count'; readonly ask: number }
  /** It is asked how its backends stand; the answer carries the number. */
  | { readonly kind: 'tell'; readonly ask: number };

/** What a process tells its supervisor. */
export type FromChild =
  /** Everything but its listener is open. */
  | { readonly kind: 'prepared' }
  | { readonly kind: 'listening' }
  | { readonly kind: 'counted'; readonly ask: number; readonly metrics: readonly MetricJson[] }
  | { readonly kind: 'told'; readonly ask: number; readonly status: GatewayStatus };

/**
 * A message of the other side. Both sides are this project at nearly the same version, so the kind alone is looked at;
 * `undefined` for one that only another version knows.
 */
function messageFrom<Message extends ToChild | FromChild>(
  value: unknown,
  kinds: readonly Message['kind'][],
): Message | undefined {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined;
  // The kind is one that the sender's type has, and the sender fills in the rest of it.
  return kinds.some((kind) => kind === value.kind) ? (value as Message) : undefined;
}

/** This process's place among those that a supervisor runs; one without a supervisor has none. */
export type Seat = Readonly<{
  /** From 1 to `gateway.processes`; the same for a process that takes another's place. */
  slot: number;
  /** Says that all else is ready; resolves to the port on which it may listen. */
  port(): Promise<number>;
  /** Says that it listens, and answers from now on what it has counted and how its backends stand. */
  serve(count: () => Promise<readonly MetricJson[]>, status: () => GatewayStatus): void;
}>;

/** The end of the channel to the supervisor that a process holds; `send` is there only when a parent opened one. */
type Channel = Readonly<{
  send?: ((message: FromChild) => unknown) | undefined;
  on(event: 'message', take: (message: unknown) => void): unknown;
}>;

/** The environment variable that carries a process's slot from the supervisor to it; its name is no one's interface. */
export const SLOT_VARIABLE = 'SLUICE_GATEWAY_SLOT';

/**
 * The seat of a process that was started with `slot` and a channel; `undefined` for any other. When the supervisor
 * dies no message comes any more; it is the end of standard input that tells so.
 */
export function seatOf(slot: string | undefined, channel: Channel): Seat | undefined {
  if (slot === undefined || channel.send === undefined) return undefined;
  const port = Promise.withResolvers<number>();
  let count: () => Promise<readonly MetricJson[]> = () => Promise.resolve([]);
  let status: (() => GatewayStatus) | undefined;
  channel.on('message', (value) => {
    const message = messageFrom<ToChild>(value, ['listen', 'count', 'tell']);
    if (message?.kind === 'listen') port.resolve(message.port);
    if (message?.kind === 'tell' && status !== undefined)
      say({ kind: 'told', ask: message.ask, status: status() });
    if (message?.kind === 'count') void answer(message.ask);
  });

  async function answer(ask: number): Promise<void> {
    say({ kind: 'counted', ask, metrics: await count() });
  }

  function say(message: FromChild): void {
    try {
      channel.send?.(message);
    } catch {
      // The supervisor is gone; standard input has ended too.
    }
  }

  return {
    slot: Number(slot),
    port() {
      say({ kind: 'prepared' });
      return port.promise;
    },
    serve(counting, telling) {
      count = counting;
      status = telling;
      say({ kind: 'listening' });
    },
  };
}

/** What a process says on stderr. */
type Words = Readonly<{
  /** The end of it, at most some 4,000 characters. */
  last(): string;
  /** Hands on what was held back, and everything from now on as it comes. */
  release(): void;
  /** Resolves when the stream has ended. */
  ended: Promise<void>;
}>;

const LENGTH_MAX = 4_096;

/** Reads `stream` to its end; nothing goes to `out` before `release`. */
export function createWords(stream: ReadableStream<Uint8Array>, out: (bytes: Uint8Array) => void): Words {
  const decoder = new TextDecoder();
  let last = '';
  let released = false;

  async function read(): Promise<void> {
    for await (const bytes of stream) {
      last = (last + decoder.decode(bytes, { stream: true })).slice(-LENGTH_MAX);
      if (released) out(bytes);
    }
  }

  function release(): void {
    if (!released && last !== '') out(Buffer.from(last));
    released = true;
  }

  return { last: () => last.trim(), release, ended: read() };
}

/** How a process of the crew ended, as far as the wait before the next one depends on it. */
export type Life = Readonly<{ listened: boolean; livedMs: number }>;

/** What is remembered of a seat between two processes: deaths in a row that came soon, and those before it listened. */
type DeathRecord = Readonly<{ soon: number; stillborn: number }>;

export const CLEAN: DeathRecord = { soon: 0, stillborn: 0 };

/** A process that has listened for this long has shown that it can: its death is a new story. */
const PROVEN_MS = 10_000;

const WAIT_MS = 100;
const WAIT_MS_MAX = 10_000;

/** After so many deaths in a row before listening, there is no reason to believe in the next. */
export const STILLBORN_MAX = 5;

/** The record after a death. */
export function afterDeath({ soon, stillborn }: DeathRecord, { listened, livedMs }: Life): DeathRecord {
  return { soon: listened && livedMs >= PROVEN_MS ? 1 : soon + 1, stillborn: listened ? 0 : stillborn + 1 };
}

/** How long a seat stays empty after its latest death: not at all after the first, then twice as long each time. */
export function waitMsAfter({ soon }: DeathRecord): number {
  return soon <= 1 ? 0 : Math.min(WAIT_MS_MAX, WAIT_MS * 2 ** (soon - 2));
}

/** How a process ended: its code or signal, and the last it said on stderr. */
export type Ending = Readonly<{ how: string; words: string }>;

/** One process of the crew, as its supervisor sees it. */
export type Child = Readonly<{
  pid: number;
  /** Resolves to whether it came to listen, or ended before. */
  listening: Promise<boolean>;
  ended: Promise<Ending>;
  /** Its metrics; `undefined` when it does not answer in time. */
  count(): Promise<readonly MetricJson[] | undefined>;
  /** How its backends stand; `undefined` when it does not answer in time. */
  status(): Promise<GatewayStatus | undefined>;
  signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void;
}>;

/** In place of a process that the system refused to start: one that has ended. */
export function unborn(error: unknown): Child {
  const words = `A gateway process could not be started (${error instanceof Error ? error.message : String(error)}).`;
  return {
    pid: 0,
    listening: Promise.resolve(false),
    ended: Promise.resolve({ how: 'not started', words }),
    count: () => Promise.resolve(undefined),
    status: () => Promise.resolve(undefined),
    signal: () => undefined,
  };
}

type Launch = Readonly<{
  slot: number;
  /** The entry point and its arguments. */
  command: readonly string[];
  env: Environment;
  /** Asked for once the process has everything but its listener. */
  port(): Promise<number>;
  /** Where its words go once it has listened; until then they are its last ones, if it ends. */
  err(bytes: Uint8Array): void;
  clock: Clock;
}>;

/** How long a process may take to come to listen. */
const START_MS_MAX = 60_000;
const ANSWER_MS_MAX = 1_000;

/**
 * Starts a process in a seat. It stays in this process's group, so that whoever ends the group ends it too; and it
 * holds the other end of our pipe as its standard input, whose end tells it that we died, however we died.
 */
export function launchChild({ slot, command, env, port, err, clock }: Launch): Child {
  const first = Promise.withResolvers<boolean>();
  const asked = new Map<number, (answer: FromChild) => void>();
  let asks = 0;
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...env, SLUICE_SUPERVISED: '1', [SLOT_VARIABLE]: String(slot) },
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'pipe',
    ipc: take,
    serialization: 'json',
  });
  const words = createWords(child.stderr, err);
  const over = new AbortController();
  const ended = Promise.all([child.exited, words.ended]).then((): Ending => {
    over.abort();
    first.resolve(false);
    return { how: String(child.signalCode ?? `code ${child.exitCode}`), words: words.last() };
  });
  void clock.sleep(START_MS_MAX, over.signal).then(() => {
    if (!over.signal.aborted) signal('SIGKILL');
  });

  function take(value: unknown): void {
    const message = messageFrom<FromChild>(value, ['prepared', 'listening', 'counted', 'told']);
    if (message?.kind === 'prepared') void port().then((mine) => say({ kind: 'listen', port: mine }));
    if (message?.kind === 'counted' || message?.kind === 'told') asked.get(message.ask)?.(message);
    if (message?.kind === 'listening') {
      over.abort();
      words.release();
      first.resolve(true);
    }
  }

  function say(message: ToChild): void {
    try {
      child.send(message);
    } catch {
      // It is gone; its end says so.
    }
  }

  /** Asks the process; `undefined` when it does not answer in time. */
  async function answerTo(kind: 'count' | 'tell'): Promise<FromChild | undefined> {
    const ask = asks++;
    const late = new AbortController();
    const { promise, resolve } = Promise.withResolvers<FromChild>();
    asked.set(ask, resolve);
    say({ kind, ask });
    const answer = await Promise.race([promise, clock.sleep(ANSWER_MS_MAX, late.signal)]);
    late.abort();
    asked.delete(ask);
    return answer ?? undefined;
  }

  async function count(): Promise<readonly MetricJson[] | undefined> {
    const answer = await answerTo('count');
    return answer?.kind === 'counted' ? answer.metrics : undefined;
  }

  async function status(): Promise<GatewayStatus | undefined> {
    const answer = await answerTo('tell');
    return answer?.kind === 'told' ? answer.status : undefined;
  }

  function signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void {
    child.kill(name);
  }

  return { pid: child.pid, listening: first.promise, ended, count, status, signal };
}
