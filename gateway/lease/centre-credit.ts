import type { CreditAsk, CreditGrant, NodeId, Speaker } from './messages.ts';

/** What the centre knows of one node's credits of an account. Whole numbers below 2^53; the first four after `seq` only grow. */
export type CreditHolding = Readonly<{
  fence: number;
  seq: number;
  granted: number;
  returned: number;
  charged: number;
  refunded: number;
  /** On the account's clock: when it last spoke, and until when it needs what others can spare. */
  heardMs: number;
  needsUntilMs: number;
}>;

/** The centre's state of one account's credits. Whole numbers below 2^53. It must never be dropped. */
export type CreditState = Readonly<{
  revision: number;
  total: number;
  /** The centre's wall clock at the last message, and the account's own clock, which neither steps back nor leaps. */
  atMs: number;
  clockMs: number;
  nodes: ReadonlyMap<NodeId, CreditHolding>;
}>;

/** Credits that a node held when it was last heard, long ago, and that are the account's again. */
export type Released = Readonly<{ node: NodeId; credits: number }>;

/** The account's clock goes at most so far between two messages, so that a leap makes no live node dead. */
export const CREDIT_LEAP_MS = 2_000;

/** A node that holds credits speaks every second; one silent for longer than this counts as dead. */
export const CREDIT_LIVE_MS = 4_000;

/** What a dead node holds is released after so long on the account's clock. */
export const CREDIT_RELEASE_MS = 24 * 3_600_000;

/** How long others are asked to hold no more than they need. */
export const RECALL_MS = 2_000;

/**
 * One message to the centre about an account's credits (limits.md 3.3). `nowMs` is the centre's wall clock in whole
 * milliseconds. While `learning`, after the centre may have lost grants, nothing new is granted: nodes are only heard.
 * A message that is not newer than the node's last changes nothing and is answered with how things stand.
 */
export function topUpCredits(
  before: CreditState | undefined,
  speaker: Speaker,
  ask: CreditAsk,
  nowMs: number,
  learning: boolean,
): Readonly<{ state: CreditState; grant: CreditGrant; released: readonly Released[] }> {
  const start = before ?? {
    revision: ask.revision,
    total: ask.total,
    atMs: nowMs,
    clockMs: 0,
    nodes: new Map(),
  };
  const settled = settle(start, ask, nowMs);
  const { node } = speaker;
  const known = settled.nodes.get(node);
  if (known !== undefined && !isNewer(speaker, known)) {
    const mine = merged(known, ask);
    const recalled = isRecalled(settled, node);
    const grant = grantOf(withNode(settled, node, mine), node, { recalled, learning });
    // A process that has a successor under its name holds nothing: what there is belongs to the other.
    const own = speaker.fence < known.fence ? { ...grant, allowance: 0 } : grant;
    return { state: withNode(start, node, mine), grant: own, released: [] };
  }
  const mine = reported(known, speaker, ask, settled.clockMs);
  const { state, released } = withoutDead(withNode(settled, node, mine), node);
  const served = granted(state, node, mine, ask, learning);
  const needs = !learning && ask.needed > heldBy(served);
  const done = { ...served, needsUntilMs: needs ? state.clockMs + RECALL_MS : 0 };
  const after = withNode(state, node, done);
  return {
    state: after,
    grant: grantOf(after, node, { recalled: isRecalled(after, node), learning }),
    released,
  };
}

function settle(state: CreditState, { revision, total }: CreditAsk, nowMs: number): CreditState {
  const clockMs = state.clockMs + Math.min(CREDIT_LEAP_MS, Math.max(0, nowMs - state.atMs));
  const newer = revision >= state.revision ? { revision, total } : {};
  return { ...state, ...newer, atMs: nowMs, clockMs };
}

function isNewer({ fence, seq }: Speaker, than: CreditHolding): boolean {
  return fence > than.fence || (fence === than.fence && seq > than.seq);
}

function withNode(state: CreditState, node: NodeId, holding: CreditHolding): CreditState {
  return { ...state, nodes: new Map(state.nodes).set(node, holding) };
}

