import { awaitPermit } from './calls.ts';

/** The permits of scans of this process, as the rest of the gateway sees them. */
export type ScanPermits = Pick<ReturnType<typeof createScanPermits>, 'hasRoom' | 'take'>;

/** Scans that may wait for each that may run: wallets ask for two token programs at once. */
const WAITING_PER_PERMIT = 2;

/** One account's scans in this process. Mutable: it is the account's state. */
export class Scans {
  running = 0;
  readonly queue: (() => void)[] = [];

  constructor(
    readonly id: number,
    public max: number,
  ) {}

  /** Scans that may run in this process now. */
  allowed(): number {
    return this.max;
  }

  /** Does what changes the scans that run or wait. */
  change(act: () => void): void {
    act();
  }

  /** Nothing is known of it that a new one would not know. */
  isAtRest(): boolean {
    return this.running === 0 && this.queue.length === 0;
  }
}

/**
 * The permits of this process. A permit is held from before the call is sent until no backend works on it any more, and
 * outside of a batch until the last byte of its answer has been sent. A batch itself prevents that one of its scans waits
 * in vain for another. `make` makes the state of an account that is not in `accounts`.
 */
export function createScanPermits<Account extends Scans>(
  accounts: Map<number, Account>,
  make: (id: number, max: number) => Account,
) {
  function change(scans: Account, act: () => void): void {
    scans.change(act);
    if (scans.isAtRest()) accounts.delete(scans.id);
  }

  /** Lets one run; gives what ends it. */
  function start(scans: Account): () => void {
    let isRunning = true;
    change(scans, () => scans.running++);
    return () => {
      if (!isRunning) return;
      isRunning = false;
      change(scans, () => {
        scans.running--;
        serve(scans);
      });
    };
  }

  /** Lets waiting scans run, in the order of asking, as far as there are permits. */
  function serve(scans: Account): void {
    while (scans.queue.length > 0 && scans.running < scans.allowed()) scans.queue.shift()?.();
  }

  return {
    /** Whether a request with scans may be let in: to run, or to wait among a few others. */
    hasRoom(accountId: number, max: number): boolean {
      const { running = 0, queue = [] } = accounts.get(accountId) ?? {};
      return running + queue.length < max * (1 + WAITING_PER_PERMIT);
    },
    /** Gives what gives the permit back, in the order of asking; nothing when `signal` aborts first. */
    take(accountId: number, max: number, signal: AbortSignal): (() => void) | Promise<() => void> {
      const scans = accounts.get(accountId) ?? make(accountId, max);
      scans.max = max;
      const isFree = scans.queue.length === 0 && scans.running < scans.allowed();
      if (!isFree && signal.aborted) return () => undefined;
      accounts.set(accountId, scans);
      if (isFree) return start(scans);
      const wait = { signal, granted: () => start(scans), left: () => () => undefined };
      return awaitPermit(scans.queue, wait, (act) => change(scans, act));
    },
    serve,
    size: () => accounts.size,
  };
}
