import type { NodeId, RateAsk, RateGrant, Speaker } from './messages.ts';

/** What the centre knows of one node's share of an account's rate. Whole numbers below 2^53. */
export type RateHolding = Readonly<{
  fence: number;
  seq: number;
  /** Tokens granted and not given back, and spent, under `fence`. Their difference is outstanding. */
  granted: number;
  spent: number;
  /** On the account's clock: what is unspent then is lost. */
  expiresMs: number;
  /** What the node last wanted to hold, and the calls a second that were offered to it. */
  wanted: number;
  weight: number;
}>;

/** The centre's state of one account's rate. Whole numbers below 2^53. */
export type RateState = Readonly<{
  /** Micro-tokens that nobody holds. Below zero while a debt or a large batch is paid off. */
  micro: number;
  /** The centre's wall clock at the last change, and the account's own clock, which never steps back. */
  atMs: number;
  clockMs: number;
  revision: number;
  /** Micro-tokens a millisecond, which is thousandths of a call a second. */
  perMs: number;
  burst: number;
  /** Tokens kept for a refused batch until `reservedMs` on the account's clock. */
  reserved: number;
  reservedMs: number;
  nodes: ReadonlyMap<NodeId, RateHolding>;
}>;

/** What came into the bucket in some time, in micro-tokens, and what a node took of it unasked, in tokens. */
type CameIn = Readonly<{ micro: number; debt: number }>;

/** How long a grant lives. */
export const RATE_LIFE_MS = 1_000;

/** A node that was silent for so long after its lease ended is forgotten. */
export const RATE_FORGET_MS = 600_000;

/** A bucket that starts again after an outage holds what this long refills. */
export const RATE_START_MS = 100;

/** No refused batch has tokens kept for longer than this, and none whose wait is longer. */
export const RESERVE_MS = 2_000;

/** A batch that waited its `Retry-After` may come so much later and still find its tokens. */
export const RESERVE_GRACE_MS = 250;

const MICRO = 1_000_000;

/** After so long without a message an account's state equals a new one, and may be dropped. */
export function rateStateLifeMs({ micro, burst, perMs }: RateState): number {
  return Math.ceil((2 * burst * MICRO + Math.max(0, -micro)) / perMs) + 2 * RATE_LIFE_MS + 60_000;
}

/**
 * One message to the centre about an account's rate (limits.md 3.2, strict: the bucket and what is outstanding never
 * exceed the burst together). `nowMs` is the centre's wall clock in whole milliseconds. A message that is not newer
 * than the node's last changes nothing and is answered with how things stand.
 */
export function topUpRate(
  before: RateState | undefined,
  speaker: Speaker,
  ask: RateAsk,
  nowMs: number,
): Readonly<{ state: RateState; grant: RateGrant }> {
  const start = before ?? started(ask, nowMs);
  const settled = settle(start, nowMs);
  const known = settled.nodes.get(speaker.node);
  if (known !== undefined && !isNewer(speaker, known)) {
    // A process that has a successor under its name holds nothing: what there is belongs to the other.
    const mine = speaker.fence < known.fence ? { ...known, granted: ask.spent, spent: ask.spent } : known;
    return { state: start, grant: grantOf(settled, mine, ask, 0) };
  }
  const heard = reported(withPlan(settled, ask), known, speaker, ask);
  const { state, given } = granted(heard, speaker.node, ask, cameIn(known, speaker, ask, heard));
  return { state, grant: grantOf(state, holdingOf(state, speaker.node), ask, given) };
}

function started({ rps, burst, revision, recovering }: RateAsk, nowMs: number): RateState {
  const rate = { perMs: perMsOf(rps), burst };
  const micro = recovering ? startingMicro(rate) : burst * MICRO;
  const clock = { atMs: nowMs, clockMs: 0 };
  return { micro, ...clock, revision, ...rate, reserved: 0, reservedMs: 0, nodes: new Map() };
}

function startingMicro({ perMs, burst }: Pick<RateState, 'perMs' | 'burst'>): number {
  return Math.min(burst * MICRO, perMs * RATE_START_MS);
}

/** A rate below a thousandth of a call a second counts as that. */
function perMsOf(rps: number): number {
  return Math.max(1, Math.round(rps * 1_000));
}

/**
 * Time passes: the bucket refills, to the burst less what was outstanding all the while, since that may have been
 * spent a moment ago; so what a lease held counts until the last of the leases that ended. A wall clock that steps
 * back stops the account's clock for one message, not for an hour.
 */
