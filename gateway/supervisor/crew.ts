import type { Clock } from '../../shared/clock.ts';
import type { GatewayStatus } from '../../shared/gateway-status.ts';
import type { Log } from '../../shared/log.ts';
import { fired } from '../../shared/stop.ts';
import { type Child, type Ending, unborn } from './child.ts';
import { afterDeath, CLEAN, STILLBORN_MAX, waitMsAfter } from './restart.ts';
import type { Tally } from './tally.ts';

/** How a crew came to its end. */
export type CrewEnd =
  | { readonly kind: 'drained' }
  /** Processes in these seats did not drain in time. */
  | { readonly kind: 'killed'; readonly slots: readonly number[] }
  /** None serves and the next would not either; `words` are what the last one said. */
  | { readonly kind: 'gave-up'; readonly words: string };

export type Crew = Readonly<{
  /** Fills every seat, calls `ready` when all listen, and keeps them filled until `stop`; then drains. */
  run(stop: AbortSignal, ready: () => void): Promise<CrewEnd>;
  /** Has every process that listens read its plans again. */
  reload(): void;
  /** Notes what every process that listens has counted. */
  count(): Promise<void>;
  /** How the backends stand for every process that listens and answers. */
  statuses(): Promise<readonly GatewayStatus[]>;
  /** Processes that listen now, and those started in the place of another. */
  listening(): number;
  restarts(): number;
}>;

type Deps = Readonly<{ size: number; launch(slot: number): Child; clock: Clock; log: Log; tally: Tally }>;

/** A process drains for 25 seconds at most; what is there longer hangs. */
const DRAIN_MS_MAX = 28_000;

export function createCrew({ size, launch, clock, log, tally }: Deps): Crew {
  const seated = new Map<number, Child>();
  const listening = new Map<number, Child>();
  let restarts = 0;

  async function run(stop: AbortSignal, ready: () => void): Promise<CrewEnd> {
    const failed = Promise.withResolvers<string>();
    const over = new AbortController();
    const end = AbortSignal.any([stop, over.signal]);
    const filled = fillAll(end, failed.resolve);
    void filled.then(() => end.aborted || ready());
    const words = await Promise.race([failed.promise, fired(stop)]);
    over.abort();
    const slow = await drain();
    if (words !== undefined) return { kind: 'gave-up', words };
    return slow.length === 0 ? { kind: 'drained' } : { kind: 'killed', slots: slow };
  }

  /** The first seat alone: what is wrong with the config or the stores is then said once. */
  async function fillAll(end: AbortSignal, fail: (words: string) => void): Promise<void> {
    await fill(1, end, fail);
    if (end.aborted) return;
    await Promise.all(Array.from({ length: size - 1 }, (_, i) => fill(i + 2, end, fail)));
  }

  /** Resolves when the seat's first process listens; goes on to keep the seat filled until `end`. */
  async function fill(slot: number, end: AbortSignal, fail: (words: string) => void): Promise<void> {
    const first = seat(slot);
    if (await first.listening) return void keep(slot, first, end, fail);
    if (!end.aborted) fail(saidBy(await first.ended));
    await fired(end);
  }

  async function keep(
    slot: number,
    first: Child,
    end: AbortSignal,
    fail: (words: string) => void,
  ): Promise<void> {
    let child = first;
    for (let record = CLEAN; ;) {
      const sinceMs = clock.monotonic();
      const listened = await child.listening;
      const ending = await child.ended;
      tally.close(slot);
      if (end.aborted) return;
      record = afterDeath(record, { listened, livedMs: clock.monotonic() - sinceMs });
      if (record.stillborn >= STILLBORN_MAX && listening.size === 0) return fail(saidBy(ending));
      const waitMs = waitMsAfter(record);
      log.error({ process: slot, ...ending, waitMs }, 'a process ended and is started again');
      await clock.sleep(waitMs, end);
      if (end.aborted) return;
      restarts++;
      child = seat(slot);
    }
  }

  /** Starts a process in the seat and follows whether it listens. */
  function seat(slot: number): Child {
    const child = launched(slot);
    seated.set(slot, child);
    void child.listening.then((listens) => listens && listening.set(slot, child));
    void child.ended.then(() => {
      if (seated.get(slot) === child) seated.delete(slot);
      if (listening.get(slot) === child) listening.delete(slot);
    });
    return child;
  }

  /** The system may be out of processes or files: that is a death like another, and no reason to end those that serve. */
  function launched(slot: number): Child {
    try {
      return launch(slot);
    } catch (error) {
      return unborn(error);
    }
  }

  /** Asks every process to drain and waits; gives the seats of those that had to be killed. */
  async function drain(): Promise<readonly number[]> {
    const drained = new AbortController();
    const slow: number[] = [];
    const kill = () => {
      if (drained.signal.aborted) return;
      for (const [slot, child] of seated) {
        slow.push(slot);
        child.signal('SIGKILL');
      }
    };
    void clock.sleep(DRAIN_MS_MAX, drained.signal).then(kill);
    for (const child of seated.values()) child.signal('SIGTERM');
    await Promise.all([...seated.values()].map(({ ended }) => ended));
    drained.abort();
    return slow;
  }

  async function count(): Promise<void> {
    const asking = [...listening].map(async ([slot, child]) => {
      const metrics = await child.count();
      if (metrics !== undefined && listening.get(slot) === child) tally.note(slot, metrics);
    });
    await Promise.all(asking);
  }

  async function statuses(): Promise<readonly GatewayStatus[]> {
    const told = await Promise.all([...listening.values()].map((child) => child.status()));
    return told.filter((status) => status !== undefined);
  }

  return {
    run,
    reload: () => listening.forEach((child) => child.signal('SIGHUP')),
    count,
    statuses,
    listening: () => listening.size,
    restarts: () => restarts,
  };
}

function saidBy({ how, words }: Ending): string {
  return words === '' ? `A gateway process ended before it could listen (${how}).` : words;
}
