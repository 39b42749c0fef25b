import type { Clock } from '../../shared/clock.ts';
import { afterName, afterSpace, BACKSLASH, isAt, QUOTE, wholeNumberAt } from '../json/scan.ts';
import { type Lane, PROFILES } from '../../shared/config/profiles.ts';
import { declaredUnknown, isSubscription, type Method, METHODS } from '../../shared/config/methods.ts';
import { type Call, methodMember } from '../request/envelope.ts';
import { EMPTY } from '../http/slab.ts';
import { type Backend, type Commitment, COMMITMENTS, isLiveNode, preference } from './backend.ts';
import { createProbeAll, OTHER_CHAIN, type WatchOptions } from './health.ts';
import { Latency, type SlownessChange, STEP_MS } from './latency.ts';

export type ForwardRoute = Readonly<{
  kind: 'forward';
  name: string;
  /** `,"method":"NAME"`, as the router's own name of it stands in a request. */
  member: Uint8Array;
  method: Method;
  backends: readonly Backend[];
}>;

/** The backends that take a request of so many bytes. */
export function takersOf({ backends }: ForwardRoute, bytes: number): readonly Backend[] {
  return backends.filter(({ config }) => bytes <= (config.bodyBytesMax ?? Infinity));
}

/** Where the calls of one method go. */
export type Route =
  | ForwardRoute
  /** No backend serves it; `reason` is the -32601's message. */
  | { readonly kind: 'not-found'; readonly reason: string };

export type RouteOf = (method: string) => Route;

const NOT_FOUND: Route = { kind: 'not-found', reason: 'Method not found' };
const NO_WEBSOCKET: Route = {
  kind: 'not-found',
  reason: 'Method not found: subscriptions need WebSocket, which this endpoint does not offer',
};

/** Routes by method over a fixed set of backends; decided once for every known name. */
export function createRouter(all: readonly Backend[]): RouteOf {
  const declared = all.flatMap(({ config }) => config.methods);
  const methods = new Map([...declared.map((name) => [name, declaredUnknown(name)] as const), ...METHODS]);
  const routes = new Map<string, Route>();
  for (const [name, method] of methods) {
    const able = all.filter(({ config }) => serves(config, name, method));
    const route = { kind: 'forward', name, member: methodMember(name), method, backends: able } as const;
    const reason = `Method not found: no backend here serves ${name}`;
    routes.set(name, able.length > 0 ? route : { kind: 'not-found', reason });
  }
  return function routeOf(method) {
    return routes.get(method) ?? (isSubscription(method) ? NO_WEBSOCKET : NOT_FOUND);
  };
}

function serves({ methods, lanes, profile }: Backend['config'], name: string, method: Method): boolean {
  if (methods.includes(name)) return true;
  const { serves: only } = PROFILES[profile];
  return !method.declared && lanes.includes(method.lane) && (only === undefined || only.has(name));
}

/** The needs of a call of its backend's chain. */
export type Need = Readonly<{
  accountId: number;
  /** At which commitment it reads; `undefined`: it does not read the chain's present state, so no slot is compared. */
  commitment: Commitment | undefined;
  /** The slot that its answer must reach: its `minContextSlot`, or what its account has been shown; 0: any. */
  slotMin: number;
  /** By whose latencies backends are compared; absent: by none. */
  lane?: Lane;
}>;

type Requirement = Omit<Need, 'accountId' | 'lane'>;

/**
 * Reads the needs of a call, found by its words and not by parsing: it only chooses among backends, each of which reads the
 * parameters itself. Without a commitment it is `finalized`, but for methods that always read at another one, and
 * some that are not Agave's read the newest bank: what they show must not be taken for finalized.
 * Names that are escaped or stand twice are for the node to read: a slot must not be noted at the wrong commitment.
 */
