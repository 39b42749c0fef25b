import type { Clock } from '../../shared/clock.ts';
import type { GatewayStatus } from '../../shared/gateway-status.ts';
import type { Environment } from '../../shared/config/table.ts';
import { type FromChild, messageFrom, type ToChild } from './messages.ts';
import type { MetricJson } from './metric-json.ts';
import { SLOT_VARIABLE } from './seat.ts';
import { createWords } from './words.ts';

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

export type Launch = Readonly<{
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
