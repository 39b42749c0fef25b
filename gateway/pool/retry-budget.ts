/**
 * How many calls of the whole pool may be sent a second time because a backend failed. A backend that is down must not
 * double the load on the others, and an outage of all must not multiply it (Google SRE book, chapter 21).
 */
export type RetryBudget = Readonly<{
  /** One more call was sent for the first time. */
  earn(): void;
  /** Takes a retry; false when there is none left. */
  take(): boolean;
}>;

/** One retry for each ten calls; what a quiet minute saves up is enough for the calls that a dying node takes along. */
const PER_CALL = 0.1;
const SAVED_MAX = 200;

export function createRetryBudget(): RetryBudget {
  let retries = SAVED_MAX;
  return {
    earn() {
      retries = Math.min(SAVED_MAX, retries + PER_CALL);
    },
    take() {
      if (retries < 1) return false;
      retries--;
      return true;
    },
  };
}
