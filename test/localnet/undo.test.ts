import { describe, expect, test } from 'bun:test';
import {
  type Anchor,
  blockhashOf,
  blockTimeOf,
  createBlockhashQueue,
  isWithinAge,
  nextAnchor,
  slotStartMs,
} from '../../localnet/protocol/slot.ts';
import { createUndo } from '../../localnet/chain/accounts.ts';
import { addressNumber, systemAccount } from './harness.ts';

const A = addressNumber(1);
const B = addressNumber(2);

describe('undo', () => {
  function filled() {
    const undo = createUndo();
    undo.open(1n);
    undo.record(A, undefined);
    undo.open(2n);
    undo.record(A, systemAccount(1n));
    undo.record(A, systemAccount(99n));
    undo.record(B, systemAccount(5n));
    undo.open(3n);
    return undo;
  }

  test.each([
    [0n, A, { kind: 'image', state: undefined }],
    [1n, A, { kind: 'image', state: systemAccount(1n) }],
    [2n, A, { kind: 'unchanged' }],
    [0n, B, { kind: 'image', state: systemAccount(5n) }],
    [3n, B, { kind: 'unchanged' }],
  ])('at the end of slot %p the first image after it counts', (slot, address, image) => {
    const undo = filled();
    expect(undo.imageAt(undo.endOf(slot), address)).toEqual(image as { kind: 'unchanged' }); // compared by value
  });

  test('tells what changed after a moment', () => {
    const undo = filled();
    expect(undo.changedSince(undo.endOf(0n))).toEqual(new Set([A, B]));
    expect(undo.changedSince(undo.endOf(2n))).toEqual(new Set());
  });

  test('a held moment within a slot is not touched by what follows in the slot', () => {
    const undo = filled();
    const moment = undo.endOf(3n);
    const release = undo.hold(moment);
    undo.record(B, systemAccount(6n));
    expect(undo.imageAt(moment, B)).toEqual({ kind: 'image', state: systemAccount(6n) });
    release();
  });

  test('forgets only what no one needs', () => {
    const undo = filled();
    undo.forgetUntil(1n);
    expect(undo.layerCount()).toBe(2);
    const first = undo.hold(undo.endOf(1n));
    const second = undo.hold(undo.endOf(1n));
    undo.forgetUntil(3n);
    expect(undo.layerCount()).toBe(2);
    first();
    undo.forgetUntil(3n);
    expect(undo.layerCount()).toBe(2);
    second();
    undo.forgetUntil(3n);
    expect(undo.layerCount()).toBe(0);
  });
});

describe('block times', () => {
  const anchors: Anchor[] = [
    { slot: 0n, atMs: 1_000, slotMs: 400 },
    { slot: 10n, atMs: 100_000, slotMs: 100 },
  ];
  test.each([
    [0n, 1_000, 1n],
    [9n, 4_600, 4n],
    [10n, 100_000, 100n],
    [25n, 101_500, 101n],
  ])('slot %p begins at %i', (slot, ms, seconds) => {
    expect(slotStartMs(anchors, slot)).toBe(ms);
    expect(blockTimeOf(anchors, slot)).toBe(seconds);
  });

  test.each([
    [200_000, 200_000],
    [50_000, 100_900],
  ])('a run that begins at %i is anchored at %i: never before its last slot', (nowMs, atMs) => {
    expect(nextAnchor(anchors, 20n, nowMs, 50)).toEqual({ slot: 20n, atMs, slotMs: 50 });
  });
});

describe('blockhashes', () => {
  test('follow from the seed and the slot, and from both', () => {
    const [one, other] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const hashes = [blockhashOf(one, 1n), blockhashOf(one, 2n), blockhashOf(other, 1n)];
    expect(new Set(hashes).size).toBe(3);
    expect(blockhashOf(one, 1n)).toBe(hashes[0] ?? '');
  });

  test.each([
    [undefined, false],
    [849n, false],
    [850n, true],
    [1_000n, true],
    [1_001n, false],
  ])('that of slot %p is within age at 1000: %p', (slot, isWithin) => {
    expect(isWithinAge(slot, 1_000n)).toBe(isWithin);
  });

  test('are forgotten beyond the queue', () => {
    const queue = createBlockhashQueue(3n);
    for (let slot = 1n; slot <= 5n; slot += 1n) queue.add(slot, `hash ${slot}`);
    expect([1n, 2n, 3n, 4n, 5n].map((slot) => queue.slotOf(`hash ${slot}`))).toEqual([
      undefined,
      undefined,
      3n,
      4n,
      5n,
    ]);
  });
});
