/**
 * How many scans an account has under way in this process. A permit is held from before the call is sent until no
 * backend works on it any more, to the last byte of its answer.
 */
export type ScanPermits = Readonly<{
  /** Whether a request with scans may be let in: to run, or to wait among a few others. */
  hasRoom(accountId: number, max: number): boolean;
  /** Resolves, in the order of asking, to what gives the permit back; at once when `signal` aborts, with nothing to give back. */
  take(accountId: number, max: number, signal: AbortSignal): Promise<() => void>;
}>;

/**
 * Scans that may wait for each that may run. Wallets ask for two token programs at once: on a plan with one scan the
 * second waits for the first instead of being refused.
 */
const WAITING_PER_PERMIT = 2;

type Account = { held: number; max: number; readonly waiting: (() => void)[] };

/**
 * Permits without a deadlock: a batch's scans ask in its order and are answered in it, so the first that is not yet
 * answered always holds a permit or waits for one that another request will give back.
 */
export function createScanPermits(): ScanPermits {
  const accounts = new Map<number, Account>();

  function hasRoom(accountId: number, max: number): boolean {
    const account = accounts.get(accountId);
    return account === undefined || account.held + account.waiting.length < max * (1 + WAITING_PER_PERMIT);
  }

  function take(accountId: number, max: number, signal: AbortSignal): Promise<() => void> {
    const account = accounts.get(accountId) ?? { held: 0, max, waiting: [] };
    accounts.set(accountId, account);
    account.max = max;
    const { promise, resolve } = Promise.withResolvers<() => void>();
    const grant = () => {
      signal.removeEventListener('abort', leave);
      account.held++;
      resolve(once(() => giveBack(accountId, account)));
    };
    const leave = () => {
      account.waiting.splice(account.waiting.indexOf(grant), 1);
      forgetIfIdle(accountId, account);
      resolve(() => undefined);
    };
    if (account.held < account.max && account.waiting.length === 0) grant();
    else if (signal.aborted) resolve(() => undefined);
    else {
      account.waiting.push(grant);
      signal.addEventListener('abort', leave, { once: true });
    }
    return promise;
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