function requirementOf({ params = EMPTY }: Call, method: Method): Requirement {
  const { class: kind, declared, commitment: always } = method;
  if (always !== undefined) return { commitment: always, slotMin: 0 };
  if (params.length > CONFIG_BYTES_MAX) return { commitment: undefined, slotMin: 0 };
  const readsState = kind === 'scan' || (kind === 'light' && !declared);
  let commitment: Commitment | undefined = readsState ? 'finalized' : undefined;
  let slotMin = 0;
  let names = 0;
  for (let i = 0; i < params.length; i++) {
    const c = params[i];
    if (c === BACKSLASH) names += 2;
    if (c !== QUOTE) continue;
    if (isAt(params, i, COMMITMENT)) {
      names++;
      commitment = commitmentAt(params, afterSpace(params, afterName(params, i)));
    } else if (isAt(params, i, MIN_CONTEXT_SLOT))
      slotMin = wholeNumberAt(params, afterSpace(params, afterName(params, i))) || 0;
    // Agave takes a commitment as `["processed"]` too, without its name.
    else if (names === 0 && (isAt(params, i, QUOTED_PROCESSED) || isAt(params, i, QUOTED_CONFIRMED)))
      names = 2;
  }
  return { commitment: readsState && names < 2 ? commitment : undefined, slotMin };
}

function commitmentAt(bytes: Uint8Array, at: number): Commitment | undefined {
  for (const [text, commitment] of COMMITMENT_TEXTS) if (isAt(bytes, at, text)) return commitment;
  return undefined;
}

/** Longer parameters are lists and transactions; megabytes are not searched for a hint, and so none is assumed either. */
const CONFIG_BYTES_MAX = 65_536;
const COMMITMENT = Buffer.from('"commitment"');
const QUOTED_PROCESSED = Buffer.from('"processed"');
const QUOTED_CONFIRMED = Buffer.from('"confirmed"');
const MIN_CONTEXT_SLOT = Buffer.from('"minContextSlot"');
const COMMITMENT_TEXTS = COMMITMENTS.map((name) => [Buffer.from(`"${name}"`), name] as const);

/**
 * The highest slot that each account has been shown, by commitment, so that it is never shown an older chain. In two
 * generations, the older of which is dropped whole: a false slot is gone within two minutes, however active its account is.
 */
export function createMonotonicReads(clock: Clock) {
  let young = new Map<number, Record<Commitment, number>>();
  let old = young;
  let dueMs = clock.monotonic() + KEPT_MS;

  function turn(): void {
    const nowMs = clock.monotonic();
    if (nowMs < dueMs) return;
    old = nowMs >= dueMs + KEPT_MS ? new Map() : young;
    young = new Map();
    dueMs = nowMs + KEPT_MS;
  }

  return {
    highest(accountId: number, commitment: Commitment): number {
      turn();
      return Math.max(young.get(accountId)?.[commitment] ?? 0, old.get(accountId)?.[commitment] ?? 0);
    },
    note(accountId: number, commitment: Commitment, slot: number): void {
      turn();
      const slots = young.get(accountId) ?? { processed: 0, confirmed: 0, finalized: 0 };
      slots[commitment] = Math.max(slots[commitment], slot);
      young.set(accountId, slots);
    },
  };
}

/** A slot is forgotten one to two of these after it was shown: by then every node of the pool has passed it. */
const KEPT_MS = 60_000;

/** The rank of a choice; a lower one is tried earlier, and the worst still serves when there is no other. */
const GOOD = 0;
/** Well, and known to be behind the slot that the caller needs. */
const BEHIND = 1;
/** Just back, and this caller is not yet given back to it. */
const RETURNING = 2;
/** Well, but it begins to answer far later than others: even one that is known to be behind may have the slot by now. */
const SLOW = 3;
/** Left out, but alive: its chain is older than the pool's. */
const LATE = 4;
/** Failed a moment ago, says itself that it is not well, or does not answer at all. */
const FAILING = 5;

/** After its return a backend is given its callers back over this time, so that they do not all fall on it at once. */
const RAMP_MS = 10_000;

