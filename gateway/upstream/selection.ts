import { BACKSLASH, isAt, QUOTE } from '../json/scan.ts';
import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { MethodClass } from '../methods/table.ts';
import type { Call } from '../request/envelope.ts';
import {
  type Backend,
  type Commitment,
  COMMITMENTS,
  isLiveNode,
  preference,
  type SlotRange,
} from './backend.ts';
import { createWatch, shareBack, type WatchOptions } from './health.ts';

/** What a call asks of the chain that its backend has. */
export type ReadRequirement = Readonly<{
  /** At which commitment it reads; `undefined`: it does not read the chain's present state, so no slot is compared. */
  commitment: Commitment | undefined;
  /** `minContextSlot`; 0 without one. */
  slotMin: number;
}>;

const NONE: ReadRequirement = { commitment: undefined, slotMin: 0 };
const FINALIZED: ReadRequirement = { commitment: 'finalized', slotMin: 0 };
const PROCESSED: ReadRequirement = { commitment: 'processed', slotMin: 0 };

/**
 * The requirement of a call, found by its words and not by parsing: it only chooses among backends, each of which reads the
 * parameters itself. Without a commitment it is `finalized`, except that `getSignatureStatuses` reads the newest bank.
 * Names that are escaped or stand twice are for the node to read: a slot must not be noted at the wrong commitment.
 */
export function readRequirementOf({ method, params }: Call, kind: MethodClass): ReadRequirement {
  if (method === 'getSignatureStatuses') return PROCESSED;
  const readsNow = kind === 'light' || kind === 'scan';
  if (params === undefined || params.length > CONFIG_BYTES_MAX) return readsNow ? FINALIZED : NONE;
  let commitmentAt = -1;
  let slotAt = -1;
  let isPlain = true;
  for (let i = 0; i < params.length; i++) {
    const c = params[i];
    if (c === BACKSLASH) isPlain = false;
    if (c !== QUOTE) continue;
    if (isAt(params, i, COMMITMENT)) {
      if (commitmentAt !== -1) isPlain = false;
      commitmentAt = i + COMMITMENT.length;
    } else if (slotAt === -1 && isAt(params, i, MIN_CONTEXT_SLOT)) slotAt = i + MIN_CONTEXT_SLOT.length;
  }
  const slotMin = slotAt === -1 ? 0 : Number(SLOT.exec(textAt(params, slotAt))?.[1] ?? 0);
  if (!readsNow) return slotMin === 0 ? NONE : { commitment: undefined, slotMin };
  if (!isPlain) return { commitment: undefined, slotMin };
  if (commitmentAt === -1) return slotMin === 0 ? FINALIZED : { commitment: 'finalized', slotMin };
  if (slotMin === 0)
    for (const [text, requirement] of PLAIN_REQUIREMENTS)
      if (isAt(params, commitmentAt, text)) return requirement;
  const named = NAME.exec(textAt(params, commitmentAt))?.[1];
  return { commitment: COMMITMENTS.find((commitment) => commitment === named), slotMin };
}

function textAt(bytes: Uint8Array, at: number): string {
  return Buffer.from(bytes.subarray(at, at + 64)).toString('latin1');
}

const COMMITMENT = Buffer.from('"commitment"');
const MIN_CONTEXT_SLOT = Buffer.from('"minContextSlot"');

/** As nearly all callers write it. */
const PLAIN_REQUIREMENTS = COMMITMENTS.map(
  (commitment) => [Buffer.from(`:"${commitment}"`), { commitment, slotMin: 0 }] as const,
);

/** Longer parameters are lists and transactions; megabytes are not searched for a hint. */
const CONFIG_BYTES_MAX = 65_536;
const SLOT = /^\s*:\s*(\d{1,15})/;
const NAME = /^\s*:\s*"(\w+)"/;

/** The highest slot that each account has been shown, by commitment, so that it is never shown an older chain. */
type MonotonicReads = Readonly<{
  /** 0: none, or none lately. */
  highest(accountId: number, commitment: Commitment): number;
  note(accountId: number, commitment: Commitment, slot: number): void;
}>;

/** A slot is forgotten one to two of these after it was shown: by then every node of the pool has passed it. */
const KEPT_MS = 60_000;

type Slots = Record<Commitment, number>;
type Generation = Map<number, Slots>;

/**
 * Bounded by the accounts active within two minutes: two generations, the older one dropped whole. A slot belongs to the
 * generation that it was shown in, so that one that was a lie is gone soon, however active its account is.
 */
