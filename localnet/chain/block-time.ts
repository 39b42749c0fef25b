/*
 * When a slot was. Slots tick evenly from an anchor, and every run of the chain (and every jump of the machine's
 * clock) adds one, so the times of any number of empty blocks cost a row per run.
 */

/** From `slot` on, slots begin at `atMs` (Unix milliseconds) plus a multiple of `slotMs`. */
export type Anchor = Readonly<{ slot: bigint; atMs: number; slotMs: number }>;

/** When a slot begins, in Unix milliseconds. `anchors` ascend by slot and the first is that of slot 0. */
export function slotStartMs(anchors: readonly Anchor[], slot: bigint): number {
  const anchor = anchors.findLast((candidate) => candidate.slot <= slot);
  if (anchor === undefined) throw new Error(`no anchor at or before slot ${slot}`);
  return anchor.atMs + Number(slot - anchor.slot) * anchor.slotMs;
}

/** A slot's block time, in Unix seconds. */
export function blockTimeOf(anchors: readonly Anchor[], slot: bigint): bigint {
  return BigInt(Math.floor(slotStartMs(anchors, slot) / 1000));
}

/** The anchor of a run that begins with `slot` at `nowMs`: never before the slot that came last, so time never goes back. */
export function nextAnchor(anchors: readonly Anchor[], slot: bigint, nowMs: number, slotMs: number): Anchor {
  const lastMs = slot === 0n ? nowMs : slotStartMs(anchors, slot - 1n);
  return { slot, atMs: Math.max(nowMs, lastMs), slotMs };
}