function settle(state: RateState, nowMs: number): RateState {
  const sinceMs = state.clockMs;
  const clockMs = sinceMs + Math.max(0, nowMs - state.atMs);
  const nodes = new Map<NodeId, RateHolding>();
  let endedMs = sinceMs;
  for (const [id, holding] of state.nodes) {
    if (heldBy(holding, sinceMs) > 0 && holding.expiresMs <= clockMs)
      endedMs = Math.max(endedMs, holding.expiresMs);
    if (holding.expiresMs + RATE_FORGET_MS > clockMs) nodes.set(id, holding);
  }
  const until = refilled(state, endedMs - sinceMs, sinceMs);
  const micro = refilled({ ...state, micro: until }, clockMs - endedMs, clockMs);
  const [reserved, reservedMs] = state.reservedMs > clockMs ? [state.reserved, state.reservedMs] : [0, 0];
  return { ...state, micro, atMs: nowMs, clockMs, reserved, reservedMs, nodes };
}

/** Micro-tokens after so much time, under the leases that are alive at `aliveMs`. */
function refilled(state: RateState, elapsedMs: number, aliveMs: number): number {
  const { micro, perMs, burst } = state;
  const cap = (burst - outstanding(state, aliveMs)) * MICRO;
  // The time that fills it is enough: a clock that leaps must not leave the exact integers.
  const ms = Math.min(elapsedMs, Math.max(0, Math.ceil((cap - micro) / perMs)));
  return Math.min(cap, micro + ms * perMs);
}

function isNewer({ fence, seq }: Speaker, than: RateHolding): boolean {
  return fence > than.fence || (fence === than.fence && seq > than.seq);
}

/** At equal revisions the last speaker's plan counts: processes reload one after the other, and then agree. */
function withPlan(state: RateState, { revision, rps, burst }: RateAsk): RateState {
  return revision < state.revision ? state : { ...state, revision, perMs: perMsOf(rps), burst };
}

/** Takes in what the node says: what it spent beyond its grants is a debt of the bucket, and an ended lease is void. */
function reported(
  state: RateState,
  known: RateHolding | undefined,
  { node, fence, seq }: Speaker,
  { spent: said, wanted, weight, recovering }: RateAsk,
): RateState {
  const same = known !== undefined && known.fence === fence;
  const spent = Math.max(said, same ? known.spent : 0);
  const held = same ? known.granted : said;
  const debt = Math.max(0, spent - held);
  const alive = same && known.expiresMs > state.clockMs;
  const grants = alive ? held + debt : spent;
  const expiresMs = state.clockMs + RATE_LIFE_MS;
  const mine: RateHolding = { fence, seq, granted: grants, spent, expiresMs, wanted, weight };
  const paid = state.micro - debt * MICRO;
  const low = Math.min(state.micro, startingMicro(state));
  // Whoever had to do without the centre leaves the bucket near empty at worst: that debt is not paid off for seconds.
  // Of one that is not known nobody can tell how much it owes.
  const least = known === undefined ? low : Math.max(paid, low);
  const micro = recovering ? least : paid;
  return { ...state, micro, nodes: new Map(state.nodes).set(node, mine) };
}

/** What came in since the node last spoke: who speaks right after others has about as much as they. `undefined`: it did not share. */
function cameIn(
  known: RateHolding | undefined,
  { fence }: Speaker,
  { spent }: RateAsk,
  { clockMs, perMs }: RateState,
): CameIn | undefined {
  if (known === undefined || known.fence !== fence || known.expiresMs <= clockMs) return undefined;
  const micro = perMs * (clockMs - (known.expiresMs - RATE_LIFE_MS));
  return { micro, debt: Math.max(0, spent - known.granted) };
}

/** Tokens in live leases, as far as the centre was told. */
function outstanding({ nodes }: RateState, aliveMs: number): number {
  let sum = 0;
  for (const holding of nodes.values()) sum += heldBy(holding, aliveMs);
  return sum;
}

function heldBy({ granted, spent, expiresMs }: RateHolding, clockMs: number): number {
  return expiresMs > clockMs ? granted - spent : 0;
}

/**
 * Moves the node's outstanding tokens towards what it wants: a surplus goes back, a grant leaves others their share.
 * What a request needs beyond them is given to it as spent: it is not there to be taken twice.
 */
