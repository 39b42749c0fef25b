import { demandAt } from './demand.ts';
import { isWhole } from './local-share.ts';
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

/** What an account let in without the centre for longer than a lease lives is a debt that is not paid off. */
const RECOVERING_MS = 1_000;

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
  const wanted = Math.max(0, targetOf(lease, nowMs, aheadMs) + lease.waiting - lease.waitingMost);
  const needed = lease.waitingMost;
  if (held > wanted) lease.granted = Math.min(lease.granted, lease.spent + wanted);
  const aloneSinceMs = Math.min(lease.outSinceMs ?? nowMs, lease.local?.sinceMs ?? nowMs);
  const recovering = (lease.local?.spent ?? 0) > 0 && nowMs - aloneSinceMs > RECOVERING_MS;
  const local = lease.known || recovering ? (lease.local?.spent ?? 0) : 0;
  const spent = lease.known ? lease.spent : 0;
  lease.sent = { atMs: nowMs, spent, local, wanted, needed };
  lease.unmet = false;
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

/** Takes in the answer to the message under way. */
export function takeGrant(lease: RateLease, grant: RateGrant, nowMs: number): void {
  const { sent } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  lease.spent = grant.spent + lease.spent - sent.spent;
  lease.granted = grant.granted;
  lease.known = true;
  lease.expiresMs = sent.atMs + grant.lifeMs;
  lease.nodes = Math.max(1, grant.nodes);
  lease.share = Math.min(1, Math.max(1, demandAt(lease.demand, nowMs)) / Math.max(1, grant.weights));
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
  lease.outSinceMs = undefined;
  const since = (lease.local?.spent ?? 0) - sent.local;
  // What was let in alone while this answer was on its way is spent like all else.
  lease.spent += since;
  lease.local = undefined;
}

/** Nobody knows whether the message under way was heard. */
export function missGrant(lease: RateLease): void {
  const { sent } = lease;
  if (sent === undefined) return;
  lease.sent = undefined;
  lease.outSinceMs ??= sent.atMs;
}