export function createMonotonicReads(clock: Clock): MonotonicReads {
  let young: Generation = new Map();
  let old: Generation = new Map();
  let dueMs = clock.monotonic() + KEPT_MS;

  function turn(): void {
    const nowMs = clock.monotonic();
    if (nowMs < dueMs) return;
    old = nowMs >= dueMs + KEPT_MS ? new Map() : young;
    young = new Map();
    dueMs = nowMs + KEPT_MS;
  }

  return {
    highest(accountId, commitment) {
      turn();
      return Math.max(young.get(accountId)?.[commitment] ?? 0, old.get(accountId)?.[commitment] ?? 0);
    },
    note(accountId, commitment, slot) {
      turn();
      const slots = young.get(accountId) ?? { processed: 0, confirmed: 0, finalized: 0 };
      slots[commitment] = Math.max(slots[commitment], slot);
      young.set(accountId, slots);
    },
  };
}

/** The rank of a choice; a lower one is tried earlier, and the worst still serves when there is no other. */
const GOOD = 0;
/** Well, and known to be behind the slot that the caller needs. */
const BEHIND = 1;
/** Just back, and this caller is not yet given back to it. */
const RETURNING = 2;
/** Left out, but alive: its chain is older than the pool's. */
const LATE = 3;
/** Failed a moment ago, says itself that it is not well, or does not answer at all. */
const FAILING = 4;

type Choice = Readonly<{ backend: Backend; rank: number; tip: number; score: number }>;

/**
 * The backends in the order in which a call of the account asks them: the good ones as the account prefers them, then
 * those that are behind, newest first, then the others. `slotMin` is the slot that the call's answer must reach; 0: any.
 */
export function inOrder(
  able: readonly Backend[],
  accountId: number,
  { commitment }: ReadRequirement,
  slotMin: number,
  clock: Clock,
): readonly Backend[] {
  if (able.length < 2) return able;
  const nowMs = clock.monotonic();
  const choices = able.map((backend): Choice => {
    const score = preference(accountId, backend.number);
    const tip = tipOf(backend.slots, commitment);
    return { backend, rank: rankOf(backend, score, tip), tip, score };
  });
  return choices.toSorted(better).map(({ backend }) => backend);

  function rankOf(backend: Backend, score: number, tip: number): number {
    const { health, config } = backend;
    if (backend.isFailing(clock)) return FAILING;
    if (health.excludedBecause === 'lagging' || health.excludedBecause === 'stalled') return LATE;
    if (health.excludedBecause !== undefined) return FAILING;
    if (score / 2 ** 32 > shareBack(health, nowMs)) return RETURNING;
    if (commitment === 'processed' && !PROFILES[config.profile].processed) return BEHIND;
    return slotMin > 0 && tip > 0 && tip < slotMin ? BEHIND : GOOD;
  }
}

/** The slot by which a backend is compared; a call without a commitment of its own may mean the newest bank. */
function tipOf({ tip }: SlotRange, commitment: Commitment | undefined): number {
  return commitment === undefined ? Math.max(tip.processed, tip.confirmed, tip.finalized) : tip[commitment];
}

function better(a: Choice, b: Choice): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if ((a.rank === BEHIND || a.rank === LATE) && a.tip !== b.tip) return b.tip - a.tip;
  return b.score - a.score;
}

/** Slots that no backend has, both ends included. */
export type Gap = Readonly<{ from: number; to: number }>;

/** All backends together: which one a call should ask, and how they stand. */
export type Pool = Readonly<{
  /** The slot that the answer of this call must reach: what it asks for, or what its account has been shown; 0: any. */
  slotMin(requirement: ReadRequirement, accountId: number): number;
  /** `able`, the best first. */
  inOrder(
    able: readonly Backend[],
    requirement: ReadRequirement,
    accountId: number,
    slotMin: number,
  ): readonly Backend[];
  /** The first of `inOrder`, found at once when it is steady and not behind; `undefined`: ask `inOrder`. */
  preferred(
    able: readonly Backend[],
    requirement: ReadRequirement,
    accountId: number,
    slotMin: number,
  ): Backend | undefined;
  /** Takes the slot at which an answer was read. */
  learn(backend: Backend, requirement: ReadRequirement, accountId: number, slot: number): void;
  /** Looks at every backend once, for a second at most. Never rejects. */
  probeAll(signal: AbortSignal): Promise<void>;
  /** The lowest block that any of them has, long-term storage included; `undefined` until all with history have reported. */
  floor(): number | undefined;
  /** Whether one that serves accounts is well. */
  isHealthy(): boolean;
  finality(): Finality;
}>;

/** What is known of the chain's past. */
type Finality = Readonly<{
  /** The lowest slot that the live nodes which take part have finalized; 0: not all of them have reported. */
  slot: number;
  /** How often another chain has shown itself, so that what was finalized before may not be on this one. */
  resets: number;
}>;

/** Nodes that come and go, and addresses with several nodes behind them, let the slot fall by less. */
const FALL_SLOTS_MAX = 64;

