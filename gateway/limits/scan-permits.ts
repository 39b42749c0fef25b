/**
 * How many scans an account has under way in this process. A permit is held from before the call is sent until no
 * backend works on it any more, to the last byte of its answer.
 */
export type ScanPermits = Readonly<{
  /** Whether a request with scans may be let in: to run, or to wait among a few others. */
  hasRoom(accountId: number, max: number): boolean;
  /**
   * What gives the permit back, at once when there is one; else it comes in the order of asking, or when `signal`
   * aborts, with nothing to give back.
   */
  take(accountId: number, max: number, signal: AbortSignal): (() => void) | Promise<() => void>;
}>;

/**
 * Scans that may wait for each that may run. Wallets ask for two token programs at once: on a plan with one scan the
 * second waits for the first instead of being refused.
 */
const WAITING_PER_PERMIT = 2;

type Account = { held: number; max: number; readonly waiting: (() => void)[] };

/**
 * A scan that waits in vain for one of its own batch is none of the permits' matter: a batch lets go of later scans
 * while an earlier one waits (`line.ts`).
 */
export function createScanPermits(): ScanPermits {
  const accounts = new Map<number, Account>();

  function hasRoom(accountId: number, max: number): boolean {
    const account = accounts.get(accountId);
    return account === undefined || account.held + account.waiting.length < max * (1 + WAITING_PER_PERMIT);
  }

  function take(accountId: number, max: number, signal: AbortSignal): (() => void) | Promise<() => void> {
    const account = accounts.get(accountId) ?? { held: 0, max, waiting: [] };
    account.max = max;
    const isFree = account.held < max && account.waiting.length === 0;
    if (!isFree && signal.aborted) return () => undefined;
    accounts.set(accountId, account);
    if (isFree) return hold(accountId, account);
    const { promise, resolve } = Promise.withResolvers<() => void>();
    const grant = () => {
      signal.removeEventListener('abort', leave);
      resolve(hold(accountId, account));
    };
    const leave = () => {
      account.waiting.splice(account.waiting.indexOf(grant), 1);
      forgetIfIdle(accountId, account);
      resolve(() => undefined);
    };
    account.waiting.push(grant);
    signal.addEventListener('abort', leave, { once: true });
    return promise;
  }

  function hold(accountId: number, account: Account): () => void {
    account.held++;
    return once(() => giveBack(accountId, account));
  }

  function giveBack(accountId: number, account: Account): void {
    account.held--;
    while (account.held < account.max) {
      const next = account.waiting.shift();
      if (next === undefined) break;
      next();
    }
    forgetIfIdle(accountId, account);
  }

  function forgetIfIdle(accountId: number, { held, waiting }: Account): void {
    if (held === 0 && waiting.length === 0) accounts.delete(accountId);
  }

  return { hasRoom, take };
}

function once(act: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    act();
  };
}
