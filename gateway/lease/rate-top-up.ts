import { demandAt } from './demand.ts';
import { RATE_LIFE_MS } from './centre-rate.ts';
import { endShare, isWhole } from './local-share.ts';
import type { RateAsk, RateGrant } from './messages.ts';
import { noteSend } from './pace.ts';
import {
  BATCH_GAP_MS,
  gapOf,
  heldTokens,
  intervalOf,
  isQuiet,
  type RateLease,
  sendableMs,
} from './rate-lease.ts';

/** A lease is renewed, or its rest given back, so long before it ends. */
const RENEW_MS = 400;

/**
 * What an account let in without the centre for so much longer than its bucket takes to fill is a debt that is not paid
 * off; what was let in for less is, as the bucket kept all that came in meanwhile.
 */
const RECOVERING_MS = 1_000;

/**
 * Nodes come back to a centre one after the other. So long after its first answer each has spoken of what it still
 * uses, or never will; until then its word on who shares an account is only about those that came first.
 */
const HEARD_MS = 2_000;

/** A request that was given tokens takes them in the turns of the event loop that follow, or has left. */
const GIVEN_MS = 5;

/** An account that nobody asked for in this time is at rest. */
export const IDLE_MS = 2_000;

/** An account with fewer calls between two messages leases nothing ahead: what one process holds, others lack. */
const AHEAD_MIN = 2;

/** Tokens to hold: what will be spent until the answer to the next message but one. */
export function targetOf(lease: RateLease, nowMs: number, aheadMs: number): number {
  const { rps, burst } = lease.plan;
  const intervalMs = intervalOf(lease.plan);
  const demand = demandAt(lease.demand, nowMs);
  // Who holds tokens that nobody asks for keeps them from others.
  if (demand * intervalMs < AHEAD_MIN * 1_000 || isQuiet(lease, nowMs)) return 0;
  const cap = Math.max(1, Math.floor((burst - (rps * intervalMs) / 1_000) / lease.nodes));
  return Math.min(cap, Math.ceil((demand * (intervalMs + aheadMs)) / 1_000));
}

/** What the account wants of the centre: `now`, as something waits or is owed; `soon`, to be asked again later; or nothing. */
export function wishOf(lease: RateLease, nowMs: number, aheadMs: number): 'now' | 'soon' | 'nothing' {
  const held = heldTokens(lease, nowMs);
  if (lease.sent !== undefined) return 'soon';
  // What is owed is told out of turn: until then others are granted what is not there.
  if (held < 0 && lease.outSinceMs === undefined) return 'now';
  if (lease.waitingMost > 1 && nowMs >= lease.batchMs) return 'now';
  const target = targetOf(lease, nowMs, aheadMs);
  const low = (demandAt(lease.demand, nowMs) * aheadMs) / 1_000;
  const asks =
    lease.waiting > 0 ||
    held < 0 ||
    (lease.unmet && nowMs >= Math.max(lease.emptyUntilMs, lease.outSinceMs ?? 0) && target > held) ||
    (held <= low && target > held && nowMs >= lease.emptyUntilMs) ||
    (held > 0 && (lease.expiresMs - nowMs <= RENEW_MS || isQuiet(lease, nowMs))) ||
    (lease.outSinceMs !== undefined && !isIdle(lease, nowMs));
  if (asks) return sendableMs(lease, nowMs) <= nowMs ? 'now' : 'soon';
  return held > 0 || target > held ? 'soon' : 'nothing';
}

/**
 * Nothing is lost by forgetting it when nobody asked for it in `idleMs`; its next message but asks what it has spent. What
 * it let in alone counts until its bucket is full again: a new one would begin full.
 */
export function mayForget(lease: RateLease, nowMs: number, idleMs: number): boolean {
  return (
    lease.sent === undefined &&
    lease.waiting === 0 &&
    heldTokens(lease, nowMs) === 0 &&
    (lease.local === undefined || isWhole(lease.local, nowMs)) &&
    isIdle(lease, nowMs, idleMs)
  );
}

function isIdle({ demand }: RateLease, nowMs: number, idleMs = IDLE_MS): boolean {
  return nowMs - demand.atMs >= idleMs;
}

/**
 * Writes the account's message. Tokens above what it wants are out of reach from here on: the centre may give them to
 * others before the answer is read.
 */