/** The slot by which a backend is compared; a call without a commitment of its own may mean the newest bank. */
function tipOf({ slots: { tip } }: Backend, commitment: Commitment | undefined): number {
  return commitment === undefined ? Math.max(tip.processed, tip.confirmed, tip.finalized) : tip[commitment];
}

/** Slots that no backend has, both ends included. */
export type Gap = Readonly<{ from: number; to: number }>;

/** Nodes that come and go, and addresses with several nodes behind them, let the slot fall by less. */
const FALL_SLOTS_MAX = 64;

type SelectionOptions = WatchOptions &
  Readonly<{
    /** The lowest slots that no backend has; `undefined`: there are none, or not enough is known. */
    historyGap(backends: readonly Backend[]): Gap | undefined;
    /** Called when slots are found that no backend has, or when there are none any more. */
    onGap(gap: Gap | undefined): void;
    /** Called when a backend begins or ceases to be slow at what is light. */
    onSlowness(backend: Backend, change: SlownessChange): void;
  }>;

export type Pool = Readonly<ReturnType<typeof createPool>>;

/** All backends together: which one a call should ask, and how they stand. */
export function createPool(options: SelectionOptions) {
  const { backends, clock, historyGap, onGap } = options;
  const reads = createMonotonicReads(clock);
  const probes = createProbeAll(options);
  let hasGap = false;
  let resets = 0;
  let chain = { genesis: '', slot: 0, strangers: 0 };

  async function probeAll(signal: AbortSignal): Promise<void> {
    await probes.probeAll(signal);
    followChain();
    const gap = historyGap(backends);
    if ((gap !== undefined) !== hasGap) onGap(gap);
    hasGap = gap !== undefined;
  }

  function followChain(): void {
    const own = backends.filter(isOfThisChain);
    const genesis = own.flatMap((backend) => backend.genesis ?? [])[0] ?? chain.genesis;
    const slot = finalizedSlot();
    const strangers = backends.length - own.length;
    const isOther = chain.genesis !== '' && genesis !== chain.genesis;
    const isReset =
      isOther || strangers > chain.strangers || (slot > 0 && slot + FALL_SLOTS_MAX < chain.slot);
    if (isReset) resets++;
    chain = { genesis, slot: isReset ? slot : Math.max(slot, chain.slot), strangers };
  }

  function liveNodes(): readonly Backend[] {
    const taken = backends.filter(({ health }) => health.excludedBecause === undefined);
    return taken.filter(({ config }) => isLiveNode(config));
  }

  function finalizedSlot(): number {
    const slots = liveNodes().map(({ finalized }) => finalized);
    return slots.length === 0 ? 0 : Math.min(...slots);
  }

  function rankOf(backend: Backend, { accountId, commitment, slotMin }: Need): number {
    const { excludedBecause, backAtMs } = backend.health;
    if (backend.isFailing(clock)) return FAILING;
    if (excludedBecause === 'lagging' || excludedBecause === 'stalled') return LATE;
    if (excludedBecause !== undefined) return FAILING;
    const back = backAtMs === -Infinity ? 1 : (clock.monotonic() - backAtMs) / RAMP_MS;
    if (back < 1 && preference(accountId, backend.number) / 2 ** 32 > back) return RETURNING;
    if (commitment === 'processed' && !PROFILES[backend.config.profile].processed) return BEHIND;
    const tip = slotMin === 0 ? 0 : tipOf(backend, commitment);
    return tip > 0 && tip < slotMin ? BEHIND : GOOD;
  }

  function isFit(backend: Backend, need: Need, worst: number): boolean {
    return backend.hasRoomFor(need.accountId) && rankOf(backend, need) <= worst;
  }

  /** `able` in the order of asking: the good as the account prefers them, those behind, newest first, then the others. */
  function inOrder(able: readonly Backend[], need: Need): readonly Backend[] {
    const choices = able.filter(isOfThisChain).map((backend) => {
      const score = preference(need.accountId, backend.number);
      const rank = Math.max(rankOf(backend, need), isSlow(backend, need) ? SLOW : GOOD);
      const tip = rank === BEHIND || rank === LATE ? tipOf(backend, need.commitment) : 0;
      return { backend, rank, tip, score };
    });
    choices.sort((a, b) => a.rank - b.rank || b.tip - a.tip || b.score - a.score);
    return choices.map(({ backend }) => backend);
  }

  /** Whether the call tries its preferred backend although that is slow. */
  function isSample(backend: Backend, need: Need): boolean {
    const latency = need.lane === undefined ? undefined : backend.latencies[need.lane];
    // Few calls show its slot, so that it looks as if it were behind.
    return isFit(backend, need, BEHIND) && latency?.takesSample(clock.monotonic()) === true;
  }

  return {
    needOf(call: Call, method: Method, accountId: number): Need {
      const { commitment, slotMin } = requirementOf(call, method);
      const { lane } = method;
      if (backends.length < 2) return { accountId, commitment, slotMin: 0, lane };
      const shown = commitment === undefined ? 0 : reads.highest(accountId, commitment);
      return { accountId, commitment, slotMin: Math.max(slotMin, shown), lane };
    },
    inOrder,
    /** The first of `inOrder` when it is good and has room, or a slow one for a sample; `undefined`: ask `inOrder`. */
    preferred(able: readonly Backend[], need: Need): Backend | undefined {
      const first = mostPreferred(able, need);
      if (first === undefined) return undefined;
      if (isSlow(first, need) ? isSample(first, need) : isFit(first, need, GOOD)) return first;
      const [next = first] = inOrder(able, need);
      return isFit(next, need, GOOD) ? next : undefined;
    },
    /** The next one for a call that `first` has not answered yet. */
    second(able: readonly Backend[], first: Backend, need: Need): Backend | undefined {
      const others = able.filter((each) => each !== first && !isSlow(each, need));
      const next = mostPreferred(others, need);
      return next !== undefined && isFit(next, need, BEHIND) ? next : undefined;
    },
    ...createLatencyWatch(options),
    /** Takes the slot at which an answer was read, unless it cannot be true. */
    learn(backend: Backend, { accountId, commitment }: Need, slot: number): void {
      if (commitment === undefined || slot === 0 || !backend.mayHaveReached(slot, clock)) return;
      const { slots } = backend;
      slots.tip[commitment] = Math.max(slots.tip[commitment], slot);
      if (backends.length > 1) reads.note(accountId, commitment, slot);
    },
    /** Looks at every backend once, for a second at most. Never rejects. */
    probeAll,
    isUrgent: probes.isUrgent,
    /** The lowest block that any of them has, long-term storage included; `undefined` until all with history have reported. */
    floor(): number | undefined {
      const holders = backends.filter((each) => each.config.lanes.includes('archive') && isOfThisChain(each));
      // One that has not reported makes it no number; without holders it is infinite.
      const first = Math.min(...holders.map(({ slots }) => slots.firstBlock ?? NaN));
      return Number.isFinite(first) ? first : undefined;
    },
    isHealthy: () => liveNodes().length > 0,
    /** The lowest slot that all live nodes which take part have finalized, 0: not known; and how often the chain changed. */
    finality: () => ({ slot: finalizedSlot(), resets }),
  };
}

