import type { Clock } from '../shared/clock.ts';
import type { LoadOptions } from './arguments.ts';
import type { Reply } from './connection.ts';
import { Recorder, Times } from './recorder.ts';

/** The outcome of a call that was answered by a result. */
export const RESULT = '200 result';
/** That of a call whose batch was answered at such length that errors among its results are not seen. */
export const UNREAD = '200 batch too long to be read';

/** One request: its body, what its answer is judged by, and the kind of call that its times are told apart by. */
export type Request = Readonly<{ body: string; ids: readonly number[]; label?: string | undefined }>;

/** A caller's connection, as far as a load needs it. */
export type LoadConnection = Readonly<{
  send(body: string, onReply: (reply: Reply) => void): void;
  tick(): void;
  close(): void;
}>;

type Parts = Readonly<{
  clock: Clock;
  /** One turn of the event loop: how a load waits for what is due within the next milliseconds. */
  turn: () => Promise<void>;
  connections: readonly LoadConnection[];
  next: (n: number) => Request;
  /** Kinds of calls, in the order of the table. */
  labels: readonly string[];
  /** The outcome of each call of a request; `RESULT` and `UNREAD` are the good ones. */
  judge: (reply: Reply, request: Request) => readonly string[];
  /** Told about twice a second, with the recorder, the second, and how far the run is, 0 to 1. */
  onProgress: (recorder: Recorder, second: number, share: number) => void;
  signal: AbortSignal;
}>;

/** What a load gave. Seconds and everything else are without the warm-up. */
export type Loaded = Readonly<{
  recorder: Recorder;
  seconds: number;
  /** Open loop: requests that were due and never sent, because no connection was free. */
  unsent: number;
  /** Open loop: how late a request left although a connection was free. What the bench itself adds. */
  late: Times;
  /** Answers that said when to come again, and how long all calls were held back for that. */
  retryAfters: number;
  heldBackMs: number;
  /** Whether it ended because the endpoint takes no call under this key. */
  isDenied: boolean;
}>;

/** Timers count whole milliseconds and may be late by half of one: the rest of a wait is made of turns of the event loop. */
const TIMER_MS = 1.5;
const TICK_MS = 100;
const PROGRESS_MS = 500;
/** Statuses of a key that is missing, unknown, without credits or without the right. */
const DENIALS = new Set([401, 402, 403]);
/** A load of which this many answers come first, and all are denials, ends. */
export const DENIALS_MAX = 100;
/** After a failure that names no time, the next request waits for this long. */
export const AFTER_FAILURE_MS = 50;

/**
 * Offers a load. Closed: each connection sends when it has its answer. Open: request `n` is due at `n / rate`, goes out on
 * whichever connection is free, and its time counts from when it was due, so that an endpoint which stands still is
 * charged for all requests that would have come meanwhile. After 429 or 503 with Retry-After nothing is sent until then.
 */
export async function runLoad(options: LoadOptions, parts: Parts): Promise<Loaded> {
  const run = new LoadRun(options, parts);
  const done = new AbortController();
  const watching = run.watch(done.signal);
  await run.offer();
  await run.answered();
  done.abort();
  await watching;
  for (const connection of parts.connections) connection.close();
  return run.loaded();
}

class LoadRun {
  readonly #options: LoadOptions;
  readonly #parts: Parts;
  readonly #recorder = new Recorder('answer');
  readonly #late = new Times('late');
  readonly #idle: LoadConnection[];
  readonly #startMs: number;
  /** When what is sent, or due, counts. */
  readonly #countFromMs: number;
  readonly #endMs: number;
  #sent = 0;
  /** Requests that count. */
  #counted = 0;
  /** Requests under way. */
  #open = 0;
  #lastAnswerMs = 0;
  #heldUntilMs = 0;
  #heldBackMs = 0;
  #retryAfters = 0;
  #unsent = 0;
  /** Denials while nothing else came; -1 from the first other answer on. */
  #denials = 0;
  #endedMs: number | undefined;
  #wake: (() => void) | undefined;

