import type { Method } from '../../shared/config/methods.ts';
import type { Clock } from '../../shared/clock.ts';
import type { BackendConfig } from '../../shared/config/backends.ts';
import { type Lane, PROFILES } from '../../shared/config/profiles.ts';
import { afterSpace, valueAt, wholeNumberAt } from '../json/scan.ts';
import type { HttpClient } from './http-client.ts';
import { BEHIND_MS } from './reader-pace.ts';
import { Latency } from './latency.ts';

/** Why a backend is left out while others are well. */
export type ExclusionReason = 'unreachable' | 'unhealthy' | 'lagging' | 'stalled' | 'of another chain';

/** How a backend stands after its last probes. */
export type HealthState = Readonly<{
  /** `undefined`: it takes part. */
  excludedBecause: ExclusionReason | undefined;
  /** The act of an unreachable one in place of an answer, for the operator; empty otherwise. */
  reason: string;
  /** Slots behind the pool's reference; 0 when not known. */
  lagSlots: number;
  /** Probes in a row that contradict its state: bad ones while it takes part, good ones while it is left out. */
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

/** How much an account prefers a backend, 0 up to 2^32, so that a caller reads from one node (rendezvous hashing, 1998). */
export function preference(accountId: number, backend: number): number {
  let h = Math.imul(accountId ^ backend, 0x85ebca6b) ^ Math.imul(backend, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** The number of a backend for `preference`: a hash of its name, so that the order survives restarts and edits of the list. */
export function numberOf(name: string): number {
  return hashOf(Buffer.from(name), 0x811c9dc5) >>> 0;
}

/** FNV-1a, 32 bits, from the hash of what stands before the bytes. */
export function hashOf(bytes: Uint8Array, seed: number): number {
  let hash = seed;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  return hash;
}

/** Whether a backend goes with the tip of the chain: what serves nothing but history does not, nor does an archive's software. */
export function followsTip({ profile, lanes }: Pick<BackendConfig, 'profile' | 'lanes'>): boolean {
  return PROFILES[profile].followsTip && !lanes.every((lane) => lane === 'archive' || lane === 'assets');
}

/** Whether a backend of the history methods is a live node, which serves the state of now; it is an archive otherwise. */
export function isLiveNode({ profile, lanes }: Pick<BackendConfig, 'profile' | 'lanes'>): boolean {
  return PROFILES[profile].followsTip && lanes.includes('state');
}

/** How far a slot must have been agreed upon (Agave `commitment.rs`). */
export const COMMITMENTS = ['processed', 'confirmed', 'finalized'] as const;
export type Commitment = (typeof COMMITMENTS)[number];

/** Bytes at an answer's beginning in which its slot stands, on every known node: each writes the context before the value. */
const HEAD_BYTES = 1_024;

const RESULT = Buffer.from('"result"');
const CONTEXT = Buffer.from('"context"');
const SLOT = Buffer.from('"slot"');

/**
 * The slot that an answer says it was read at: that of its result's own context, or the result itself; 0 when it says none.
 * Found by its structure, because the data of an account may hold whatever its owner likes.
 */
export function answerSlot(slotIn: Method['slotIn'], answer: Buffer): number {
  const head = answer.length > HEAD_BYTES ? answer.subarray(0, HEAD_BYTES) : answer;
  const result = valueAt(head, afterSpace(head, 0), RESULT);
  if (slotIn === 'result') return wholeNumberAt(head, result) || 0;
  const context = valueAt(head, result, CONTEXT);
  return wholeNumberAt(head, valueAt(head, context, SLOT)) || 0;
}

/** The time that is looked back on, in seconds. */
export const RECENT_SECONDS = 300;
export const TURN_SECONDS = 10;

/** Outcomes of a backend's calls in the last `RECENT_SECONDS`: answers that began, and failures that were its fault. */
class Recent {
  now = { answered: 0, failed: 0 };
  #turns = [this.now];

  /** Begins the next `TURN_SECONDS`, and forgets the oldest. */
  turn(): void {
    this.now = { answered: 0, failed: 0 };
    this.#turns = [...this.#turns.slice(-RECENT_SECONDS / TURN_SECONDS), this.now];
  }

  sums(): Readonly<{ answered: number; failed: number }> {
    return this.#turns.reduce((a, b) => ({ answered: a.answered + b.answered, failed: a.failed + b.failed }));
  }
}

/** A call that enters a backend. */
export type EnteringCall = Readonly<{
  accountId: number;
  signal: AbortSignal;
  /** Absent: it is a request of its own. */
  inBatch?: InBatch;
}>;

/** The relation of a call of a batch to the others, which are answered in the order of their indexes. */
type InBatch = Readonly<{
  batch: object;
  index: number;
  /** Called when the call waits for what others hold; what it gives is called when the wait ends. */
  onWait(): () => void;
  /** Lets go of an answer that waits for its turn, which is requested again then; false when none does. */
  evict(): boolean;
}>;

/** A call that waits, since `sinceMs` of the monotonic clock, for a connection of any of several backends. */
type Waiter = Pick<EnteringCall, 'accountId' | 'inBatch'> &
  Readonly<{ sinceMs: number; take(backend: Backend): void }>;

/**
 * Calls that wait for a connection: accounts take turns, first come first served within one, so that thousands of waiting
 * calls delay another account by one at most. Of a batch, which is answered in order, the earliest call takes the turn.
 */
class FairQueue {
  /** In the order of their turns. */
  readonly #lines = new Map<number, Waiter[]>();

  add(waiter: Waiter): void {
    const line = this.#lines.getOrInsert(waiter.accountId, []);
    let at = line.push(waiter) - 1;
    // Thousands may wait: only a call of a batch looks at the others.
    for (let i = at - 1; i >= 0 && waiter.inBatch !== undefined; i--) {
      const other = line[i];
      if (other === undefined || !isBefore(waiter, other)) continue;
      [line[i], line[at]] = [waiter, other];
      at = i;
    }
  }

  remove(waiter: Waiter): void {
    const line = this.#lines.get(waiter.accountId) ?? [];
    const at = line.indexOf(waiter);
    if (at !== -1) line.splice(at, 1);
    if (line.length === 0) this.#lines.delete(waiter.accountId);
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  /** The accounts that wait, in the order of their turns, with their first calls, `callsMax` at most. */
  accounts(callsMax: number): readonly (readonly [accountId: number, calls: readonly Waiter[]])[] {
    return [...this.#lines].map(([accountId, line]) => [accountId, line.slice(0, callsMax)]);
  }

  /** Gives the next turn to an account that waits. */
  favour(accountId: number): void {
    const lines = [...this.#lines];
    for (const [other, line] of lines) {
      if (other === accountId) continue;
      this.#lines.delete(other);
      this.#lines.set(other, line);
    }
  }

  /** Takes the next one out whose account may enter; `undefined` when none waits. */
  next(mayEnter: (accountId: number) => boolean): Waiter | undefined {
    for (const [accountId, line] of this.#lines) {
      if (!mayEnter(accountId)) continue;
      const first = line.shift();
      // Its account's turn comes again after all others.
      this.#lines.delete(accountId);
      if (line.length > 0) this.#lines.set(accountId, line);
      return first;
    }
    return undefined;
  }
}

function isBefore({ inBatch: a }: Waiter, { inBatch: b }: Waiter): boolean {
  return a !== undefined && b !== undefined && a.batch === b.batch && a.index < b.index;
}

/** One backend as this process knows it: calls enter and leave, failures put it behind, probes tell how it stands. */
export class Backend {
  readonly config: BackendConfig;
  readonly client: HttpClient;
  readonly connectionsMax: number;
  /**
   * How much of the chain it has shown to have, by probes and answers: its newest slot by commitment, 0 for none yet; its
   * first available block, without and with the long-term storage behind it, `undefined` while not known.
   */
  readonly slots: {
    readonly tip: Record<Commitment, number>;
    firstLocalBlock: number | undefined;
    firstBlock: number | undefined;
  } = {
    tip: { processed: 0, confirmed: 0, finalized: 0 },
    firstLocalBlock: undefined,
    firstBlock: undefined,
  };
  /** The newest slot that it was taken to have at its last probe, and when; 0: there was none. */
  probed = { slot: 0, atMs: 0 };
  readonly number: number;
  readonly queue = new FairQueue();
  readonly recent = new Recent();
  /** Of lanes whose calls are light, so that the times of two backends compare. */
  readonly latencies: Readonly<Partial<Record<Lane, Latency>>> = {
    state: new Latency(),
    assets: new Latency(),
  };
  /** How long it took to answer its last probe; `undefined`: not known. */
  probeTookMs: number | undefined;
  health: HealthState = HEALTHY;
  /** It hangs: it answered neither of two probes in a row nor a call since the first; until it is back, one probe is enough. */
  isSilent = false;
  answered = 0;
  inFlight = 0;
  /** The newest finalized slot by its last probe; 0: not known. The slot of an answer may be another commitment's. */
  finalized = 0;
  /** The hash of its chain; `undefined`: not known. */
  genesis: string | undefined;
  #failures = 0;
  #failedUntilMs = 0;
  #onProbation = false;
  #batchesRefusedUntilMs = Number.NEGATIVE_INFINITY;
  /** Answers to evict were looked for a moment ago; while calls wait they will be again. */
  #isEvicting = false;
  /** Accounts of which an answer was evicted, and until when they leave a part of the connections free. */
  readonly #crowdingUntilMs = new Map<number, number>();

  /** `processes`: so many share the connections of the config. */
  constructor(config: BackendConfig, client: HttpClient, processes = 1) {
    this.config = config;
    this.client = client;
    this.connectionsMax = Math.max(1, Math.floor(config.connectionsMax / processes));
    this.number = numberOf(config.name);
  }

  /** Whether it may have the slot that an answer says: far above its last probe it has not, whoever wrote that. */
  mayHaveReached(slot: number, clock: Clock): boolean {
    const { slot: probed, atMs } = this.probed;
    const ahead = slot - probed - AHEAD_SLOTS_MAX;
    return probed === 0 || ahead <= 0 || ahead <= ((clock.monotonic() - atMs) / 1_000) * SLOTS_PER_SECOND_MAX;
  }

  get hasRoom(): boolean {
    return this.inFlight < this.connectionsMax;
  }

  /** Whether a call of the account may enter. One that others had to make way for leaves some connections free for a while. */
  hasRoomFor(accountId: number): boolean {
    const reserved = this.#crowdingUntilMs.has(accountId) ? Math.floor((this.connectionsMax + 6) / 8) : 0;
    return this.inFlight < this.connectionsMax - reserved;
  }

  /** Counts a call in, to the last byte of its answer; `leave` must be called once. */
  enter(clock: Clock): void {
    this.inFlight++;
    if (this.#failures === 0 || this.#onProbation || this.isFailing(clock)) return;
    // The first call after a penalty finds out whether it is well again; until then the others keep away.
    this.#onProbation = true;
    this.#failedUntilMs = clock.monotonic() + PROBATION_MS;
  }

  leave(): void {
    this.inFlight--;
    if (!this.queue.isEmpty) this.#admit();
  }

  #admit(): void {
    while (this.hasRoom) {
      const next = this.queue.next((accountId) => this.hasRoomFor(accountId));
      if (next === undefined) return;
      next.take(this);
    }
  }

  /**
   * While calls wait, no account holds more than its share of the connections: all of them divided by the accounts that
   * hold some or wait, one at least. For each waiting call of an account below its share, one answer of an account above
   * its own is evicted: one that was not read for a second, because its reader is behind or its turn in a batch has not
   * come. First those whose reader has stopped, the longest unread first: a piece is up to a megabyte, for which a slow
   * reader takes more than a second each time, so that one has stopped only after twice its longest pause. Then those of
   * slow readers, the fewest bytes read for its time first. After a wait of a second it may also be one whose reader was
   * behind most of the time, though not all of the last second. A call without an answer ends at its deadline, and one
   * whose backend is slower than its reader by itself. An account of which an answer was evicted leaves a part of the
   * connections free for `CROWDING_MS`: else its next call would enter at once, and each call of the others would wait for
   * an eviction.
   */
  evictForWaiters(clock: Clock): void {
    if (this.queue.isEmpty || this.#isEvicting) return;
    const nowMs = clock.monotonic();
    for (const [id, untilMs] of this.#crowdingUntilMs) if (untilMs <= nowMs) this.#crowdingUntilMs.delete(id);
    this.#admit();
    this.#evict(nowMs);
    if (this.queue.isEmpty) return;
    this.#isEvicting = true; // thousands may come to wait meanwhile
    void clock.sleep(LOOK_MS, NEVER).then(() => {
      this.#isEvicting = false;
      this.evictForWaiters(clock);
    });
  }

  #evict(nowMs: number): void {
    const calls = this.client.calls();
    const held = new Map<number, number>();
    const add = (id: number, change: number) => held.set(id, (held.get(id) ?? 0) + change);
    for (const { accountId } of calls) add(accountId, 1);
    const waiting = this.queue.accounts(this.connectionsMax);
    const accounts = new Set([...held.keys(), ...waiting.map(([id]) => id)]).size;
    const share = Math.max(1, Math.floor(this.connectionsMax / accounts));
    const isAbove = (accountId: number) => (held.get(accountId) ?? 0) > share;
    const late = calls
      .flatMap(({ accountId, answer }) =>
        answer === undefined || !isAbove(accountId) ? [] : { accountId, answer },
      )
      // Read once: time goes on while they are compared.
      .map((call) => {
        const { isStopped, readPerMs, unreadSinceMs } = call.answer;
        return { ...call, isStopped, readPerMs, isUnread: nowMs - unreadSinceMs >= BEHIND_MS };
      })
      .filter(({ isUnread, answer }) => isUnread || answer.isBehind)
      .toSorted((a, b) => {
        if (a.isUnread !== b.isUnread) return a.isUnread ? -1 : 1;
        if (a.isStopped !== b.isStopped) return a.isStopped ? -1 : 1;
        return a.isStopped ? a.answer.unreadSinceMs - b.answer.unreadSinceMs : a.readPerMs - b.readPerMs;
      });
    for (const [accountId, line] of waiting)
      for (const { sinceMs } of line.slice(0, Math.max(0, share - (held.get(accountId) ?? 0)))) {
        if (late.length === 0) return;
        const isLong = nowMs - sinceMs >= BEHIND_MS;
        const at = late.findIndex((call) => (isLong || call.isUnread) && isAbove(call.accountId));
        const [evicted] = at === -1 ? [] : late.splice(at, 1);
        if (evicted === undefined) break;
        add(evicted.accountId, -1);
        add(accountId, 1);
        this.queue.favour(accountId);
        this.#crowdingUntilMs.set(evicted.accountId, nowMs + CROWDING_MS);
        evicted.answer.evict(); // the call that waits enters at once
      }
  }

  /** Puts it behind the others: for a second at first, twice as long each time it fails again, at most `PENALTY_MS_MAX`. */
  markFailed(clock: Clock): void {
    this.recent.now.failed++;
    this.endProbation();
    if (this.isFailing(clock)) return; // calls that fail together count as one
    this.#failedUntilMs = clock.monotonic() + Math.min(PENALTY_MS_MAX, PENALTY_MS * 2 ** this.#failures);
    this.#failures++;
  }

  /** An answer began: it is as good as any other again. */
  markWell(): void {
    this.answered++;
    this.recent.now.answered++;
    this.#failures = 0;
    this.#onProbation = false;
  }

  /** The call of the probation ended without a verdict: its caller left, or the failure was not the backend's. */
  endProbation(): void {
    if (this.#onProbation) this.#failedUntilMs = 0;
    this.#onProbation = false;
  }

  /** Whether it is worth a try to send it a batch. */
  takesBatches(clock: Clock): boolean {
    return clock.monotonic() >= this.#batchesRefusedUntilMs;
  }

  /** It did not answer a batch as one: it gets none for a while. */
  refuseBatches(clock: Clock): void {
    this.#batchesRefusedUntilMs = clock.monotonic() + BATCHES_REFUSED_MS;
  }

  isFailing(clock: Clock): boolean {
    return this.#failures > 0 && clock.monotonic() < this.#failedUntilMs;
  }
}

/** Four times the pace of a cluster. */
const SLOTS_PER_SECOND_MAX = 10;
/** A probe's slots are some seconds old when they are taken, and a node that catches up is faster than the chain. */
const AHEAD_SLOTS_MAX = 64;

/** The other calls do not wait longer for that of the probation. */
const PROBATION_MS = 3_000;
const PENALTY_MS = 1_000;
/** From one look for answers to evict to the next. */
const LOOK_MS = 10;
/** An account of which an answer was evicted leaves an eighth of the connections free for so long. */
const CROWDING_MS = 3_000;
/** A backend that takes no batches is asked again after so long. */
const BATCHES_REFUSED_MS = 600_000;
const NEVER = new AbortController().signal;
const PENALTY_MS_MAX = 16_000;

/** From one look to the next whether all that a call waits for hang. */
const HANGING_LOOK_MS = 500;

/** Enters the first backend with room, now or within `waitMs`; `undefined`: none has any, all hang, or the caller left. */
export async function enterOneOf(
  backends: readonly Backend[],
  call: EnteringCall,
  waitMs: number,
  clock: Clock,
): Promise<Backend | undefined> {
  const { signal } = call;
  const free = backends.find((backend) => backend.hasRoomFor(call.accountId));
  free?.enter(clock);
  if (free !== undefined || backends.length === 0 || signal.aborted) return free;
  const { promise, resolve } = Promise.withResolvers<Backend | undefined>();
  const over = new AbortController();
  const giveUp = () => settle();
  const untilMs = clock.monotonic() + waitMs;
  const waiter: Waiter = {
    ...call,
    sinceMs: clock.monotonic(),
    take(backend) {
      backend.enter(clock);
      settle(backend);
    },
  };
  for (const { queue } of backends) queue.add(waiter);
  signal.addEventListener('abort', giveUp, { signal: over.signal });
  void watch();
  // Not before it is in the queues: a place may become free by it at once.
  const onEntered = call.inBatch?.onWait();
  for (const backend of backends) backend.evictForWaiters(clock);
  const entered = await promise;
  onEntered?.();
  return entered;

  async function watch(): Promise<void> {
    const isOver = () => clock.monotonic() >= untilMs || backends.every(({ isSilent }) => isSilent);
    do await clock.sleep(Math.min(HANGING_LOOK_MS, untilMs - clock.monotonic()), over.signal);
    while (!over.signal.aborted && !isOver());
    giveUp(); // without effect once it has entered
  }

  function settle(backend?: Backend): void {
    for (const { queue } of backends) queue.remove(waiter);
    over.abort();
    resolve(backend);
  }
}
