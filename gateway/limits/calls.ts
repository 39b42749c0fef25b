/** How many calls each account has under way in this process, of all classes together. */
export type CallPermits = ReturnType<typeof createCallPermits>;

/**
 * A permit is held from before a call is paid for to the last byte of its answer. They are counted and no more, because
 * every call takes one. A request that finds none is refused; calls of a batch that was let in wait, and go before
 * requests that come after them.
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

  /** Takes a permit as soon as there is one; false when `signal` aborts first. */
  function wait(accountId: number, max: number, signal: AbortSignal): boolean | Promise<boolean> {
    if (signal.aborted) return false;
    if (take(accountId, max)) return true;
    const queue = queues.getOrInsert(accountId, []);
    return awaitPermit(queue, { signal, granted: () => true, left: () => false });
  }

  return { take, giveBack, wait, size: () => taken.size + queues.size };
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
