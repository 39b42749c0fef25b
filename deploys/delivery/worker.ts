import type { Clock } from '../../shared/clock.ts';
import type { ClaimedDelivery } from '../outbox/claim.ts';
import type { Outbox, RecordResult, AttemptResult } from '../outbox/outbox.ts';
import { attempt, type Sending } from './send.ts';

export type WorkerNotes = Readonly<{
  noteEnded(result: AttemptResult, recorded: RecordResult): void;
  /** So many attempts of a process that died were ended as interrupted. */
  noteReaped(count: number): void;
  noteClockMoved(byMs: number): void;
  noteBroken(error: unknown): void;
  /** The queue could not be read or written. */
  noteTrouble(error: unknown): void;
}>;

export type WorkerParts = Sending &
  WorkerNotes &
  Readonly<{
    outbox: Outbox;
    clock: Clock;
    /** Whether a turn may claim: another process may have the right to send by now. Absent, it always may. */
    permit?: (() => Promise<boolean>) | undefined;
  }>;

/** An attempt of this process: the POST is under way, or its result awaits its record. */
type OwnAttempt = Readonly<{ kind: 'sending'; claim: ClaimedDelivery } | ({ kind: 'ended' } & AttemptResult)>;

/** `trouble` is why the last turn failed. */
export type WorkerState = Readonly<{ underWay: number; trouble: unknown }>;

/** The longest pause between turns: rows that the command line wrote, and a wall clock that was set, are noticed after it. */
const WAIT_MS_MAX = 1_000;
/** The shortest time between turns: attempts that end in it are recorded in one transaction, and other work can run. */
const TURN_MS_MIN = 20;
const REAP_MS = 5_000;
const CLOCK_MOVED_MS = 5_000;
/** After a stop: how long attempts may go on before they are aborted, and how long recording may take after that. */
const [DRAIN_MS, GIVEN_UP_MS] = [10_000, 500];

/**
 * Sends due deliveries until `signal` aborts, and decides nothing about them: what an attempt does to its delivery is drawn
 * at `nextDelivery`. Each turn records attempts that ended, then claims; a turn that fails is repeated.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> sending: claimed, so that another process takes it after its lease at the earliest
 *   sending --> ended: answered, failed, or aborted ten seconds after a stop
 *   ended --> [*]: recorded; or stale, or refused by the schema, and then its lease expires
 *   sending --> [*]: still there half a second after it was aborted, so its lease expires
 *   ended --> [*]: the queue cannot be written until then, so its lease expires
 * ```
 */
export function createWorker(deps: WorkerParts) {
  const { outbox, clock } = deps;
  const wakeup = createWakeup(clock);
  const underWay = new Map<string, OwnAttempt>();
  const giveUp = new AbortController();
  let trouble: unknown;
  let restMs = WAIT_MS_MAX;
  let reapAtMs = clock.monotonic();
  let wallAheadMs = clock.now() - clock.monotonic();

  async function run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', wakeup.notify, { once: true });
    while (!signal.aborted) {
      const turnedAtMs = clock.monotonic();
      await guarded(() => turn(signal));
      await wakeup.wait(restMs);
      await clock.sleep(turnedAtMs + TURN_MS_MIN - clock.monotonic(), signal);
    }
    await drain();
  }

  async function turn(signal: AbortSignal): Promise<void> {
    record();
    followClock();
    if (clock.monotonic() >= reapAtMs) reap();
    if (outbox.release(clock.now()) === 'more') wakeup.notify();
    if (outbox.isDue(clock.now())) {
      const may = deps.permit === undefined || (await deps.permit());
      if (may && !signal.aborted) claim();
    }
    const nowMs = clock.now();
    restMs = Math.min(WAIT_MS_MAX, (outbox.nextDueAtMs(nowMs) ?? Infinity) - nowMs);
  }

  function claim() {
    const claims = outbox.claim(
      clock.now(),
      [...underWay.values()].map(({ claim }) => claim),
    );
    for (const claim of claims) void start(claim);
    // More may be due than one claim takes. What was due and found no capacity is claimed when an attempt ends.
    if (claims.length > 0) wakeup.notify();
  }

  async function start(claim: ClaimedDelivery): Promise<void> {
    underWay.set(claim.deliveryId, { kind: 'sending', claim });
    underWay.set(claim.deliveryId, { kind: 'ended', ...(await attempt(claim, deps, giveUp.signal)) });
    wakeup.notify();
  }

  /** Records the attempts that ended since the last turn, in one transaction; until then they count as under way. */
  function record() {
    const ended = [...underWay.values()].filter((each) => each.kind === 'ended');
    if (ended.length === 0) return;
    const recorded = outbox.finish(ended);
    for (const { claim } of ended) underWay.delete(claim.deliveryId);
    for (const [i, result] of ended.entries()) deps.noteEnded(result, recorded[i] ?? 'stale');
  }

  /** Moves due times back with a wall clock that is set back. After a leap ahead they stay: the host may have been asleep. */
  function followClock() {
    const nowAheadMs = clock.now() - clock.monotonic();
    // Due times are whole milliseconds; a monotonic clock has fractions.
    const movedMs = Math.round(nowAheadMs - wallAheadMs);
    if (movedMs < -CLOCK_MOVED_MS) outbox.advanceDue(-movedMs);
    if (Math.abs(movedMs) > CLOCK_MOVED_MS) deps.noteClockMoved(movedMs);
    wallAheadMs = nowAheadMs;
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
    while ((await guarded(record), underWay.size > 0 && clock.monotonic() < endMs)) {
      await wakeup.wait(Math.min(WAIT_MS_MAX, endMs - clock.monotonic()));
    }
  }

  /** Logs a failure, for example of a full disk: the next turn repeats it, and results that were not written are kept. */
  async function guarded(act: () => void | Promise<void>): Promise<void> {
    try {
      await act();
      trouble = undefined;
    } catch (error) {
      [trouble, restMs] = [error, WAIT_MS_MAX];
      deps.noteTrouble(error);
    }
  }

  return { run, wake: wakeup.notify, state: (): WorkerState => ({ underWay: underWay.size, trouble }) };
}

/** Wakes a waiting loop; a notification while it does not wait ends its next wait. */
function createWakeup(clock: Clock) {
  let notified = new AbortController();
  return {
    notify: (): void => notified.abort(),
    wait: async (waitMs: number): Promise<void> => {
      await clock.sleep(waitMs, notified.signal);
      if (notified.signal.aborted) notified = new AbortController();
    },
  };
}
