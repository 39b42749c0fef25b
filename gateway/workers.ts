import type { Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import type { Environment } from '../shared/config/table.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { writeLines } from '../shared/log.ts';

/** The metrics of a process with their values, in prom-client's own shape; they go from process to process as JSON. */
export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** What a worker has counted since it started, and the state of its backends. */
type WorkerReport = Readonly<{ metrics: MetricsJson; status: GatewayStatus }>;

/** Messages of the supervisor to a worker, over the channel that the system opens between parent and child. */
type ToWorker =
  /** It may listen now, on this port. */
  { readonly kind: 'listen'; readonly port: number } | { readonly kind: 'report' };

/** Messages of a worker to its supervisor. */
export type FromWorker =
  /** Everything but its listener is open. */
  | { readonly kind: 'prepared' }
  | { readonly kind: 'listening' }
  | { readonly kind: 'report'; readonly report: WorkerReport };

/** The environment variable that carries a worker's number from the supervisor to it; not an interface. */
export const WORKER_VARIABLE = 'SLUICE_GATEWAY_WORKER';

/** A worker's end of the channel to its supervisor. A process without a supervisor has none. */
export type SupervisorLink = NonNullable<ReturnType<typeof supervisorLinkFrom>>;

/** The channel of this process; `send` exists only when a parent opened one. */
type Channel = Readonly<{
  send?: ((message: FromWorker) => unknown) | undefined;
  on(event: 'message', take: (message: unknown) => void): unknown;
}>;

/** The link of a worker; `undefined` for another process. Standard input ends when the supervisor dies. */
export function supervisorLinkFrom(worker: string | undefined, channel: Channel) {
  if (worker === undefined || channel.send === undefined) return undefined;
  const port = Promise.withResolvers<number>();
  let report: (() => Promise<WorkerReport>) | undefined;
  channel.on('message', (value) => {
    const message = value as ToWorker | null; // the supervisor is this project; a kind of another version matches nothing
    if (message?.kind === 'listen') port.resolve(message.port);
    if (message?.kind === 'report') void report?.().then((made) => send({ kind: 'report', report: made }));
  });

  function send(message: FromWorker): void {
    try {
      channel.send?.(message);
    } catch {
      // The supervisor is gone; standard input has ended too.
    }
  }

  return {
    /** From 1 to `gateway.processes`; a worker that replaces another has its number. */
    worker: Number(worker),
    /** Reports that all else is ready; resolves to the port on which the worker may listen. */
    port(): Promise<number> {
      send({ kind: 'prepared' });
      return port.promise;
    },
    /** Reports that the worker listens, and answers every request for a report from then on. */
    serve(reportFrom: () => Promise<WorkerReport>): void {
      report = reportFrom;
      send({ kind: 'listening' });
    },
  };
}

const TAIL_CHARACTERS_MAX = 4_096;

/** Reads a worker's stderr to its end: keeps the end of its text, and forwards to `out` from `release` on, with what it kept. */
export function createStderrTail(stream: ReadableStream<Uint8Array>, out: (text: string) => void) {
  const decoder = new TextDecoder();
  let tail = '';
  let isReleased = false;

  async function read(): Promise<void> {
    for await (const bytes of stream) {
      const text = decoder.decode(bytes, { stream: true });
      tail = (tail + text).slice(-TAIL_CHARACTERS_MAX);
      if (isReleased) out(text);
    }
  }

  function release(): void {
    if (!isReleased && tail !== '') out(tail);
    isReleased = true;
  }

  return { text: () => tail.trim(), release, ended: read() };
}

/** How a worker ended: its code or signal, and the last it wrote to stderr. */
export type WorkerExit = Readonly<{ how: string; stderrTail: string }>;

/** A worker process as its supervisor sees it. */
export type Worker = ReturnType<typeof launchWorker>;

type Launch = Readonly<{
  /** Its number. */
  worker: number;
  /** The entry point and its arguments. */
  command: readonly string[];
  env: Environment;
  /** Called once the worker has opened everything but its listener. */
  port(): Promise<number>;
  clock: Clock;
}>;

/** How long a worker may take until it listens. */
const START_MS_MAX = 60_000;
const REPORT_MS_MAX = 1_000;

/**
 * Starts a worker; throws when the system has no process for it. It stays in this process's group, so that a signal to
 * the group reaches it; and its standard input is a pipe from this process, whose end it sees however this one dies.
 */
export function launchWorker({ worker, command, env, port, clock }: Launch) {
  const listening = Promise.withResolvers<boolean>();
  let reporting: PromiseWithResolvers<WorkerReport> | undefined;
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...env, SLUICE_SUPERVISED: '1', [WORKER_VARIABLE]: String(worker) },
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'pipe',
    ipc: take,
    serialization: 'json',
  });
  // What it writes before it listens is in its `WorkerExit` if it ends.
  const tail = createStderrTail(child.stderr, (text) => writeLines('stderr', text));
  const started = new AbortController();
  const ended = Promise.all([child.exited, tail.ended]).then((): WorkerExit => {
    started.abort();
    listening.resolve(false);
    return { how: String(child.signalCode ?? `code ${child.exitCode}`), stderrTail: tail.text() };
  });
  void clock.sleep(START_MS_MAX, started.signal).then(() => {
    if (!started.signal.aborted) child.kill('SIGKILL');
  });

  function take(value: unknown): void {
    const message = value as FromWorker | null; // the worker is this project; a kind of another version matches nothing
    if (message?.kind === 'prepared') void port().then((free) => send({ kind: 'listen', port: free }));
    if (message?.kind === 'report') {
      reporting?.resolve(message.report);
      reporting = undefined;
    }
    if (message?.kind === 'listening') {
      started.abort();
      tail.release();
      listening.resolve(true);
    }
  }

  function send(message: ToWorker): void {
    try {
      child.send(message);
    } catch {
      // It is gone; `ended` resolves.
    }
  }

  async function report(): Promise<WorkerReport | undefined> {
    if (reporting === undefined) send({ kind: 'report' });
    reporting ??= Promise.withResolvers();
    const late = new AbortController();
    const made = await Promise.race([reporting.promise, clock.sleep(REPORT_MS_MAX, late.signal)]);
    late.abort();
    return made ?? undefined;
  }

  return {
    /** Resolves to whether it listened, or ended before. */
    listening: listening.promise,
    ended,
    /** `undefined` when it does not report in time. */
    report,
    signal: (name: 'SIGTERM' | 'SIGHUP' | 'SIGKILL') => child.kill(name),
  };
}
