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

/** Of the scans that an account may have under way, those that this process may. */
export type Places = Readonly<{
  /** How many of `max` may run here now; asked again whenever one begins or ends. */
  limitOf(accountId: number, max: number): number;
  /** Told how many run and how many wait, whenever that changes. */
  note(accountId: number, max: number, running: number, waiting: number): void;
  /** Takes who is to be told that the limit of an account may have changed. */
  onChange(listener: (accountId: number) => void): void;
}>;

/** Those of a process that is alone: all. */
const ALL: Places = { limitOf: (_, max) => max, note: () => undefined, onChange: () => undefined };

/**
 * Scans that may wait for each that may run. Wallets ask for two token programs at once: on a plan with one scan the
 * second waits for the first instead of being refused.
 */
const WAITING_PER_PERMIT = 2;

type Account = { readonly id: number; held: number; max: number; readonly waiting: (() => void)[] };

/**
 * A scan that waits in vain for one of its own batch is none of the permits' matter: a batch lets go of later scans
 * while an earlier one waits (`line.ts`).
 */
export function createScanPermits(places: Places = ALL): ScanPermits {
  const accounts = new Map<number, Account>();
  places.onChange((accountId) => {
    const account = accounts.get(accountId);
    if (account !== undefined) serve(account);
  });

  function hasRoom(accountId: number, max: number): boolean {
    const account = accounts.get(accountId);
    return account === undefined || account.held + account.waiting.length < max * (1 + WAITING_PER_PERMIT);
  }

  function take(accountId: number, max: number, signal: AbortSignal): (() => void) | Promise<() => void> {
    const account = accounts.get(accountId) ?? { id: accountId, held: 0, max, waiting: [] };
    account.max = max;
    const isFree = account.waiting.length === 0 && hasPlace(account);
    if (!isFree && signal.aborted) return () => undefined;
    accounts.set(accountId, account);
    if (isFree) return hold(account);
    const { promise, resolve } = Promise.withResolvers<() => void>();
    const grant = () => {
      signal.removeEventListener('abort', leave);
      resolve(hold(account));
    };
    const leave = () => {
      account.waiting.splice(account.waiting.indexOf(grant), 1);
      note(account);
      resolve(() => undefined);
    };
    account.waiting.push(grant);
    signal.addEventListener('abort', leave, { once: true });
    note(account);
    return promise;
  }

  function hasPlace({ id, held, max }: Account): boolean {
    return held < Math.min(max, places.limitOf(id, max));
  }

  function hold(account: Account): () => void {
    account.held++;
    note(account);
    return once(() => {
      account.held--;
      serve(account);
      note(account);
    });
  }

  /** Lets those run that wait, in the order of asking, as far as there are places. */
  function serve(account: Account): void {
    while (account.waiting.length > 0 && hasPlace(account)) account.waiting.shift()?.();
  }

  function note(account: Account): void {
    const { id, max, held, waiting } = account;
    if (held === 0 && waiting.length === 0) accounts.delete(id);
    places.note(id, max, held, waiting.length);
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
