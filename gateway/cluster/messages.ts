import type { Clock } from '../../shared/clock.ts';

/**
 * The node (a gateway process: a UUID that survives restarts), its fence (grows with every start) and the number of the
 * message. A message that comes twice, late or out of order changes nothing but counters that never decrease.
 */
export type Sender = Readonly<{ node: string; fence: number; seq: number }>;

/** One account's rate in a node. Tokens are whole calls. */
export type RateReport = Readonly<{
  rps: number;
  burst: number;
  /** Tokens spent under this fence; only grows. A node that forgot the account reports 0 and learns the number from the grant. */
  spent: number;
  /** Tokens to hold besides `needed`; what the node holds above both is returned. */
  wanted: number;
  /** Tokens that one waiting request needs at once, at most `burst`; granted whole or not at all. */
  needed: number;
  /** Calls a second offered to the node lately, refused ones included; shares are by weight. */
  weight: number;
  /** The node let calls in without the authority: what it owes empties the bucket, and no more than that. */
  recovering: boolean;
}>;

/** The authority's state of the account after the message. */
export type RateGrant = Readonly<{
  /** Tokens granted under this fence and not returned, and spent, `immediate` included. The node may spend the difference. */
  granted: number;
  spent: number;
  /** Tokens for the waiting request, beyond what the node held: taken at once or lost. */
  immediate: number;
  /** From when the message was sent; what is unspent then is lost. */
  lifeMs: number;
  /** Until the bucket surely has what was needed and not granted, else one token; 0 when it has it now. */
  waitMs: number;
  /** Tokens in the bucket that no node holds; below zero while a large batch is paid off. */
  remaining: number;
  /** Nodes that hold or want tokens of the account now, this one included, and the sum of their weights. */
  nodes: number;
  weights: number;
}>;

/** One account's credits in a node. Whole credits. */
export type CreditReport = Readonly<{
  /** Credits ever given to the account, at the message's revision. */
  total: number;
  /** Ever, by this node. */
  charged: number;
  refunded: number;
  /** Credits that the node may still spend, as far as it knows: an authority that is learning keeps no more for it. */
  held: number;
  /** Credits to hold; what the node holds above that and `needed` is returned. */
  wanted: number;
  /** Credits that waiting requests need now: other nodes are recalled. */
  needed: number;
}>;

export type CreditGrant = Readonly<{
  /** Credits that the node may spend beyond what it reported: granted - returned - (charged - refunded). */
  allowance: number;
  /** Credits that no node holds. */
  available: number;
  /** Credits held unspent by other nodes that have sent lately. */
  heldByOthers: number;
  /** Credits that each other node was granted and has not returned, spent or held. */
  taken: ReadonlyMap<string, number>;
  /** Another node needs credits: hold no more than is needed. */
  recalled: boolean;
  /** The authority may have lost grants and gives none until every node was heard: a shortage proves nothing. */
  learning: boolean;
}>;

/** One account's scans in a node. */
export type ScanReport = Readonly<{
  /** Scans that the plan allows at once, at the message's revision. */
  scans: number;
  /** Permits that are the node's from this message on: those in use, and those that it does not return. */
  kept: number;
  /** Permits to hold, `kept` included. */
  wanted: number;
}>;

export type ScanGrant = Readonly<{
  /** Permits that are the node's, `kept` included, for so long from when the message was sent. */
  held: number;
  lifeMs: number;
  /** Another node waits for permits, or more are held than there are, as after an outage. */
  contended: boolean;
  /** The share of each node that holds or wants permits, rounded down. */
  fair: number;
  learning: boolean;
}>;

/** One message about one account; plan and total are of `revision` of the accounts database, and the newest counts. */
export type Message = Readonly<{
  accountId: number;
  revision: number;
  rate?: RateReport | undefined;
  credits?: CreditReport | undefined;
  scans?: ScanReport | undefined;
}>;

export type Reply = Readonly<{
  rate?: RateGrant | undefined;
  credits?: CreditGrant | undefined;
  scans?: ScanGrant | undefined;
}>;

/** Credits that a node held when it was last heard, long ago, and that are the account's again. */
export type Released = Readonly<{ node: string; credits: number }>;

/** Why a store gave no reply: it takes no writes, or it cannot be reached or used, with what it or the system said. */
export type StoreFailure = Readonly<{ how: 'away' | 'full'; error: string }>;

/** Where the leases of all nodes meet. */
export type LeaseStore = Readonly<{
  /** Replies in the messages' order; `undefined`: it may have been taken. Messages are absolute. Never rejects. */
  sync(sender: Sender, messages: readonly Message[]): Promise<readonly (Reply | undefined)[]>;
  /** Why the last call that had no reply had none; `undefined` before the first. */
  failure(): StoreFailure | undefined;
  /** Calls that are under way then have no reply, and later ones have none at once. */
  close(): Promise<void>;
}>;

export type StoreOptions = Readonly<{
  clock: Clock;
  onReleased(accountId: number, released: Released): void;
}>;

/** After so many milliseconds a call of a store has no reply. */
export const STORE_DEADLINE_MS = 100;

/** The number of a node's last message before it sent any. */
const NO_MESSAGE = { fence: 0, seq: -1 };

/** Whether a message of `sender` is newer than the last one of its node. */
export function isNewer({ fence, seq }: Pick<Sender, 'fence' | 'seq'>, than: typeof NO_MESSAGE): boolean {
  return fence > than.fence || (fence === than.fence && seq > than.seq);
}

/** A node in a part of an account's state, with its last message. */
export type Holding = { readonly node: string; fence: number; seq: number };

/** The holding of the sender's node; a new one is older than every message. */
export function holdingIn<Part extends object>(nodes: (Holding & Part)[], { node }: Sender, empty: Part) {
  const known = nodes.find((holding) => holding.node === node);
  if (known !== undefined) return known;
  const holding = { node, ...NO_MESSAGE, ...empty };
  nodes.push(holding);
  return holding;
}
