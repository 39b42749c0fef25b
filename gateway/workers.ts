import type { Registry } from 'prom-client';
import type { Clock } from '../shared/clock.ts';
import type { ConfigText } from '../shared/config/load.ts';
import type { Environment } from '../shared/config/table.ts';
import type { GatewayStatus } from '../shared/gateway-status.ts';
import { writeLines } from '../shared/log.ts';
import type { Findings, HostHealth } from './health.ts';

/** The metrics of a process with their values, in prom-client's own shape; they go from process to process as JSON. */
export type MetricsJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/** Counts of a worker since it started, and the state of its backends. */
type WorkerReport = Readonly<{ metrics: MetricsJson; status: GatewayStatus }>;

/** The orders of a worker: the config of the start, and a later one for plans and prices. Seat 1 does what one of a host must. */
type Assignment = Readonly<{ seat: number; config: ConfigText; reloaded?: ConfigText | undefined }>;

/** The config as it was when plans and prices were read again; one worker `announces` it to other apps. */
export type ReloadedConfig = Readonly<{ config: ConfigText; announces: boolean }>;

/** The port on which workers listen, or why it cannot be had. */
export type PortClaim =
  { readonly kind: 'free'; readonly port: number } | { readonly kind: 'refused'; readonly sentence: string };

/** Messages of the supervisor to a worker, over the channel that the system opens between parent and child. */
type ToWorker =
  | Readonly<{ kind: 'assignment'; assignment: Assignment }>
  | Readonly<{ kind: 'listen'; claim: PortClaim }>
  | Readonly<{ kind: 'health'; health: HostHealth }>
  | Readonly<{ kind: 'reloaded'; reloaded: ReloadedConfig }>
  | { readonly kind: 'report' };

/**
 * Messages of a worker to its supervisor: it runs and needs its assignment; everything but its listener is open; it
 * listens; its event loop turns; it drains; what it found at a look, once a second; the database requests that plans and prices are read again, by a number that
 * only grows.
 */
type FromWorker =
  | { readonly kind: 'started' | 'prepared' | 'listening' | 'beat' | 'draining' }
  | { readonly kind: 'found'; readonly findings: Findings }
  | { readonly kind: 'reload'; readonly revision: number }
  | { readonly kind: 'report'; readonly report: WorkerReport };

/** A worker beats so often. */
export const HEARTBEAT_MS = 1_000;

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
  const assignment = Promise.withResolvers<Assignment>();
  const port = Promise.withResolvers<PortClaim>();
  let serving: Serving | undefined;
  let early: ReloadedConfig | undefined;
  let health: HostHealth | undefined;
  channel.on('message', (value) => {
    const message = value as ToWorker | null; // the supervisor is this project; a kind of another version matches nothing
    if (message?.kind === 'assignment') assignment.resolve(message.assignment);
    if (message?.kind === 'listen') port.resolve(message.claim);
    if (message?.kind === 'health') health = message.health;
    if (message?.kind === 'reloaded' && serving === undefined) early = message.reloaded;
    if (message?.kind === 'reloaded') serving?.setReloadedConfig(message.reloaded);
    if (message?.kind === 'report') void serving?.report().then((report) => send({ kind: 'report', report }));
  });

  function send(message: FromWorker): void {
    try {
      channel.send?.(message);
    } catch {
      // The supervisor is gone; standard input has ended too.
    }
  }

  const beat = () => send({ kind: 'beat' });

  return {
    /** From 1 on. */
    worker: Number(worker),
    assignment(): Promise<Assignment> {
      send({ kind: 'started' });
      return assignment.promise;
    },
    /** Reports that all else is ready; resolves to the port on which the worker may listen. */
    port(): Promise<PortClaim> {
      send({ kind: 'prepared' });
      return port.promise;
    },
    /** Reports that the worker listens, and that it lives until `stop`; takes what the supervisor sends from then on. */
    async serve(parts: Serving, clock: Clock, stop: AbortSignal): Promise<void> {
      serving = parts;
      if (early !== undefined) parts.setReloadedConfig(early);
      send({ kind: 'listening' });
      while (!stop.aborted) {
        await clock.sleep(HEARTBEAT_MS, stop);
        if (!stop.aborted) beat();
      }
      send({ kind: 'draining' });
    },
    /** Reports that the worker lives. */
    beat,
    /** Reports what this process found; the health of the host comes back when it changes. */
    found: (findings: Findings) => send({ kind: 'found', findings }),
    health: () => health,
    /** Asks the supervisor to read plans and prices again. */
    reload: (revision: number) => send({ kind: 'reload', revision }),
  };
}

type Serving = Readonly<{
  report(): Promise<WorkerReport>;
  setReloadedConfig(reloaded: ReloadedConfig): void;
}>;

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
  worker: number;
  command: readonly string[];
  env: Environment;
  assignment(): Assignment;
  port(): Promise<PortClaim>;
  onReload(revision: number): void;
  onFound(): void;
  /** The health of the host so far. */
  health(): HostHealth | undefined;
  clock: Clock;
}>;

const START_MS_MAX = 60_000;
const REPORT_MS_MAX = 1_000;

/** Starts a worker, or throws. Its standard input is a pipe, so that it sees the end of this process however that dies. */
export function launchWorker({
  worker,
  command,
  env,
  assignment,
  port,
  onReload,
  onFound,
  health,
  clock,
}: Launch) {
  const listening = Promise.withResolvers<boolean>();
  const draining = Promise.withResolvers<void>();
  let heardAtMs = clock.monotonic();
  let findings: Findings | undefined;
  let reporting: PromiseWithResolvers<WorkerReport> | undefined;
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...env, SLUICE_SUPERVISED: '1', [WORKER_VARIABLE]: String(worker) },
    stdin: 'pipe',
    stdout: 'inherit',
    stderr: 'pipe',
    ipc: take,
    serialization: 'json',
  });
  // What it writes before it listens is reported with its exit.
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
    heardAtMs = clock.monotonic();
    if (message?.kind === 'started') {
      send({ kind: 'assignment', assignment: assignment() });
      const known = health();
      if (known !== undefined) setHealth(known);
    }
    if (message?.kind === 'prepared') void port().then((claim) => send({ kind: 'listen', claim }));
    if (message?.kind === 'draining') draining.resolve();
    if (message?.kind === 'found') {
      ({ findings } = message);
      onFound();
    }
    if (message?.kind === 'reload') onReload(message.revision);
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

  function setHealth(known: HostHealth): void {
    send({ kind: 'health', health: known });
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
    /** Resolves when it listened and drains. */
    draining: draining.promise,
    /** When the last message came, on the monotonic clock. */
    heardAtMs: () => heardAtMs,
    /** `undefined` when it does not report in time. */
    report,
    setReloadedConfig: (reloaded: ReloadedConfig) => send({ kind: 'reloaded', reloaded }),
    /** Its findings at the last look; `undefined` before the first. */
    findings: () => findings,
    setHealth,
    signal: (name: 'SIGTERM' | 'SIGKILL') => child.kill(name),
  };
}
