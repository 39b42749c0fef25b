/**
 * Whether the store answers. Opens on the ratio of failed messages, not their number, so that a blip under load trips
 * nothing; while open one message a second is sent as a trial, and the first that is answered closes it.
 */
export type Breaker = Readonly<{
  note(answered: boolean, nowMs: number): void;
  /** Nothing is expected of the store: requests do not wait for it. */
  isOpen(): boolean;
  /** Whether a message may be sent now; while open, only the one trial. */
  maySend(nowMs: number): boolean;
  /** Notes that one was sent: a turn in which nothing was due is no trial. */
  sent(nowMs: number): void;
}>;

const SPAN_MS = 6_000;
const SLOTS = 12;
const SLOT_MS = SPAN_MS / SLOTS;
const MESSAGES_MIN = 20;
const FAILED_RATIO = 0.5;
const TRIAL_MS = 1_000;

type Slot = { number: number; answered: number; failed: number };

export function createBreaker(): Breaker {
  const slots: readonly Slot[] = Array.from({ length: SLOTS }, () => ({
    number: -1,
    answered: 0,
    failed: 0,
  }));
  let open = false;
  let trialMs = 0;

  function note(answered: boolean, nowMs: number): void {
    if (open) {
      if (answered) close();
      return;
    }
    const slot = slotAt(nowMs);
    if (answered) slot.answered++;
    else slot.failed++;
    if (!isFailing(nowMs)) return;
    open = true;
    trialMs = nowMs + TRIAL_MS;
  }

  function close(): void {
    open = false;
    for (const slot of slots) slot.number = -1;
  }

  function slotAt(nowMs: number): Slot {
    const number = Math.floor(nowMs / SLOT_MS);
    const slot = slots[number % SLOTS];
    if (slot === undefined) throw new Error('the slots of a breaker are a ring');
    if (slot.number !== number) Object.assign(slot, { number, answered: 0, failed: 0 });
    return slot;
  }

  function isFailing(nowMs: number): boolean {
    const oldest = Math.floor(nowMs / SLOT_MS) - SLOTS;
    let [answered, failed] = [0, 0];
    for (const slot of slots) {
      if (slot.number <= oldest) continue;
      answered += slot.answered;
      failed += slot.failed;
    }
    return answered + failed >= MESSAGES_MIN && failed >= (answered + failed) * FAILED_RATIO;
  }

  function maySend(nowMs: number): boolean {
    return !open || nowMs >= trialMs;
  }

  function sent(nowMs: number): void {
    if (open) trialMs = nowMs + TRIAL_MS;
  }

  return { note, isOpen: () => open, maySend, sent };
}
