import type { NodeId, ScanAsk, ScanGrant, Speaker } from './messages.ts';

/** What the centre knows of one node's scans of an account. Whole numbers below 2^53. */
export type ScanHolding = Readonly<{
  fence: number;
  seq: number;
  /** Places that are the node's until `expiresMs` on the account's clock. */
  held: number;
  expiresMs: number;
  /** Places it wanted to hold, and since when it wants more than it holds; 0 while it does not. */
  wanted: number;
  sinceMs: number;
}>;

/** The centre's state of one account's scans. Whole numbers below 2^53. */
export type ScanState = Readonly<{
  /** The centre's wall clock at the last message, and the account's own clock, which never steps back. */
  atMs: number;
  clockMs: number;
  revision: number;
  /** Scans that the account may have under way at once. */
  scans: number;
  nodes: ReadonlyMap<NodeId, ScanHolding>;
}>;

/** How long places are a node's that does not speak; who holds some speaks every second. */
export const SCAN_LIFE_MS = 5_000;

/** Who wants places and was silent for so long has no turn any more. */
export const SCAN_WAIT_MS = 1_000;

/** A node that was silent for so long after its places ended is forgotten, with the number of its last message. */
export const SCAN_FORGET_MS = 60_000;

/** After so long without a message an account's state equals a new one, and may be dropped. */
export const SCAN_STATE_LIFE_MS = SCAN_LIFE_MS + SCAN_FORGET_MS;

/**
 * One message to the centre about an account's scans. What the node keeps is its own, whatever the centre knew: scans
 * run on it. More is granted as far as it is free and nobody has waited for it longer. `nowMs` is the centre's wall
 * clock in whole milliseconds. While `learning`, after the centre may have lost its state, nothing more is granted.
 * A message that is not newer than the node's last changes nothing and is answered with how things stand.
 */
export function topUpScans(
  before: ScanState | undefined,
  speaker: Speaker,
  ask: ScanAsk,
  nowMs: number,
  learning: boolean,
): Readonly<{ state: ScanState; grant: ScanGrant }> {
  const { node, fence, seq } = speaker;
  const start = before ?? {
    atMs: nowMs,
    clockMs: 0,
    revision: ask.revision,
    scans: ask.scans,
    nodes: NOBODY,
  };
  const settled = settle(start, nowMs);
  const known = settled.nodes.get(node);
  if (known !== undefined && !isNewer(speaker, known)) {
    // A process that has a successor under its name is granted nothing: what there is belongs to the other.
    const held = fence < known.fence ? ask.kept : heldBy(known, settled.clockMs);
    const lifeMs = fence < known.fence ? 0 : Math.max(0, known.expiresMs - settled.clockMs);
    return { state: start, grant: { held, lifeMs, learning, ...contentionIn(settled, node) } };
  }
  const { clockMs } = settled;
  const state = ask.revision < settled.revision ? settled : withPlan(settled, ask);
  const wanted = Math.max(ask.kept, Math.min(ask.wanted, state.scans));
  const sinceMs = waitingSince(known, fence, clockMs);
  const more = learning ? 0 : grantable(state, node, ask.kept, wanted, sinceMs);
  const held = ask.kept + more;
  // Whoever was given some goes behind the others with what it still wants.
  const since = held >= wanted ? 0 : more > 0 ? Math.max(1, clockMs) : sinceMs;
  const mine = { fence, seq, held, expiresMs: clockMs + SCAN_LIFE_MS, wanted, sinceMs: since };
  const after = { ...state, nodes: new Map(state.nodes).set(node, mine) };
  return {
    state: after,
    grant: { held, lifeMs: SCAN_LIFE_MS, learning, ...contentionIn(after, node) },
  };
}

const NOBODY: ScanState['nodes'] = new Map();

/** Time passes; a wall clock that steps back stops the account's clock for one message. */
function settle(state: ScanState, nowMs: number): ScanState {
  const clockMs = state.clockMs + Math.max(0, nowMs - state.atMs);
  const nodes = [...state.nodes].filter(([, { expiresMs }]) => expiresMs + SCAN_FORGET_MS > clockMs);
  return { ...state, atMs: nowMs, clockMs, nodes: new Map(nodes) };
}

function isNewer({ fence, seq }: Speaker, than: ScanHolding): boolean {
  return fence > than.fence || (fence === than.fence && seq > than.seq);
}

/** At equal revisions the last speaker's plan counts: processes reload one after the other, and then agree. */
function withPlan(state: ScanState, { revision, scans }: ScanAsk): ScanState {
  return { ...state, revision, scans };
}

function waitingSince(known: ScanHolding | undefined, fence: number, clockMs: number): number {
  const waited = known?.fence === fence && isWaiting(known, clockMs);
  return waited ? known.sinceMs : Math.max(1, clockMs);
}

/** Places that the node gets beyond what it keeps: what is free, less what is kept for those that wait longer. */
function grantable(state: ScanState, node: NodeId, kept: number, wanted: number, sinceMs: number): number {
  const { clockMs, scans } = state;
  let free = scans - kept;
  const longer: ScanHolding[] = [];
  let contenders = 1;
  for (const [id, holding] of state.nodes) {
    if (id === node) continue;
    free -= heldBy(holding, clockMs);
    if (isContender(holding, clockMs)) contenders++;
    if (isWaiting(holding, clockMs) && holding.sinceMs < sinceMs) longer.push(holding);
  }
  const fair = Math.floor(scans / contenders);
  for (const holding of longer) {
    const held = heldBy(holding, clockMs);
    free -= Math.min(holding.wanted - held, Math.max(1, fair - held));
  }
  return Math.max(0, Math.min(wanted - kept, free));
}

function heldBy({ held, expiresMs }: ScanHolding, clockMs: number): number {
  return expiresMs > clockMs ? held : 0;
}

function isSpeaking({ expiresMs }: ScanHolding, clockMs: number): boolean {
  return expiresMs - SCAN_LIFE_MS + SCAN_WAIT_MS > clockMs;
}

function isWaiting(holding: ScanHolding, clockMs: number): boolean {
  return holding.sinceMs > 0 && isSpeaking(holding, clockMs);
}

function isContender(holding: ScanHolding, clockMs: number): boolean {
  return heldBy(holding, clockMs) > 0 || isWaiting(holding, clockMs);
}

/** Whether others wait for places, or more are held than there are, and the part of each that holds or wants some. */
function contentionIn(
  { nodes, scans, clockMs }: ScanState,
  node: NodeId,
): Pick<ScanGrant, 'others' | 'fair'> {
  let others = false;
  let contenders = 1;
  let free = scans;
  for (const [id, holding] of nodes) {
    free -= heldBy(holding, clockMs);
    if (id === node) continue;
    if (isContender(holding, clockMs)) contenders++;
    if (isWaiting(holding, clockMs)) others = true;
  }
  return { others: others || free < 0, fair: Math.floor(scans / contenders) };
}
