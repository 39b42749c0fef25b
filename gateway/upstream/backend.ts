import type { Clock } from '../../shared/clock.ts';
import type { BackendConfig } from '../../shared/config/backends.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { HttpClient } from './http-client.ts';

/** Why a backend is left out while others are well. */
export type ExclusionReason = 'unreachable' | 'unhealthy' | 'lagging' | 'stalled' | 'of another chain';

/** How a backend stands after its last probes. */
export type HealthState = Readonly<{
  /** `undefined`: it takes part. */
  excludedBecause: ExclusionReason | undefined;
  /** What an unreachable one did instead of answering, for the operator; empty otherwise. */
  reason: string;
  /** Slots behind the pool's reference; 0 when not known. */
  lagSlots: number;
  /** Probes in a row that spoke against its present state: bad ones while it takes part, good ones while it is out. */
  against: number;
  /** When it came back, on the monotonic clock; -Infinity: it was never out. */
  backAtMs: number;
  /** Its newest slot, and when that last grew. */
  tip: number;
  movedAtMs: number;
}>;

export const HEALTHY: HealthState = {
  excludedBecause: undefined,
  reason: '',
  lagSlots: 0,
  against: 0,
  backAtMs: -Infinity,
  tip: 0,
  movedAtMs: -Infinity,
};

/**
 * How much an account prefers a backend, 0 up to 2^32: rendezvous hashing, so that one caller reads from one node, callers
 * spread over all nodes, and a node that leaves moves only its own callers (Thaler and Ravishankar, 1998).
 */
