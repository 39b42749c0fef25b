import {
  type CreditGrant,
  type CreditReport,
  type Holding,
  holdingIn,
  isNewer,
  type Released,
  type Sender,
} from './messages.ts';

/** One node's credits of an account. Whole numbers below 2^53; the first four only grow. */
export type CreditHolding = Holding & {
  granted: number;
  returned: number;
  charged: number;
  refunded: number;
  /** On the account's clock: when it last sent, and until when it needs what others can spare. */
  heardMs: number;
  needsUntilMs: number;
};

/** The authority's state of one account's credits. Whole numbers below 2^53. It must never be dropped. */
export type CreditState = {
  /** The store's wall clock at the last message, and the account's own clock, which neither steps back nor leaps. */
  atMs: number;
  clockMs: number;
  revision: number;
  total: number;
  /** On the wall clock: until then grants may have been lost, and none are given. */
  learnUntilMs: number;
  nodes: CreditHolding[];
};

/** The moment of a message, as the store knows it. */
export type Moment = Readonly<{
  /** The store's wall clock in whole milliseconds. */
  nowMs: number;
  /** Since when the store may have lost messages; `Infinity` for a store that loses nothing. */
  sinceLossMs: number;
  /** The `seq` of the node's last answered message with credits of the account under this fence, or 0; `undefined`: the store loses nothing. */
  answeredSeq: number | undefined;
}>;

/** After a loss, grants are held back for so long while nodes report what they hold. */
export const LEARNING_MS = 2_000;
/** After so long on the account's clock, credits that a dead node holds are released. */
export const CREDIT_RELEASE_MS = 24 * 3_600_000;
/** A node that holds credits sends every second; one silent for longer than this counts as dead. */
export const CREDIT_LIVE_MS = 4_000;
/** The account's clock goes at most so far between two messages, so that a leap makes no live node dead. */
const LEAP_MS = 2_000;
/** How long other nodes are recalled: they hold no more than they need. */
const RECALL_MS = 2_000;

/** Takes one message about an account's credits; of an old one, or while learning, only counters are taken. */
export function topUpCredits(
  state: CreditState,
  sender: Sender,
  report: CreditReport,
  revision: number,
  { nowMs, sinceLossMs, answeredSeq }: Moment,
): Readonly<{ grant: CreditGrant; released: readonly Released[]; isLost: boolean }> {
  const { charged, refunded } = report;
  const { fence, seq } = sender;
  const isNew = state.nodes.length === 0;
  const counters = { granted: charged, returned: refunded, charged, refunded };
  const mine = holdingIn(state.nodes, sender, { ...counters, heardMs: state.clockMs, needsUntilMs: 0 });
  const isNews = isNewer(sender, mine);
  if (isNews) settle(state, report, revision, nowMs);
  const isLost =
    answeredSeq !== undefined && (isNew ? charged > 0 : lacksAnswered(mine, sender, answeredSeq));
  if (isLost) state.learnUntilMs = nowMs + LEARNING_MS;
  const learning = sinceLossMs < LEARNING_MS || nowMs < state.learnUntilMs;
  merge(mine, report);
  let released: readonly Released[] = [];
  if (isNews) {
    Object.assign(mine, { fence, seq, heardMs: state.clockMs, needsUntilMs: 0 });
    released = releaseDead(state, mine);
    move(state, mine, report, learning);
    if (!learning && report.needed > heldBy(mine)) mine.needsUntilMs = state.clockMs + RECALL_MS;
  }
  const grant = grantOf(state, mine, learning);
  // A process that has a successor under its name holds nothing: what is held is the successor's.
  return { grant: fence < mine.fence ? { ...grant, allowance: 0 } : grant, released, isLost };
}

function settle(state: CreditState, { total }: CreditReport, revision: number, nowMs: number): void {
  state.clockMs += Math.min(LEAP_MS, Math.max(0, nowMs - state.atMs));
  state.atMs = nowMs;
  state.learnUntilMs = Math.min(state.learnUntilMs, nowMs + LEARNING_MS);
  if (revision >= state.revision) Object.assign(state, { revision, total });
}

/** The state lacks a message of the node that was answered: it went back in time. */
function lacksAnswered(mine: CreditHolding, { fence }: Sender, answeredSeq: number): boolean {
  return answeredSeq > 0 && isNewer({ fence, seq: answeredSeq }, mine);
}

/** Counters never decrease. A node that spent more than it is known to have been granted was granted that. */
function merge(mine: CreditHolding, { charged, refunded }: CreditReport): void {
  mine.charged = Math.max(mine.charged, charged);
  mine.refunded = Math.max(mine.refunded, refunded);
  mine.granted = Math.max(mine.granted, mine.returned + mine.charged - mine.refunded);
}

/** Credits that the node may still spend, as far as it reported. */
function heldBy({ granted, returned, charged, refunded }: CreditHolding): number {
  return granted - returned - (charged - refunded);
}

function availableIn({ total, nodes }: CreditState): number {
  return nodes.reduce((left, { granted, returned }) => left - (granted - returned), total);
}

function isLive({ heardMs }: CreditHolding, { clockMs }: CreditState): boolean {
  return clockMs - heardMs < CREDIT_LIVE_MS;
}

/** Another node needs credits now. */
function isRecalled({ nodes, clockMs }: CreditState, mine: CreditHolding): boolean {
  return nodes.some((holding) => holding !== mine && holding.needsUntilMs > clockMs);
}

function releaseDead(state: CreditState, mine: CreditHolding): readonly Released[] {
  const released: Released[] = [];
  for (const holding of state.nodes) {
    const credits = heldBy(holding);
    if (holding === mine || credits <= 0 || state.clockMs - holding.heardMs < CREDIT_RELEASE_MS) continue;
    holding.returned += credits;
    released.push({ node: holding.node, credits });
  }
  return released;
}

/** Moves what the node holds towards what it wants; leases shrink with what is left, what is needed is granted. */
function move(
  state: CreditState,
  mine: CreditHolding,
  { wanted, needed, held: known }: CreditReport,
  learning: boolean,
): void {
  const held = heldBy(mine);
  // An authority that went back may count a lease that has long been returned or is another's by now.
  const goal = learning ? Math.min(known, wanted) : Math.max(wanted, needed);
  // Nothing below what the node wants is ever taken back: it may spend that while the reply is on its way.
  if (held >= goal) mine.returned += held - goal;
  else if (!learning) {
    const available = Math.max(0, availableIn(state));
    const live = state.nodes.filter((holding) => isLive(holding, state)).length;
    const spare = isRecalled(state, mine) ? 0 : Math.floor(available / (2 * live));
    const must = Math.min(available, Math.max(0, needed - held));
    mine.granted += Math.max(Math.min(goal - held, spare), must);
  }
}

function grantOf(state: CreditState, mine: CreditHolding, learning: boolean): CreditGrant {
  let heldByOthers = 0;
  const taken = new Map<string, number>();
  for (const holding of state.nodes) {
    if (holding === mine) continue;
    if (isLive(holding, state)) heldByOthers += heldBy(holding);
    taken.set(holding.node, holding.granted - holding.returned);
  }
  const counts = { allowance: heldBy(mine), available: availableIn(state), heldByOthers, taken };
  return { ...counts, recalled: isRecalled(state, mine), learning };
}
