import type { Brand } from '../../shared/brand.ts';

/** One gateway process as the centre knows it: a UUID kept on its disk, which survives restarts. */
export type NodeId = Brand<string, 'NodeId'>;

/**
 * Who speaks: the node, its fence (which grows with every start of it) and a number that grows with every message. The
 * centre takes from an older message only what can never be wrong, its counters, so that a message that comes twice,
 * late or out of order changes nothing.
 */
export type Speaker = Readonly<{ node: NodeId; fence: number; seq: number }>;

/**
 * What a node says of one account's rate and asks for. Tokens are whole calls, so that counters never outgrow an
 * exact integer; only the centre's bucket counts in micro-tokens.
 */
export type RateAsk = Readonly<{
  accountId: number;
  /** The plan, by the revision of the accounts database that it was read at; the centre keeps the newest. */
  revision: number;
  rps: number;
  burst: number;
  /** Tokens spent under this fence; only grows. A node that forgot the account says 0 and learns the number from the reply. */
  spent: number;
  /** Tokens it wants to hold unspent after this message, besides `needed`; what it holds above both goes back. */
  wanted: number;
  /** Tokens that one waiting request needs at once, at most `burst`; 0 when none waits. Granted whole or not at all. */
  needed: number;
  /** Calls a second that were offered to it lately, refused ones included: its share when there is not enough for all. */
  weight: number;
  /** The node had to do without the centre: what it owes empties the bucket, and no more than that. */
  recovering: boolean;
}>;

/** The centre's state of the account after the message. */
export type RateGrant = Readonly<{
  /** Tokens granted to the node under this fence and not given back. It may spend `granted - spent`. */
  granted: number;
  /** Tokens spent by the node under this fence, as the centre knows it: at least what the message said, and `given`. */
  spent: number;
  /** Tokens for the request that needed some, beyond what the node held: to be taken now or never, and spent already. */
  given: number;
  /** How long the grant lives from when the message was sent, in milliseconds; what is unspent then is lost. */
  lifeMs: number;
  /** Until the bucket surely has what was needed and not granted, else one token; 0 when it has it now. */
  waitMs: number;
  /** Tokens left in the bucket, which nobody holds; below zero while a large batch is paid off. */
  left: number;
  /** Nodes that hold or want tokens of the account now, this one included, and the sum of their weights. */
  nodes: number;
  weights: number;
}>;

/** What a node says of one account's credits and asks for. Whole credits. */
export type CreditAsk = Readonly<{
  accountId: number;
  revision: number;
  /** Credits ever given to the account, at that revision. */
  total: number;
  /** Credits charged and refunded by this node, ever: both only grow. */
  charged: number;
  refunded: number;
  /** Credits that it may still spend, as far as it knows: a centre that is learning knows no better, and keeps no more for it. */
  held: number;
  /** Credits it wants to hold unspent after this message; what it holds above that and `needed` goes back. */
  wanted: number;
  /** Credits that a waiting request needs now; 0 when none waits. Others are asked to give back what they do not need. */
  needed: number;
}>;

export type CreditGrant = Readonly<{
  /** Credits that the node may still spend beyond what it said it had charged: granted - returned - (charged - refunded). */
  allowance: number;
  /** Credits that nobody holds. */
  available: number;
  /** Credits held unspent by other nodes that have spoken lately, and by nodes that have not. */
  heldByOthers: number;
  heldByDead: number;
  /** Another node needs credits: hold no more than is needed. */
  recalled: boolean;
  /** The centre may have lost grants and gives none until every node was heard: a shortage proves nothing. */
  learning: boolean;
}>;

/** What a node says of one account's scans and asks for. */
export type ScanAsk = Readonly<{
  accountId: number;
  revision: number;
  /** Scans that the plan allows at once, at that revision. */
  scans: number;
  /** Places that are its own from this message on: those that scans run on, and those that it does not give back. */
  kept: number;
  /** Places it wants to hold, `kept` included. */
  wanted: number;
}>;

export type ScanGrant = Readonly<{
  /** Places that are the node's, `kept` included, for so many milliseconds from when the message was sent. */
  held: number;
  lifeMs: number;
  /** Another node waits for places, or more are held than there are, as after an outage. */
  others: boolean;
  /** The part of each node that holds or wants places, rounded down. */
  fair: number;
  /** The centre may have lost who holds what and grants nothing until every node was heard. */
  learning: boolean;
}>;

/** The answer to one ask; `failed`: the centre did not take it, or nobody knows whether it did. */
export type Answered<Grant> =
  { readonly kind: 'granted'; readonly grant: Grant } | { readonly kind: 'failed' };

/**
 * Where leases of all nodes meet. Every call is absolute and may be repeated. All settle within `deadlineMs` of the
 * store's own options and never reject; answers are in the order of the asks.
 */
export type LeaseStore = Readonly<{
  rates(speaker: Speaker, asks: readonly RateAsk[]): Promise<readonly Answered<RateGrant>[]>;
  credits(speaker: Speaker, asks: readonly CreditAsk[]): Promise<readonly Answered<CreditGrant>[]>;
  scans(speaker: Speaker, asks: readonly ScanAsk[]): Promise<readonly Answered<ScanGrant>[]>;
  /** Resolves when the store is closed and no call is under way. */
  close(): Promise<void>;
}>;