  constructor(options: LoadOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
    this.#idle = [...parts.connections];
    for (const label of parts.labels) this.#recorder.timesOf(label);
    this.#startMs = parts.clock.monotonic();
    this.#countFromMs = this.#startMs + 1_000 * options.warmUpSeconds;
    this.#endMs = this.#countFromMs + 1_000 * (options.seconds ?? Infinity);
  }

  /** Sends until the load's bound. */
  async offer(): Promise<void> {
    const { clock, turn, signal } = this.#parts;
    while (!this.#isOver()) {
      const nowMs = clock.monotonic();
      const nextMs = this.#sendDue(nowMs);
      const waitMs = Math.min(nextMs, this.#endMs) - nowMs;
      if (waitMs <= 0) continue;
      if (waitMs <= TIMER_MS) await turn();
      else await this.#wait(Math.max(1, Math.floor(waitMs - 1)), signal);
    }
    // A turn of the loop may have passed the last instants.
    const isCut = signal.aborted || this.#isDenied();
    if (!isCut && this.#options.perSecond !== undefined) this.#sendDue(this.#endMs, true);
    this.#endedMs = Math.min(clock.monotonic(), this.#endMs);
    this.#unsent = this.#unsentAt(this.#endedMs);
  }

  /** Resolves when every request has its outcome; each has one by its timeout. */
  async answered(): Promise<void> {
    while (this.#open > 0 && !this.#parts.signal.aborted) await this.#wait(TICK_MS, this.#parts.signal);
  }

  /** Fails what is overdue, and tells how far it is. */
  async watch(done: AbortSignal): Promise<void> {
    const { clock, connections, onProgress } = this.#parts;
    let progressMs = clock.monotonic();
    while (!done.aborted) {
      await clock.sleep(TICK_MS, done);
      for (const connection of connections) connection.tick();
      const nowMs = clock.monotonic();
      if (nowMs - progressMs < PROGRESS_MS || nowMs < this.#countFromMs) continue;
      progressMs = nowMs;
      const { seconds = Infinity, calls = Infinity } = this.#options;
      const second = (nowMs - this.#countFromMs) / 1_000;
      onProgress(this.#recorder, second, Math.min(1, Math.max(second / seconds, this.#counted / calls)));
    }
  }

  loaded(): Loaded {
    const endMs = Math.max(this.#endedMs ?? 0, this.#lastAnswerMs);
    return {
      recorder: this.#recorder,
      seconds: Math.max(0, endMs - this.#countFromMs) / 1_000,
      unsent: this.#unsent,
      late: this.#late,
      retryAfters: this.#retryAfters,
      heldBackMs: this.#heldBackMs,
      isDenied: this.#isDenied(),
    };
  }

  #isOver(): boolean {
    const { calls = Infinity } = this.#options;
    const isDone = this.#counted >= calls || this.#parts.clock.monotonic() >= this.#endMs;
    return isDone || this.#isDenied() || this.#parts.signal.aborted;
  }

  #isDenied(): boolean {
    return this.#denials >= DENIALS_MAX;
  }

  /** When request `n` is due, from 0. */
  #dueMs(n: number): number {
    const { perSecond } = this.#options;
    return perSecond === undefined ? 0 : this.#startMs + (1_000 * n) / perSecond;
  }

  /** Sends what may go now; gives when to look again unless an answer comes before. */
  #sendDue(nowMs: number, isLast = false): number {
    if (nowMs < this.#heldUntilMs) return this.#heldUntilMs;
    const { calls = Infinity } = this.#options;
    const isOver = () =>
      isLast ? this.#counted >= calls || this.#dueMs(this.#sent) >= nowMs : this.#isOver();
    while (this.#idle.length > 0 && this.#dueMs(this.#sent) <= nowMs && !isOver()) {
      const connection = this.#idle.shift();
      if (connection !== undefined) this.#send(connection, nowMs, true);
    }
    return this.#idle.length === 0 ? Infinity : this.#dueMs(this.#sent);
  }

  /** `wasFree`: the connection waited for the request, and not the request for it. */
  #send(connection: LoadConnection, nowMs: number, wasFree: boolean): void {
    const isOpen = this.#options.perSecond !== undefined;
    const n = this.#sent++;
    const fromMs = isOpen ? this.#dueMs(n) : nowMs;
    const counts = fromMs >= this.#countFromMs;
    if (counts) this.#counted++;
    if (counts && isOpen && wasFree && fromMs >= this.#heldUntilMs) this.#late.note(nowMs - fromMs);
    this.#open++;
    const request = this.#parts.next(n);
    connection.send(request.body, (reply) => this.#onReply(connection, request, reply, fromMs, counts));
  }

  #onReply(
    connection: LoadConnection,
    request: Request,
    reply: Reply,
    fromMs: number,
    counts: boolean,
  ): void {
    const nowMs = this.#parts.clock.monotonic();
    this.#open--;
    if (counts && !this.#parts.signal.aborted) this.#record(request, reply, fromMs, nowMs);
    if (reply.kind === 'reply' && reply.retryAfter !== undefined) this.#hold(nowMs, reply.retryAfter, counts);
    if (reply.kind === 'failure') return void this.#rest(connection);
    if (this.#denials >= 0 && !this.#isDenied())
      this.#denials = DENIALS.has(reply.status) ? this.#denials + 1 : -1;
    this.#free(connection, nowMs);
  }

  /** Takes the next request at once where one is due, so that no turn of the loop lies between an answer and it. */
  #free(connection: LoadConnection, nowMs: number): void {
    const isDue = this.#dueMs(this.#sent) <= nowMs && nowMs >= this.#heldUntilMs;
    if (isDue && this.#endedMs === undefined && !this.#isOver()) return this.#send(connection, nowMs, false);
    this.#idle.push(connection);
    this.#wake?.();
  }

  async #rest(connection: LoadConnection): Promise<void> {
    const { clock, signal } = this.#parts;
    await clock.sleep(AFTER_FAILURE_MS, signal);
    this.#free(connection, clock.monotonic());
  }

  #record(request: Request, reply: Reply, fromMs: number, nowMs: number): void {
    const second = Math.max(0, nowMs - this.#countFromMs) / 1_000;
    const bytes = reply.kind === 'reply' ? reply.bytes : 0;
    this.#lastAnswerMs = nowMs;
    const outcomes = this.#parts.judge(reply, request);
    // A batch is answered when all of its calls are.
    if (outcomes.every((outcome) => outcome === RESULT || outcome === UNREAD))
      this.#recorder.answered(second, nowMs - fromMs, bytes, request.label);
    else this.#recorder.failed(second, bytes);
    for (const outcome of outcomes) this.#recorder.count(outcome);
  }

  #hold(nowMs: number, seconds: number, counts: boolean): void {
    if (counts) this.#retryAfters++;
    if (!this.#options.honoursRetryAfter) return;
    const untilMs = nowMs + 1_000 * seconds;
    const fromMs = Math.max(nowMs, this.#heldUntilMs);
    if (untilMs <= fromMs) return;
    this.#heldUntilMs = untilMs;
    this.#heldBackMs += this.#withinCounted(untilMs) - this.#withinCounted(fromMs);
  }

  /** An instant, or the nearest one of the time that counts. */
  #withinCounted(ms: number): number {
    return Math.min(Math.max(ms, this.#countFromMs), this.#endMs);
  }

  #unsentAt(endMs: number): number {
    const { perSecond, calls = Infinity } = this.#options;
    if (perSecond === undefined) return 0;
    const first = Math.ceil(((this.#countFromMs - this.#startMs) / 1_000) * perSecond);
    const due = Math.min(Math.ceil(((endMs - this.#startMs) / 1_000) * perSecond) - first, calls);
    return Math.max(0, due - this.#counted);
  }

  /** Waits for so long, until an answer frees a connection, or until `signal` aborts. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#parts.clock.sleep(ms, AbortSignal.any([woken.signal, signal]));
    this.#wake = undefined;
  }
}
