import { type CreditState, LEARNING_MS, type Moment, topUpCredits } from './authority-credits.ts';
import { newRate, type RateState, rateStateLifeMs, topUpRate } from './authority-rate.ts';
import {
  type Holding,
  holdingIn,
  isNewer,
  type Message,
  type Released,
  type Reply,
  type ScanGrant,
  type ScanReport,
  type Sender,
} from './messages.ts';

/** One node's scans of an account. Whole numbers below 2^53. */
type ScanHolding = Holding & {
  /** Permits that are the node's until `expiresMs` on the account's clock. */
  held: number;
  expiresMs: number;
  /** Permits it wanted to hold, and since when it wants more than it holds; 0 while it does not. */
  wanted: number;
  sinceMs: number;
};

/** The authority's state of one account's scans. Whole numbers below 2^53. */
type ScanState = {
  atMs: number;
  clockMs: number;
  revision: number;
  /** Scans that the account may have under way at once. */
  scans: number;
  nodes: ScanHolding[];
};

/** How long permits are a node's that does not send; a node that holds some sends every second. */
export const SCAN_LIFE_MS = 5_000;
/** A node that wants permits and was silent for so long has lost its turn. */
const SCAN_WAIT_MS = 1_000;
/** A node that was silent for so long after its permits ended is forgotten, with the number of its last message. */
export const SCAN_FORGET_MS = 60_000;

/**
 * Takes one message about an account's scans into `state`. What the node keeps is its own: scans run on it. More is
 * granted as far as it is free and no node has waited for it longer, and none while `learning`.
 */
function topUpScans(
  state: ScanState,
  sender: Sender,
  report: ScanReport,
  revision: number,
  nowMs: number,
  learning: boolean,
): ScanGrant {
  const { fence, seq } = sender;
  const mine = holdingIn(state.nodes, sender, { held: 0, expiresMs: 0, wanted: 0, sinceMs: 0 });
  if (isNewer(sender, mine)) {
    const clockMs = state.clockMs + Math.max(0, nowMs - state.atMs);
    Object.assign(state, { atMs: nowMs, clockMs });
    state.nodes = state.nodes.filter((each) => each === mine || each.expiresMs + SCAN_FORGET_MS > clockMs);
    if (revision >= state.revision) Object.assign(state, { revision, scans: report.scans });
    const wanted = Math.max(report.kept, Math.min(report.wanted, state.scans));
    const waited = mine.fence === fence && isWaiting(mine, clockMs) ? mine.sinceMs : Math.max(1, clockMs);
    const more = learning ? 0 : grantable(state, mine, report.kept, wanted, waited);
    const held = report.kept + more;
    // A node that was granted some goes behind the others with what it still wants.
    const sinceMs = held >= wanted ? 0 : more > 0 ? Math.max(1, clockMs) : waited;
    Object.assign(mine, { fence, seq, held, expiresMs: clockMs + SCAN_LIFE_MS, wanted, sinceMs });
  }
  // A process that has a successor under its name is granted nothing: what is held is the successor's.
  const isPast = fence < mine.fence;
  const lifeMs = isPast ? 0 : Math.max(0, mine.expiresMs - state.clockMs);
  const held = isPast ? report.kept : scansHeldBy(mine, state.clockMs);
  return { held, lifeMs, learning, ...contentionIn(state, mine) };
}

/** Permits that the node gets beyond what it keeps: what is free, less one for each node that waits longer. */
function grantable(state: ScanState, mine: ScanHolding, kept: number, wanted: number, sinceMs: number) {
  const { clockMs } = state;
  let free = state.scans - kept;
  for (const holding of state.nodes) {
    if (holding === mine) continue;
    free -= scansHeldBy(holding, clockMs);
    if (isWaiting(holding, clockMs) && holding.sinceMs < sinceMs) free--;
  }
  return Math.max(0, Math.min(wanted - kept, free));
}

function scansHeldBy({ held, expiresMs }: ScanHolding, clockMs: number): number {
  return expiresMs > clockMs ? held : 0;
}

function isWaiting({ sinceMs, expiresMs }: ScanHolding, clockMs: number): boolean {
  return sinceMs > 0 && expiresMs - SCAN_LIFE_MS + SCAN_WAIT_MS > clockMs;
}

function contentionIn({ nodes, scans, clockMs }: ScanState, mine: ScanHolding) {
  let [isWanted, contenders, free] = [false, 1, scans];
  for (const holding of nodes) {
    const held = scansHeldBy(holding, clockMs);
    free -= held;
    if (holding === mine) continue;
    const waits = isWaiting(holding, clockMs);
    if (held > 0 || waits) contenders++;
    if (waits) isWanted = true;
  }
  return { contended: isWanted || free < 0, fair: Math.floor(scans / contenders) };
}