export type PoolOptions = WatchOptions &
  Readonly<{
    /** The lowest slots that no backend has; `undefined`: there are none, or not enough is known. */
    historyGap(backends: readonly Backend[]): Gap | undefined;
    /** Called when slots are found that no backend has, or when there are none any more. */
    onGap(gap: Gap | undefined): void;
  }>;

export function createPool({ backends, clock, historyGap, onGap, ...options }: PoolOptions): Pool {
  const seen = createMonotonicReads(clock);
  const watch = createWatch({ backends, clock, ...options });
  let hasGap = false;
  let resets = 0;
  let chain = { genesis: '', slot: 0, strangers: 0 };

  async function look(signal: AbortSignal): Promise<void> {
    await watch.probeAll(signal);
    followChain();
    const gap = historyGap(backends);
    if ((gap !== undefined) !== hasGap) onGap(gap);
    hasGap = gap !== undefined;
  }

  function followChain(): void {
    const genesis =
      backends.map((backend) => watch.extentOf(backend)?.genesis).find(isKnown) ?? chain.genesis;
    const slot = finalizedSlot();
    const strangers = backends.filter((backend) => !isOfThisChain(backend)).length;
    const isOther = chain.genesis !== '' && genesis !== chain.genesis;
    const isReset =
      isOther || strangers > chain.strangers || (slot > 0 && slot + FALL_SLOTS_MAX < chain.slot);
    if (isReset) resets++;
    chain = { genesis, slot: isReset ? slot : Math.max(slot, chain.slot), strangers };
  }

  function finalizedSlot(): number {
    const live = backends.filter(
      ({ config, health }) => isLiveNode(config) && health.excludedBecause === undefined,
    );
    return live.length === 0 ? 0 : Math.min(...live.map(({ slots: view }) => view.tip.finalized));
  }

  function floor(): number | undefined {
    const holders = backends.filter(
      ({ config, health }) =>
        config.lanes.includes('archive') && health.excludedBecause !== 'of another chain',
    );
    const reaches = holders.map((backend) => watch.extentOf(backend)?.reach);
    const known = reaches.filter((reach) => reach !== undefined);
    return known.length === 0 || known.length < reaches.length ? undefined : Math.min(...known);
  }

  return {
    slotMin({ commitment, slotMin }, accountId) {
      if (backends.length < 2) return 0;
      return commitment === undefined ? slotMin : Math.max(slotMin, seen.highest(accountId, commitment));
    },
    inOrder: (able, requirement, accountId, slotMin) =>
      inOrder(able.filter(isOfThisChain), accountId, requirement, slotMin, clock),
    preferred(able, { commitment }, accountId, slotMin) {
      const nowMs = clock.monotonic();
      let best: Backend | undefined;
      let most = -1;
      for (const backend of able) {
        const score = able.length === 1 ? 0 : preference(accountId, backend.number);
        if (score <= most) continue;
        most = score;
        best = backend;
      }
      if (best === undefined || !best.isSteady(nowMs) || !best.hasRoom) return undefined;
      if (able.length === 1) return best;
      if (commitment === 'processed' && !PROFILES[best.config.profile].processed) return undefined;
      const tip = slotMin === 0 ? 0 : tipOf(best.slots, commitment);
      return tip > 0 && tip < slotMin ? undefined : best;
    },
    learn({ slots: view }, { commitment }, accountId, slot) {
      if (commitment === undefined || slot === 0) return;
      view.tip[commitment] = Math.max(view.tip[commitment], slot);
      if (backends.length > 1) seen.note(accountId, commitment, slot);
    },
    probeAll: look,
    floor,
    isHealthy: () =>
      backends.some(({ config, health }) => isLiveNode(config) && health.excludedBecause === undefined),
    finality: () => ({ slot: finalizedSlot(), resets }),
  };
}

function isKnown(genesis: string | undefined): genesis is string {
  return genesis !== undefined;
}

/** No call goes to another chain, however bad the other backends are. */
function isOfThisChain({ health }: Backend): boolean {
  return health.excludedBecause !== 'of another chain';
}

/**
 * How many calls of the whole pool may be sent a second time because a backend failed. A backend that is down must not
 * double the load on the others, and an outage of all must not multiply it (Google SRE book, chapter 21).
 */
export type RetryBudget = Readonly<{
  /** One more call was sent for the first time. */
  deposit(): void;
  /** Takes a retry; false when there is none left. */
  take(): boolean;
}>;

/** One retry for each ten calls; what a quiet minute saves up is enough for the calls that a dying node takes along. */
const PER_CALL = 0.1;
const SAVED_MAX = 200;

export function createRetryBudget(): RetryBudget {
  let retries = SAVED_MAX;
  return {
    deposit() {
      retries = Math.min(SAVED_MAX, retries + PER_CALL);
    },
    take() {
      if (retries < 1) return false;
      retries--;
      return true;
    },
  };
}