export function preference(accountId: number, backend: number): number {
  let h = Math.imul(accountId ^ backend, 0x85ebca6b) ^ Math.imul(backend, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The number of a backend for `preference`: FNV-1a of its name, so that the order survives restarts and edits of the list. */
export function numberOf(name: string): number {
  let h = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) h = Math.imul(h ^ byte, 0x01000193);
  return h >>> 0;
}

/** The software of a backend, and the lanes it serves. */
type Kind = Pick<BackendConfig, 'profile' | 'lanes'>;

/** Whether a backend goes with the tip of the chain: what serves nothing but history does not, nor does an archive's software. */
export function followsTip({ profile, lanes }: Kind): boolean {
  return (
    PROFILES[profile].followsTip &&
    lanes.some((lane) => lane === 'state' || lane === 'scan' || lane === 'send')
  );
}

/** Whether a backend of the history methods is a live node, which serves the state of now; it is an archive otherwise. */
export function isLiveNode({ profile, lanes }: Kind): boolean {
  return PROFILES[profile].followsTip && lanes.includes('state');
}

/** How far a slot must have been agreed upon (Agave `commitment.rs`). */
export const COMMITMENTS = ['processed', 'confirmed', 'finalized'] as const;
export type Commitment = (typeof COMMITMENTS)[number];

/** How much of the chain a backend has shown to have: learnt from probes and from its answers. */
export type SlotRange = {
  /** The newest slot it has shown, by commitment; 0: none yet. */
  readonly tip: Record<Commitment, number>;
  /** Its first available block, without any long-term storage behind it; `undefined`: not known. */
  firstLocalBlock: number | undefined;
  /** Its first available block with its long-term storage; `undefined`: not known. */
  firstBlock: number | undefined;
};

function createSlotRange(): SlotRange {
  return {
    tip: { processed: 0, confirmed: 0, finalized: 0 },
    firstLocalBlock: undefined,
    firstBlock: undefined,
  };
}

/** What became of a backend's calls lately: answers that began, and failures that were its fault. */
type Recent = Readonly<{
  answered(): void;
  failed(): void;
  /** Says that ten seconds are over. */
  turn(): void;
  /** The sums of the last `RECENT_SECONDS` and what has begun since. */
  sums(): Readonly<{ answered: number; failed: number }>;
}>;

/** The time that is looked back on, in seconds. */
export const RECENT_SECONDS = 300;
export const TURN_SECONDS = 10;
const TURNS = RECENT_SECONDS / TURN_SECONDS;

/** Counting is an increment; what is old leaves with the turns. */
function createRecent(): Recent {
  let now = { answered: 0, failed: 0 };
  let held = [now];

  return {
    answered: () => void now.answered++,
    failed: () => void now.failed++,
    turn() {
      now = { answered: 0, failed: 0 };
      held = [...held.slice(-TURNS), now];
    },
    sums: () =>
      held.reduce(
        (sum, one) => ({ answered: sum.answered + one.answered, failed: sum.failed + one.failed }),
        { answered: 0, failed: 0 },
      ),
  };
}

/** Where a call stands in its batch. Calls with the same `batch` are answered in the order of their places. */
export type BatchPosition = Readonly<{ batch: object; index: number }>;

/** A call that waits for a place. */
type Waiter = Readonly<{
  accountId: number;
  batchPosition?: BatchPosition | undefined;
  /** Takes the place that has become free. */
  take(): void;
}>;

/**
 * Who waits for a place at a backend: each account in its turn, and of one account the first that came. So one that has
 * thousands waiting delays no other account by more than one place. Of a batch, whose calls are
 * answered in order, the earliest takes the turn of any.
 */
type FairQueue = Readonly<{
  add(waiter: Waiter): void;
  /** One that waits no longer. */
  remove(waiter: Waiter): void;
  /** Takes the next one out; `undefined` when none waits. */
  next(): Waiter | undefined;
  isEmpty(): boolean;
}>;

export function createFairQueue(): FairQueue {
  /** In the order of their turns. */
  const lines = new Map<number, Set<Waiter>>();

  function remove(waiter: Waiter): void {
    const line = lines.get(waiter.accountId);
    line?.delete(waiter);
    if (line?.size === 0) lines.delete(waiter.accountId);
  }

  return {
    add(waiter) {
      const line = lines.get(waiter.accountId);
      if (line === undefined) lines.set(waiter.accountId, new Set([waiter]));
      else line.add(waiter);
    },
    remove,
    isEmpty: () => lines.size === 0,
    next() {
      for (const [accountId, line] of lines) {
        const [first] = line;
        if (first === undefined) continue;
        const waiter = earliestSibling(first, line);
        // Its account's turn comes again after all others.
        lines.delete(accountId);
        line.delete(first);
        // Who gave its turn up has the other's instead.
        const rest =
          waiter === first ? line : new Set([...line].map((other) => (other === waiter ? first : other)));
        if (rest.size > 0) lines.set(accountId, rest);
        return waiter;
      }
      return undefined;
    },
  };
}

/** The first in its batch of those that wait with `waiter`. */
function earliestSibling(waiter: Waiter, line: ReadonlySet<Waiter>): Waiter {
  let earliest = waiter;
  if (waiter.batchPosition === undefined) return earliest;
  for (const other of line) {
    const isSibling = other.batchPosition?.batch === waiter.batchPosition.batch;
    if (isSibling && placeOf(other) < placeOf(earliest)) earliest = other;
  }
  return earliest;
}

function placeOf({ batchPosition }: Waiter): number {
  return batchPosition?.index ?? Infinity;
}

/**
 * One backend and what this process knows of it. A class because it has an identity and changes: calls enter
 * and leave it, a failure puts it behind the others for a while, and probes tell how it stands.
 */
export class Backend {
  readonly config: BackendConfig;
  readonly client: HttpClient;
  readonly slots: SlotRange = createSlotRange();
  /** Its number among the choices of an account (`preference`). */
  readonly number: number;
  /** Calls that wait for a place here. */
  readonly queue: FairQueue = createFairQueue();
  /** What became of its calls lately. */
  readonly recent: Recent = createRecent();
  /** What the probes say of it. */
  health: HealthState = HEALTHY;
  #inFlight = 0;
  #failures = 0;
  #failedUntilMs = 0;
  #onTrial = false;
  #trialSinceMs: number | undefined;

  constructor(config: BackendConfig, client: HttpClient) {
    this.config = config;
    this.client = client;
    this.number = numberOf(config.name);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** Whether another call may enter. */
  get hasRoom(): boolean {
    return this.#inFlight < this.config.connectionsMax;
  }

  /** Whether it takes part, has not failed lately, and has all its callers back: most backends nearly always. */
  isSteady(nowMs: number): boolean {
    const { excludedBecause: out, backAtMs } = this.health;
    return this.#failures === 0 && out === undefined && nowMs - backAtMs >= RAMP_MS;
  }

  /** Counts a call in, to the last byte of its answer; `leave` must be called once. */
  enter(): void {
    this.#inFlight++;
    // The first call after a penalty finds out whether it is well again; until then the others keep away.
    if (this.#failures > 0) this.#onTrial = true;
  }

  leave(): void {
    this.#inFlight--;
    if (this.queue.isEmpty() || !this.hasRoom) return;
    this.queue.next()?.take();
  }

  /**
   * Puts it behind the other backends: a dead host should cost one call now and then, not every call. For a second at
   * first, twice as long each time it fails again, at most `PENALTY_MS_MAX`.
   */
  markFailed(clock: Clock): void {
    const nowMs = clock.monotonic();
    this.recent.failed();
    this.endTrial();
    if (nowMs < this.#failedUntilMs) return; // calls that were under way with the first one
    this.#failedUntilMs = nowMs + Math.min(PENALTY_MS_MAX, PENALTY_MS * 2 ** this.#failures);
    this.#failures++;
  }

  /** An answer began: it is as good as any other again. */
  markWell(): void {
    this.recent.answered();
    this.#failures = 0;
    this.#failedUntilMs = 0;
    this.endTrial();
  }

  /** The call that was to find out ended without telling: its caller left, or the answer was no failure of its. */
  endTrial(): void {
    this.#onTrial = false;
    this.#trialSinceMs = undefined;
  }

  isFailing(clock: Clock): boolean {
    const nowMs = clock.monotonic();
    if (!this.#onTrial) return nowMs < this.#failedUntilMs;
    this.#trialSinceMs ??= nowMs;
    return nowMs - this.#trialSinceMs < TRIAL_MS;
  }
}

/** After its return a backend is given its callers back over this time, so that they do not all fall on it at once. */
export const RAMP_MS = 10_000;

/** A trial that takes longer is a slow call, and says nothing; the others need not wait for it. */
const TRIAL_MS = 3_000;
const PENALTY_MS = 1_000;
const PENALTY_MS_MAX = 16_000;

/** A place at one backend: `leave` gives it back, once, however often it is called. */
export type Permit = Readonly<{ backend: Backend; leave: () => void }>;

/** Enters a backend that has room. */
export function permitAt(backend: Backend): Permit {
  backend.enter();
  return { backend, leave: leaveOnce(backend) };
}

/** Gives back one place at a backend that was entered. */
export function leaveOnce(backend: Backend): () => void {
  let inside = true;
  return () => {
    if (inside) backend.leave();
    inside = false;
  };
}

/** A place at a backend for one call; `leave` must be called once. `others` have room too, for when it fails. */
type FirstPermit = Permit & Readonly<{ others: readonly Backend[] }>;

/**
 * A place at the first of the given backends with room; when none has any, the first that becomes free, each account in
 * its turn, after at most `waitMs`. `undefined` when the time is over or `signal` aborts.
 */
export function acquirePermit(
  backends: readonly Backend[],
  accountId: number,
  waitMs: number,
  clock: Clock,
  signal: AbortSignal,
  batchPosition?: BatchPosition,
): FirstPermit | Promise<FirstPermit | undefined> | undefined {
  const [backend, ...others] = backends.filter(({ hasRoom }) => hasRoom);
  if (backend !== undefined) return { ...permitAt(backend), others };
  return backends.length === 0 || signal.aborted
    ? undefined
    : waitForPermit(backends, accountId, waitMs, clock, signal, batchPosition);
}

async function waitForPermit(
  backends: readonly Backend[],
  accountId: number,
  waitMs: number,
  clock: Clock,
  signal: AbortSignal,
  batchPosition?: BatchPosition,
): Promise<FirstPermit | undefined> {
  const { promise, resolve } = Promise.withResolvers<FirstPermit | undefined>();
  const waiters = backends.map((backend) => {
    const take = () => {
      stop();
      resolve({ ...permitAt(backend), others: [] });
    };
    return { backend, waiter: { accountId, batchPosition, take } };
  });
  const over = new AbortController();
  const stop = () => {
    for (const { backend, waiter } of waiters) backend.queue.remove(waiter);
    over.abort();
  };
  for (const { backend, waiter } of waiters) backend.queue.add(waiter);
  signal.addEventListener('abort', stop, { once: true });
  void clock.sleep(waitMs, over.signal).then(() => {
    stop();
    resolve(undefined); // too late for one that has a place
  });
  const place = await promise;
  signal.removeEventListener('abort', stop);
  return place;
}