/** Lanes in which backends are compared by their latencies. */
const COMPARED: readonly Lane[] = ['state', 'assets'];
/** Fewer first bytes do not show which was late. */
const LATE_COUNT_MIN = 100;

function createLatencyWatch({
  backends,
  clock,
  onSlowness,
}: Pick<SelectionOptions, 'backends' | 'clock' | 'onSlowness'>) {
  let steppedMs = clock.monotonic();
  let isAnySlow = false;

  /** The backends of a lane that take part, with their latencies in it. */
  function latenciesIn(lane: Lane) {
    return backends.flatMap((backend) => {
      const latency = backend.latencies[lane];
      const takesPart = backend.health.excludedBecause === undefined && backend.config.lanes.includes(lane);
      return takesPart && latency !== undefined ? [{ backend, latency }] : [];
    });
  }

  return {
    /** Finds out which backends are slow; called a few times a second. */
    compareLatencies(): void {
      const nowMs = clock.monotonic();
      const isStep = nowMs - steppedMs >= STEP_MS;
      if (isStep) steppedMs = nowMs;
      for (const lane of COMPARED) {
        if (isStep) for (const { latencies } of backends) latencies[lane]?.turn();
        const all = latenciesIn(lane);
        // One without calls is taken to be as fast as it answers probes.
        const medians = all.map(
          ({ backend, latency }) => latency.medianMs(nowMs) ?? backend.probeTookMs ?? Infinity,
        );
        for (const [i, { backend, latency }] of all.entries()) {
          const change = latency.compare(Math.min(...medians.toSpliced(i, 1)), nowMs);
          if (change === undefined) continue;
          // Its callers come back to it little by little.
          if (change === 'recovered') backend.health = { ...backend.health, backAtMs: nowMs };
          onSlowness(backend, change);
        }
      }
      isAnySlow = backends.some(({ latencies }) => COMPARED.some((lane) => latencies[lane]?.isSlow));
    },
    /** Takes how soon one of the backends that serve a call began to answer it, or how long it did not. */
    noteTime(backend: Backend, able: readonly Backend[], need: Need, ms: number, isAnswered = true): void {
      const { lane } = need;
      if (lane === undefined) return;
      const kept = isAnySlow ? able.filter((each) => isKeptFrom(each, need, backend)) : [];
      // A call that was kept from a slow one shows how heavy the calls of that one are, not how fast this one is.
      for (const each of kept) each.latencies[lane]?.noteElsewhere(ms, isAnswered);
      if (kept.length === 0) backend.latencies[lane]?.note(ms, isAnswered);
    },
    /** The time within which the lane's first bytes come, but for one in a hundred; `undefined`: there are too few. */
    lateMs(lane: Lane): number | undefined {
      const latencies = latenciesIn(lane).flatMap(({ latency }) => (latency.isSlow ? [] : [latency]));
      return Latency.quantileMs(latencies, 0.99, LATE_COUNT_MIN);
    },
  };
}