function granted(
  state: RateState,
  node: NodeId,
  { wanted, needed: need }: RateAsk,
  came: CameIn | undefined,
): Readonly<{ state: RateState; given: number }> {
  const needed = Math.min(need, state.burst);
  const mine = holdingOf(state, node);
  const [held, free] = [mine.granted - mine.spent, Math.floor(state.micro / MICRO)];
  const kept = state.reserved > 0 && needed < state.reserved ? state.reserved : 0;
  const left = Math.max(0, free - kept);
  const serves = needed > 0 && held + left >= needed;
  const given = serves ? Math.max(0, needed - held) : 0;
  const goal = Math.min(state.burst, wanted + (serves ? needed - given : 0));
  const target = goal <= held ? goal : held + fairShare(state, node, goal - held, left - given, came);
  const micro = state.micro - (target - held + given) * MICRO;
  const spent = mine.spent + given;
  const nodes = new Map(state.nodes).set(node, { ...mine, spent, granted: spent + target });
  return { state: withReservation({ ...state, micro, nodes }, needed, serves), given };
}

/**
 * All that is missing when there is enough for everyone, else a share by weight, and never nothing of something: a
 * quarter of it of what there is, the rest of what came in.
 */
function fairShare(
  state: RateState,
  node: NodeId,
  missing: number,
  left: number,
  came: CameIn | undefined,
): number {
  let missed = missing;
  let weights = 0;
  for (const [id, { wanted, weight, granted, spent, expiresMs }] of state.nodes) {
    if (expiresMs <= state.clockMs) continue;
    if (id !== node) missed += Math.max(0, wanted - (granted - spent));
    if (id === node || wanted > granted - spent) weights += weight;
  }
  if (missed <= left) return missing;
  const { weight } = holdingOf(state, node);
  const there = (left * weight) / Math.max(1, weights);
  if (came === undefined || weights === weight)
    return Math.min(missing, left, Math.max(1, Math.floor(there)));
  const part = (came.micro * weight) / (Math.max(1, weights) * MICRO) - came.debt;
  return Math.min(missing, left, Math.max(1, Math.floor(0.25 * there + 0.75 * part)));
}

/** A refused batch has its tokens kept until it may come again; else calls one by one would starve it for ever. */
function withReservation(state: RateState, needed: number, served: boolean): RateState {
  if (served && needed >= state.reserved) return { ...state, reserved: 0, reservedMs: 0 };
  if (served || needed <= Math.max(1, state.reserved)) return state;
  const waitMs = waitFor(state, needed);
  if (waitMs > RESERVE_MS) return state;
  const reservedMs = state.clockMs + Math.max(1, Math.ceil(waitMs / 1_000)) * 1_000 + RESERVE_GRACE_MS;
  return { ...state, reserved: needed, reservedMs };
}

/** Milliseconds after which the bucket has so many tokens if nobody takes any and every live lease is lost. */
function waitFor(state: RateState, tokens: number): number {
  const { micro, perMs, burst, clockMs } = state;
  const short = tokens * MICRO - micro;
  if (short <= 0) return 0;
  const cap = (burst - outstanding(state, clockMs)) * MICRO;
  if (tokens * MICRO <= cap) return Math.ceil(short / perMs);
  let lastMs = clockMs;
  for (const holding of state.nodes.values()) {
    if (heldBy(holding, clockMs) > 0) lastMs = Math.max(lastMs, holding.expiresMs);
  }
  const then = Math.min(Math.max(cap, micro), micro + (lastMs - clockMs) * perMs);
  return lastMs - clockMs + Math.ceil((tokens * MICRO - then) / perMs);
}

/** Milliseconds after which `tokens` may be granted: what is kept for a batch is passed over, or waited out. */
function waitBehind(state: RateState, tokens: number): number {
  const waitMs = waitFor(state, tokens);
  const { reserved, reservedMs, clockMs, burst } = state;
  if (reserved <= tokens) return waitMs;
  const endsMs = Math.max(waitMs, reservedMs - clockMs);
  return reserved + tokens > burst ? endsMs : Math.min(endsMs, waitFor(state, reserved + tokens));
}

function grantOf(state: RateState, mine: RateHolding, { needed }: RateAsk, given: number): RateGrant {
  const need = Math.min(needed, state.burst);
  const isServed = need <= mine.granted - mine.spent + given;
  let nodes = 0;
  let weights = 0;
  for (const { expiresMs, weight } of state.nodes.values()) {
    if (expiresMs <= state.clockMs) continue;
    nodes++;
    weights += weight;
  }
  return {
    granted: mine.granted,
    spent: mine.spent,
    lifeMs: Math.max(0, mine.expiresMs - state.clockMs),
    given,
    waitMs: waitBehind(state, isServed ? 1 : need),
    left: Math.floor(state.micro / MICRO),
    nodes,
    weights,
  };
}

/** The record of a node that has just spoken. */
function holdingOf({ nodes }: RateState, node: NodeId): RateHolding {
  const holding = nodes.get(node);
  if (holding === undefined) throw new Error('a node without a record was asked for');
  return holding;
}
