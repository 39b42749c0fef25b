/** How many calls each account has under way in this process, of all classes together. */
export type CallPermits = ReturnType<typeof createCallPermits>;

/**
 * A permit is held from before a request is paid for until the last byte of its answer has been handed to the system, so
 * that what an account has in memory unread is bounded too. They are counted and no more, because every call takes one. A
 * request that finds none is refused; calls of a batch that was let in wait, and go before requests that come after them.
 */
export function createCallPermits() {
  /** By account; an account without any is not there. */
  const taken = new Map<number, number>();
  /** Calls that wait, in the order of asking. Whoever waits, waits for a permit that is taken. */
  const queues = new Map<number, (() => void)[]>();

  function take(accountId: number, max: number): boolean {
    const count = taken.get(accountId) ?? 0;
    if (count >= max) return false;
    taken.set(accountId, count + 1);
    return true;
  }

  /** Gives a permit back, once for each that was taken: to the call that has waited longest, if one waits. */
  function giveBack(accountId: number): void {
    const queue = queues.size === 0 ? undefined : queues.get(accountId);
    const grant = queue?.shift();
    if (queue?.length === 0) queues.delete(accountId);
    if (grant !== undefined) return grant();
    const count = (taken.get(accountId) ?? 0) - 1;
    if (count > 0) taken.set(accountId, count);
    else taken.delete(accountId);
  }

  /**
   * The permits of a batch that was let in with one. That one is kept until its answer has been sent, for its calls to use
   * in turn; each call that runs beside has one of its own, until it is answered.
   */
  function ofBatch(accountId: number, max: number) {
    let held = 1;
    let used = 0;
    let isSent = false;
    /** Those of its calls that wait. */
    const grants: (() => void)[] = [];

    function use(isOwn: boolean): boolean {
      if (isOwn) held++;
      used++;
      return true;
    }

    return {
      /** Has a permit for a call as soon as there is one; false when `signal` aborts first. */
      wait(signal: AbortSignal): boolean | Promise<boolean> {
        if (signal.aborted) return false;
        if (used < held) return use(false);
        if (take(accountId, max)) return use(true);
        const queue = queues.getOrInsert(accountId, []);
        const waited = awaitPermit(queue, { signal, granted: () => use(true), left: () => false });
        const grant = queue.at(-1);
        if (grant === undefined) return waited;
        grants.push(grant);
        return waited.finally(() => grants.splice(grants.indexOf(grant), 1));
      },
      /** To be called for each call that had one, when it is answered. */
      done(): void {
        used--;
        if (held > 1 || isSent) {
          held--;
          giveBack(accountId);
        } else handOn();
      },
      /** The answer has been sent, or its caller has left. */
      sent(): void {
        isSent = true;
        for (; held > used; held--) giveBack(accountId);
      },
    };

    /** Gives the kept permit to its next call that waits. */
    function handOn(): void {
      const queue = queues.get(accountId);
      const next = queue?.findIndex((grant) => grants.includes(grant)) ?? -1;
      const [grant] = next === -1 ? [] : (queue?.splice(next, 1) ?? []);
      if (queue?.length === 0) queues.delete(accountId);
      if (grant === undefined) return;
      held--;
      grant();
    }
  }

  return { take, giveBack, ofBatch, size: () => taken.size + queues.size };
}

/** Puts a wait into the queue until it is granted or its caller leaves; `change` does what changes the queue. */
export function awaitPermit<T>(
  queue: (() => void)[],
  { signal, granted, left }: Readonly<{ signal: AbortSignal; granted(): T; left(): T }>,
  change = (act: () => void) => act(),
): Promise<T> {
  const { promise, resolve } = Promise.withResolvers<T>();
  const grant = () => {
    signal.removeEventListener('abort', leave);
    resolve(granted());
  };
  const leave = () => {
    change(() => queue.splice(queue.indexOf(grant), 1));
    resolve(left());
  };
  change(() => queue.push(grant));
  signal.addEventListener('abort', leave, { once: true });
  return promise;
}