/** No call goes to another chain, however bad the other backends are. */
export function isOfThisChain({ health }: Backend): boolean {
  return health.excludedBecause !== OTHER_CHAIN;
}

function isSlow({ latencies }: Backend, { lane }: Need): boolean {
  return lane !== undefined && latencies[lane]?.isSlow === true;
}

/** Whether a call that another backend answered would have preferred this one, which was slow and nothing else. */
function isKeptFrom(backend: Backend, need: Need, other: Backend): boolean {
  if (backend.health.excludedBecause !== undefined || !isSlow(backend, need)) return false;
  return preference(need.accountId, backend.number) > preference(need.accountId, other.number);
}

/** The account's first choice, however it stands. */
function mostPreferred(able: readonly Backend[], { accountId }: Need): Backend | undefined {
  let best: Backend | undefined;
  let most = -1;
  for (const backend of able) {
    const score = preference(accountId, backend.number);
    if (score <= most) continue;
    best = backend;
    most = score;
  }
  return best;
}

/** One retry for each ten calls; what a quiet minute saves up is enough for the calls that a dying node takes along. */
const PER_CALL = 0.1;
const SAVED_MAX = 200;

/** The retries of the pool. */
export type RetryBudget = ReturnType<typeof createRetryBudget>;

/** How many calls of the pool may be sent again: a dead backend must not double the load (Google SRE book, chapter 21). */
export function createRetryBudget(perCall = PER_CALL, savedMax = SAVED_MAX, saved = savedMax) {
  let retries = saved;
  return {
    /** Counts a call that was sent for the first time. */
    deposit(): void {
      retries = Math.min(savedMax, retries + perCall);
    },
    take(): boolean {
      if (retries < 1) return false;
      retries--;
      return true;
    },
  };
}
