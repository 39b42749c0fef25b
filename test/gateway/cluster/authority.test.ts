import { describe, expect, test } from 'bun:test';
import { CREDIT_LIVE_MS } from '../../../gateway/cluster/authority-credits.ts';
import { RATE_FORGET_MS, RATE_LIFE_MS } from '../../../gateway/cluster/authority-rate.ts';
import { answer } from '../../../gateway/cluster/authority.ts';
import { startAuthority } from './authority-alone.ts';
import { rateMessage, senderOf } from './stores.ts';

// What the model, the differential and the scenarios do not show.

describe('a grant of a rate', () => {
  test('is a share by offered demand when more is wanted than there is', () => {
    const authority = startAuthority();
    authority.rate('c', { wanted: 100 });
    authority.rate('a', { wanted: 60, weight: 3 });
    authority.wait(100);
    authority.rate('c', { wanted: 0, spent: 88 });
    expect(authority.rate('b', { wanted: 60, weight: 9 }).granted).toBe(9);
  });

  test('is as much for a node that sends right after others', () => {
    for (const debt of [0, 2]) {
      const authority = startAuthority();
      // Three send one after the other, and one by itself: what there is differs by three times.
      const phases = { a: 0, b: 5, c: 10, d: 150 };
      const granted = new Map(Object.keys(phases).map((node) => [node, 0]));
      for (let ms = 0; ms < 30_000; ms += 5) {
        authority.wait(5);
        for (const [node, phase] of Object.entries(phases)) {
          if (ms % 200 !== phase) continue;
          const spent = (granted.get(node) ?? 0) + (ms < 200 ? 0 : debt);
          granted.set(node, authority.rate(node, { spent, wanted: 60, weight: 250 }).granted);
        }
      }
      const sum = granted.values().reduce((all, each) => all + each, 0);
      expect(sum).toBeWithin(3_000, 3_101);
      for (const each of granted.values()) expect(each / (sum / 4)).toBeWithin(0.9, 1.1);
    }
  });

  test('by an older plan does not undo a newer one', () => {
    const authority = startAuthority();
    authority.rate('a', { revision: 2, rps: 10, burst: 10 });
    for (let turn = 0; turn < 2; turn++) {
      expect(authority.rate('b', { revision: 1, wanted: 100 }).granted).toBe(10);
      authority.wait(2_000);
    }
  });
});

test('a rate starts full, and near empty where a loss is more recent than it takes to fill up', () => {
  const message = rateMessage({ rps: 10, burst: 100 });
  const remaining = (sinceLossMs: number) =>
    answer(undefined, senderOf('a', 1), message, { nowMs: 1, sinceLossMs, answeredSeq: 0 }).reply.rate
      ?.remaining;
  expect([0, 9_999, 10_000, Infinity].map(remaining)).toEqual([1, 1, 100, 100]);
});

test('nodes that went for good are forgotten', () => {
  const authority = startAuthority();
  for (let i = 0; i < 50; i++) authority.rate(`n${i}`, { wanted: 1 });
  authority.wait(RATE_LIFE_MS + RATE_FORGET_MS);
  authority.rate('a', {});
  expect(authority.nodes().length).toBe(1);
});

describe('a grant of credits', () => {
  test('shrinks with what is left, and with the nodes that share it', () => {
    const authority = startAuthority();
    expect(authority.credits('a', { wanted: 9_000 }).allowance).toBe(500);
    expect(authority.credits('b', { wanted: 9_000 })).toMatchObject({
      allowance: 125,
      heldByOthers: 500,
      available: 375,
    });
  });

  test('grows with the allowance of the newest revision only', () => {
    const authority = startAuthority();
    authority.credits('a', { revision: 2, total: 5_000 });
    expect(authority.credits('b', { revision: 1, total: 1_000 }).available).toBe(5_000);
    expect(authority.credits('b', { revision: 3, total: 10 }).available).toBe(10);
  });

  test('that a request is short of recalls the others to what they need, and they get no more', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 500 });
    expect(authority.credits('b', { needed: 600 })).toMatchObject({ allowance: 500, recalled: false });
    expect(authority.credits('a', { wanted: 500 })).toMatchObject({ allowance: 500, recalled: true });
    expect(authority.credits('a', { wanted: 0 })).toMatchObject({ available: 500, recalled: true });
    expect(authority.credits('a', { wanted: 100 }).allowance).toBe(0);
    expect(authority.credits('b', { needed: 600 })).toMatchObject({ allowance: 600, available: 400 });
    expect(authority.credits('a', { wanted: 100 })).toMatchObject({ allowance: 100, recalled: false });
  });

  test('counts what a silent node holds apart, and a wall clock that leaps makes no node silent', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 300 });
    authority.credits('b', {});
    authority.wait(86_400_000);
    expect(authority.credits('b', {})).toMatchObject({ heldByOthers: 300, available: 700 });
    for (let ms = 0; ms < CREDIT_LIVE_MS; ms += 1_000) {
      authority.wait(1_000);
      authority.credits('b', {});
    }
    expect(authority.credits('b', {})).toMatchObject({ heldByOthers: 0, available: 700 });
  });
});