/** Counters never go back, whatever is said. A node that spent more than the centre knows it was granted was granted that. */
function merged(known: CreditHolding, ask: Pick<CreditAsk, 'charged' | 'refunded'>): CreditHolding {
  const charged = Math.max(known.charged, ask.charged);
  const refunded = Math.max(known.refunded, ask.refunded);
  const granted = Math.max(known.granted, known.returned + charged - refunded);
  return { ...known, charged, refunded, granted };
}

/** A node that the centre does not know holds nothing but what it has spent. */
function reported(
  known: CreditHolding | undefined,
  { fence, seq }: Speaker,
  { charged, refunded }: CreditAsk,
  clockMs: number,
): CreditHolding {
  const spoke = { fence, seq, heardMs: clockMs, needsUntilMs: 0 };
  if (known !== undefined) return { ...merged(known, { charged, refunded }), ...spoke };
  return { granted: charged, returned: refunded, charged, refunded, ...spoke };
}

/** Credits that the node may still spend, as far as the centre was told. */
function heldBy({ granted, returned, charged, refunded }: CreditHolding): number {
  return granted - returned - (charged - refunded);
}

function availableIn({ total, nodes }: CreditState): number {
  let available = total;
  for (const { granted, returned } of nodes.values()) available -= granted - returned;
  return available;
}

function isLive({ heardMs }: CreditHolding, clockMs: number): boolean {
  return clockMs - heardMs < CREDIT_LIVE_MS;
}

/** Another node needs credits now. */
function isRecalled({ nodes, clockMs }: CreditState, node: NodeId): boolean {
  for (const [id, { needsUntilMs }] of nodes) if (id !== node && needsUntilMs > clockMs) return true;
  return false;
}

function withoutDead(
  state: CreditState,
  speaker: NodeId,
): Readonly<{ state: CreditState; released: readonly Released[] }> {
  const released: Released[] = [];
  const nodes = new Map(state.nodes);
  for (const [node, holding] of state.nodes) {
    const credits = heldBy(holding);
    if (node === speaker || credits <= 0 || state.clockMs - holding.heardMs < CREDIT_RELEASE_MS) continue;
    nodes.set(node, { ...holding, returned: holding.returned + credits });
    released.push({ node, credits });
  }
  return { state: { ...state, nodes }, released };
}

/**
 * Moves what the node holds towards what it wants. Leases shrink with what is available, so that the last credits are
 * not spread thin; what a request needs now is given as long as there is any.
 */
function granted(
  state: CreditState,
  node: NodeId,
  mine: CreditHolding,
  { wanted, needed, held: known }: CreditAsk,
  learning: boolean,
): CreditHolding {
  const held = heldBy(mine);
  // A centre that went back may think of a lease that has long been given back or is another's by now.
  const goal = learning ? Math.min(known, wanted) : Math.max(wanted, needed);
  // Nothing below what it said it wants is ever taken back: it may spend that while the answer is on its way.
  if (held >= goal) return { ...mine, returned: mine.returned + held - goal };
  if (learning) return mine;
  const available = Math.max(0, availableIn(state));
  let live = 0;
  for (const holding of state.nodes.values()) if (isLive(holding, state.clockMs)) live++;
  const spare = isRecalled(state, node) ? 0 : Math.floor(available / (2 * live));
  const share = Math.min(goal - held, spare);
  const must = Math.min(available, Math.max(0, needed - held));
  return { ...mine, granted: mine.granted + Math.max(share, must) };
}

function grantOf(
  state: CreditState,
  node: NodeId,
  said: Pick<CreditGrant, 'recalled' | 'learning'>,
): CreditGrant {
  let [allowance, heldByOthers, heldByDead] = [0, 0, 0];
  for (const [id, holding] of state.nodes) {
    if (id === node) allowance = heldBy(holding);
    else if (isLive(holding, state.clockMs)) heldByOthers += heldBy(holding);
    else heldByDead += heldBy(holding);
  }
  return { allowance, available: availableIn(state), heldByOthers, heldByDead, ...said };
}
