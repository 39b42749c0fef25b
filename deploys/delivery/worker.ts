import type { Clock } from '../../shared/clock.ts';
import type { Claim } from '../outbox/claim.ts';
import type { Outbox, Recorded, Result } from '../outbox/outbox.ts';
import { attempt, type Sending } from './send.ts';

type WorkerParts = Sending &
  Readonly<{
    outbox: Outbox;
    clock: Clock;
    /** Hears of every attempt that ended, once it is written or was found stale. */
    noteEnded(result: Result, recorded: Recorded): void;
    /** Hears of attempts that a process took with it when it died. */
    noteReaped(count: number): void;
    /** Hears by how much the wall clock moved against the monotonic one. */
    noteClockMoved(byMs: number): void;
    /** Hears of what should not have happened: an attempt that could not be made. */
    noteBroken(error: unknown): void;
    /** Hears that the queue could not be read or written. */
    noteTrouble(error: unknown): void;
  }>;

/** What the worker is about. `trouble` is why its last turn failed. */
export type WorkerState = Readonly<{ underWay: number; trouble: unknown }>;

/** The longest sleep: rows that others wrote, and a wall clock that was moved, are seen after it at the latest. */
const WAIT_MS_MAX = 1_000;
/** From one turn to the next at least: what ends meanwhile is written in one transaction, and others get to run. */
const TURN_MS_MIN = 20;
const REAP_MS = 5_000;
const CLOCK_MOVED_MS = 5_000;
/** How long attempts under way may take to end after a stop was asked for, and those given up after that. */
const [DRAIN_MS, GIVEN_UP_MS] = [10_000, 500];

/**
 * Sends what is due until its signal aborts: due → claim → sign → send → finish. A delivery is claimed, with the
 * attempt's row, before its POST, and how it ended is kept in memory until it could be written: nothing is claimed
 * before that. `wake` tells of new rows.
 */
export function createWorker(deps: WorkerParts) {
  const { outbox, clock } = deps;
  const wakeup = createWakeup(clock);
  const underWay = new Map<string, Claim>();
  const ended: Result[] = [];
  const giveUp = new AbortController();
  let trouble: unknown;
  let restMs = WAIT_MS_MAX;
  let reapAtMs = clock.monotonic();
  let aheadMs = clock.now() - clock.monotonic();

  async function run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', wakeup.notify, { once: true });
    while (!signal.aborted) {
      const turnedAtMs = clock.monotonic();
      guarded(turn);
      await wakeup.wait(restMs);
      await clock.sleep(turnedAtMs + TURN_MS_MIN - clock.monotonic(), signal);
    }
    await drain();
  }

  function turn() {
    record();
    followClock();
    if (clock.monotonic() >= reapAtMs) reap();
    if (outbox.release(clock.now()) === 'more') wakeup.notify();
    const nowMs = clock.now();
    const claims = outbox.claim(nowMs, underWay.values());
    for (const claim of claims) void start(claim);
    // One claim takes a portion, so there may be more. What is due but has no place waits for an attempt to end, which
    // notifies.
    if (claims.length > 0) wakeup.notify();
    restMs = Math.min(WAIT_MS_MAX, (outbox.nextDueAtMs(nowMs) ?? Infinity) - nowMs);
  }

  async function start(claim: Claim): Promise<void> {
    underWay.set(claim.deliveryId, claim);
    ended.push(await attempt(claim, deps, giveUp.signal));
    wakeup.notify();
  }

  /** All that ended since the last turn goes into one transaction; a place is free once its result is written. */
  function record() {
    if (ended.length === 0) return;
    const recorded = outbox.finish(ended);
    const written = ended.splice(0);
    for (const { claim } of written) underWay.delete(claim.deliveryId);
    for (const [i, result] of written.entries()) deps.noteEnded(result, recorded[i] ?? 'stale');
  }

  /** A clock that is set back takes with it what is due. One that is set on does not: a host that slept woke up late. */
  function followClock() {
    const nowAheadMs = clock.now() - clock.monotonic();
    const movedMs = nowAheadMs - aheadMs;
    if (movedMs < -CLOCK_MOVED_MS) outbox.advanceDue(-movedMs);
    if (Math.abs(movedMs) > CLOCK_MOVED_MS) deps.noteClockMoved(movedMs);
    aheadMs = nowAheadMs;
  }

  function reap() {
    reapAtMs = clock.monotonic() + REAP_MS;
    const reaped = outbox.reap(clock.now(), new Set(underWay.keys()));
    if (reaped > 0) deps.noteReaped(reaped);
  }

  async function drain(): Promise<void> {
    await recordUntil(clock.monotonic() + DRAIN_MS);
    giveUp.abort();
    await recordUntil(clock.monotonic() + GIVEN_UP_MS);
  }

  async function recordUntil(endMs: number): Promise<void> {
    while ((guarded(record), underWay.size > 0 && clock.monotonic() < endMs)) {
      await wakeup.wait(Math.min(WAIT_MS_MAX, endMs - clock.monotonic()));
    }
  }

  /** A turn that fails, on a full disk for one, is taken again; the results it could not write are still there. */
  function guarded(act: () => void) {
    try {
      act();
      trouble = undefined;
    } catch (error) {
      [trouble, restMs] = [error, WAIT_MS_MAX];
      deps.noteTrouble(error);
    }
  }

  return { run, wake: wakeup.notify, state: (): WorkerState => ({ underWay: underWay.size, trouble }) };
}

/** Wakes a loop that waits; a notification that nobody waited for is heard by the next wait. */
function createWakeup(clock: Clock) {
  let notified = new AbortController();
  return {
    notify: (): void => notified.abort(),
    /** Resolves at the next notification, or after `waitMs`. For one waiter. */
    wait: async (waitMs: number): Promise<void> => {
      await clock.sleep(waitMs, notified.signal);
      if (notified.signal.aborted) notified = new AbortController();
    },
  };
}