export function askRate(
  lease: RateLease,
  accountId: number,
  revision: number,
  nowMs: number,
  aheadMs: number,
): RateAsk {
  const held = heldTokens(lease, nowMs);
  const aloneMs = aloneForMs(lease, nowMs);
  // Who was away for longer than leases live first asks who else is back.
  const target = aloneMs > RATE_LIFE_MS ? 0 : targetOf(lease, nowMs, aheadMs);
  const wanted = Math.max(0, target + lease.waiting - lease.waitingMost);
  const needed = lease.waitingMost;
  if (held > wanted) lease.granted = Math.min(lease.granted, lease.spent + wanted);
  const alone = aloneSpent(lease);
  const fillMs = (1_000 * lease.plan.burst) / lease.plan.rps;
  const untoldMs = Math.min(aloneMs, nowMs - lease.leftAtMs);
  const recovering = alone > 0 && untoldMs > fillMs + RECOVERING_MS;
  const local = lease.known || recovering ? alone : 0;
  const spent = lease.known ? lease.spent : 0;
  lease.sent = { atMs: nowMs, spent, local, wanted, needed };
  lease.unmet = false;
  lease.starved = false;
  if (needed > 1) lease.batchMs = nowMs + BATCH_GAP_MS;
  noteSend(lease.pace, gapOf(lease, nowMs), nowMs);
  return {
    accountId,
    revision,
    rps: lease.plan.rps,
    burst: lease.plan.burst,
    spent: lease.known ? spent + local : 0,
    wanted,
    needed,
    weight: Math.max(1, Math.ceil(demandAt(lease.demand, nowMs))),
    recovering,
  };
}

/** Milliseconds that the account has done without the centre; 0 while it has not. */
function aloneForMs({ outSinceMs, local }: RateLease, nowMs: number): number {
  const localMs = local?.ended === false ? local.sinceMs : nowMs;
  return nowMs - Math.min(outSinceMs ?? nowMs, localMs);
}

/** Calls let in without the centre and not yet told. */
function aloneSpent({ local }: RateLease): number {
  return local?.ended === false ? local.spent : 0;
}

/**
 * Takes in the answer to the message under way. After an outage the account goes on with its share until all that had
 * a part in it are back: the first would else be given what the others still let in alone.
 */
export function takeGrant(lease: RateLease, grant: RateGrant, nowMs: number): void {
  const { sent } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  lease.spent = grant.spent + lease.spent - sent.spent;
  lease.granted = grant.granted;
  lease.known = true;
  lease.expiresMs = sent.atMs + grant.lifeMs;
  const haveSpoken = hear(lease, grant, nowMs);
  const aloneMs = aloneForMs(lease, nowMs);
  lease.left = grant.left;
  lease.leftAtMs = nowMs;
  const got = grant.granted - grant.spent;
  lease.given = grant.given;
  lease.givenUntilMs = nowMs + GIVEN_MS;
  const isRefused = sent.needed > got + grant.given;
  lease.refused = isRefused ? sent.needed : 0;
  lease.refusedUntilMs = isRefused ? nowMs + grant.waitMs : 0;
  const isEmpty = grant.left < 1;
  const oneMs = Math.ceil(((1 - grant.left) * 1_000) / lease.plan.rps);
  lease.emptyUntilMs = isEmpty ? nowMs + Math.min(grant.waitMs, oneMs) : 0;
  lease.contendedUntilMs = got < sent.wanted ? nowMs + 2 * intervalOf(lease.plan) : 0;
  if (aloneMs > RATE_LIFE_MS && !haveSpoken) {
    lease.outSinceMs = nowMs - aloneMs;
    if (lease.local !== undefined) lease.local.spent -= sent.local;
    return;
  }
  // What was let in alone while this answer was on its way is spent like all else.
  lease.spent += aloneSpent(lease) - sent.local;
  lease.outSinceMs = undefined;
  if (lease.local !== undefined) endShare(lease.local);
}

/** Notes who shares the account; whether all that did before the last outage have spoken since. */
function hear(lease: RateLease, { nodes, weights }: RateGrant, nowMs: number): boolean {
  if (lease.heardSinceMs === undefined || nowMs - lease.leftAtMs > HEARD_MS) lease.heardSinceMs = nowMs;
  const haveSpoken = nowMs - lease.heardSinceMs >= HEARD_MS;
  if (!haveSpoken && nodes < lease.nodes) return false;
  lease.nodes = Math.max(1, nodes);
  if (haveSpoken)
    lease.share = Math.min(1, Math.max(1, demandAt(lease.demand, nowMs)) / Math.max(1, weights));
  return true;
}

/** Nobody knows whether the message under way was heard. */
export function missGrant(lease: RateLease): void {
  const { sent } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  lease.heardSinceMs = undefined;
  lease.outSinceMs ??= sent.atMs;
}