/** The version of a blob's format. */
const FORMAT = 2;

type AuthorityState = { rate?: RateState; credits?: CreditState; scans?: ScanState };

/** The parts of a blob, each as the values of these members and of its nodes', 0 for none: half the size of objects. */
const LAYOUT = {
  rate: [
    'atMs clockMs revision perMs burst micro reserved reservedMs',
    'node fence seq granted spent expiresMs wanted weight',
  ],
  credits: [
    'atMs clockMs revision total learnUntilMs',
    'node fence seq granted returned charged refunded heardMs needsUntilMs',
  ],
  scans: ['atMs clockMs revision scans', 'node fence seq held expiresMs wanted sinceMs'],
} as const satisfies Record<keyof AuthorityState, readonly [own: string, ofNode: string]>;

type Values = readonly unknown[];

/** Reads a blob; throws when it is of another version. */
export function decode(blob: string | undefined): AuthorityState {
  const [format, ...parts] = blob === undefined ? [FORMAT] : JSON.parse(blob);
  if (format !== FORMAT) throw new Error('FORMAT of a lease is of another version');
  const named = (names: string, values: Values) =>
    Object.fromEntries(names.split(' ').map((name, at) => [name, values[at]]));
  const state = Object.entries(LAYOUT).flatMap(([part, [own, ofNode]], at) => {
    if (!Array.isArray(parts[at])) return [];
    const nodes: readonly Values[] = parts[at].at(-1);
    return [[part, { ...named(own, parts[at]), nodes: nodes.map((node) => named(ofNode, node)) }]];
  });
  return Object.fromEntries(state);
}

function encode({ rate, credits, scans }: AuthorityState): string {
  const valuesOf = (names: string, of: object) => names.split(' ').map((name) => Reflect.get(of, name));
  const pack = (part: AuthorityState[keyof AuthorityState], [own, ofNode]: readonly [string, string]) =>
    part && [...valuesOf(own, part), part.nodes.map((node) => valuesOf(ofNode, node))];
  const parts = [pack(rate, LAYOUT.rate), pack(credits, LAYOUT.credits), pack(scans, LAYOUT.scans)];
  return JSON.stringify([FORMAT, ...parts.map((part) => part ?? 0)]);
}

function newPart(revision: number, nowMs: number) {
  return { atMs: nowMs, clockMs: 0, revision, nodes: [] };
}

export type Answer = Readonly<{
  /** The account's new blob; the old one when nothing changed. */
  blob: string;
  /** After so long without a message the blob equals none; `undefined`: it must never be dropped. */
  lifeMs: number | undefined;
  reply: Reply;
  released: readonly Released[];
  /** The store has lost grants of the account. */
  isLost: boolean;
}>;

/**
 * Applies one message to the state of its account, a text of the store's (docs/decisions/leases.md). Pure. Throws on a blob of
 * another version.
 */
export function answer(before: string | undefined, sender: Sender, message: Message, moment: Moment): Answer {
  const { revision, rate, credits, scans } = message;
  const { nowMs, sinceLossMs } = moment;
  const state = decode(before);
  const reply: { -readonly [K in keyof Reply]: Reply[K] } = {};
  let [released, isLost]: [readonly Released[], boolean] = [[], false];
  if (rate !== undefined) {
    // A bucket that is missing may have been lost until it would have filled up by itself.
    const low = rate.recovering || sinceLossMs < (1_000 * rate.burst) / rate.rps;
    state.rate ??= { ...newPart(revision, nowMs), ...newRate(rate, low) };
    reply.rate = topUpRate(state.rate, sender, rate, revision, nowMs);
  }
  if (credits !== undefined) {
    state.credits ??= { ...newPart(revision, nowMs), total: credits.total, learnUntilMs: 0 };
    const done = topUpCredits(state.credits, sender, credits, revision, moment);
    reply.credits = done.grant;
    ({ released, isLost } = done);
  }
  if (scans !== undefined) {
    state.scans ??= { ...newPart(revision, nowMs), scans: scans.scans };
    reply.scans = topUpScans(state.scans, sender, scans, revision, nowMs, sinceLossMs < LEARNING_MS);
  }
  const rateMs = state.rate === undefined ? 0 : rateStateLifeMs(state.rate);
  const scansMs = state.scans === undefined ? 0 : SCAN_LIFE_MS + SCAN_FORGET_MS;
  const lifeMs = state.credits === undefined ? Math.max(rateMs, scansMs) : undefined;
  return { blob: encode(state), lifeMs, reply, released, isLost };
}
