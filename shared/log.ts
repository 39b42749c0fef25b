import pino, { type Logger } from 'pino';
import { systemClock } from './clock.ts';

/** A structured log of one app: JSON lines on standard output, with Unix milliseconds in `time`. */
export type Log = Logger;

/** Where a key or a secret could stand if someone logged a whole object by mistake. */
const REDACTED = ['key', 'secret', 'authorization', 'headers'].flatMap((name) => [name, `*.${name}`]);

/** Text that waits for a reader of one output, in characters; what comes above it is dropped and counted. */
const WAITING_MAX = 1_048_576;

/** How long the end of a process waits for a reader that is only slow, in milliseconds. */
const LAST_LINES_MS = 1_000;

/** Standard output or standard error of this process. A reader that stops or leaves costs lines, never time. */
class Output {
  readonly #sink: Bun.FileSink;
  readonly #notice: (lines: number) => string;
  readonly #waiting: string[] = [];
  #waitingLength = 0;
  /** The sink's own wait for its reader; it holds one text. */
  #flushing: Promise<void> | undefined;
  #unreported = 0;
  dropped = 0;

  /** `notice` makes the line that reports how many were dropped. */
  constructor(file: Bun.BunFile, notice: (lines: number) => string) {
    this.#sink = file.writer();
    this.#notice = notice;
  }

  /** Takes whole lines; the system has them when this returns, unless the reader is behind. */
  write(text: string): void {
    if (this.#flushing === undefined) this.#report();
    if (this.#flushing === undefined) {
      if (!this.#send(text)) this.#drop(text);
      return;
    }
    // Once a line is dropped, so are all until the reader has caught up: one gap with one report, not many.
    if (this.#unreported > 0 || this.#waitingLength + text.length > WAITING_MAX) return this.#drop(text);
    this.#waiting.push(text);
    this.#waitingLength += text.length;
  }

  /** Resolves when everything is written, or when `late` does. */
  async settle(late: Promise<void>): Promise<void> {
    let isLate = false;
    void late.then(() => (isLate = true));
    while (this.#flushing !== undefined && !isLate) await Promise.race([this.#flushing, late]);
  }

  /** Gives the sink a text while it waits for nothing; false if it is lost: the reader has left, or the disk is full. */
  #send(text: string): boolean {
    try {
      const results = [this.#sink.write(text), this.#sink.flush()];
      if (!results.some((result) => result instanceof Promise)) return true;
      const lost = () => this.#drop(text);
      this.#flushing = Promise.all(results)
        .then(() => undefined, lost)
        .then(() => this.#resume());
      return true;
    } catch {
      return false;
    }
  }

  #resume(): void {
    this.#flushing = undefined;
    while (this.#flushing === undefined) {
      const text = this.#waiting.shift();
      if (text === undefined) return this.#report();
      this.#waitingLength -= text.length;
      if (!this.#send(text)) this.#drop(text);
    }
  }

  #report(): void {
    const lines = this.#unreported;
    if (lines > 0 && this.#send(this.#notice(lines))) this.#unreported -= lines;
  }

  #drop(text: string): void {
    const lines = text.split('\n').length - 1;
    this.#unreported += lines;
    this.dropped += lines;
  }
}

type OutputName = 'stdout' | 'stderr';

/** The app of this process's log, and its outputs, made when they are first used. */
let logging = '';
const outputs = new Map<OutputName, Output>();

function outputOf(name: OutputName): Output {
  return outputs.getOrInsertComputed(name, () => {
    const msg = `lines to ${name} were dropped: its reader was behind or away`;
    return new Output(
      Bun[name],
      (dropped) => `${JSON.stringify({ level: 40, time: systemClock.now(), app: logging, dropped, msg })}\n`,
    );
  });
}

/** The log of `app`. A line is written at once, so that the last ones before a death are there. */
export function createLog(app: string): Log {
  logging = app;
  return pino({ base: { app }, redact: REDACTED }, outputOf('stdout'));
}

/** Writes whole lines beside the log. Never waits for a reader. */
export function writeLines(name: OutputName, text: string): void {
  outputOf(name).write(text);
}

/** Lines of this process that no reader took in time. */
export function droppedLines(): number {
  return [...outputs.values()].reduce((sum, { dropped }) => sum + dropped, 0);
}

/** Gives a reader that is only slow a moment for the last lines. */
export async function settleOutputs(): Promise<void> {
  const settled = new AbortController();
  const late = systemClock.sleep(LAST_LINES_MS, settled.signal);
  await Promise.all([...outputs.values()].map((output) => output.settle(late)));
  settled.abort();
}
