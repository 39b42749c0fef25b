import { describe, expect, test } from 'bun:test';
import { RATE_FORGET_MS, RATE_LIFE_MS } from '../../../gateway/limits/authority-rate.ts';
import { startAuthority } from './authority-alone.ts';

describe('a grant', () => {
  test('is what is wanted while there is enough for all, and moves it out of the bucket', () => {
    const authority = startAuthority();
    expect(authority.rate('a', { wanted: 20 })).toEqual({
      granted: 20,
      spent: 0,
      immediate: 0,
      lifeMs: RATE_LIFE_MS,
      waitMs: 0,
      remaining: 80,
      nodes: 1,
      weights: 1,
    });
    expect(authority.rate('b', { wanted: 30, weight: 3 })).toMatchObject({
      granted: 30,
      remaining: 50,
      nodes: 2,
      weights: 4,
    });
  });

  test('is a share by offered demand when the wishes are above what is there', () => {
    const authority = startAuthority();
    authority.rate('c', { wanted: 100 });
    authority.rate('a', { wanted: 60, weight: 3 });
    authority.wait(100);
    authority.rate('c', { wanted: 0, spent: 88 });
    expect(authority.rate('b', { wanted: 60, weight: 9 }).granted).toBe(9);
  });

  test.each([
    ['nothing', 0],
    ['two calls a message', 2],
  ])('is as much for a node that sends right after others, when each owes %s', (_, debt) => {
    const authority = startAuthority();
    // Three speak one after the other, and one by itself: what there is differs by three times.
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
    const all = [...granted.values()];
    const sum = all.reduce((a, b) => a + b, 0);
    expect(sum).toBeWithin(3_000, 3_101);
    for (const each of all) expect(each / (sum / 4)).toBeWithin(0.9, 1.1);
  });

  test('is one token at least when there is one', () => {
    const authority = startAuthority({ rps: 5, burst: 5 });
    authority.rate('a', { wanted: 4, weight: 1_000 });
    expect(authority.rate('b', { wanted: 4, weight: 1 }).granted).toBe(1);
  });

  test('above the wish goes back to the bucket', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 50 });
    expect(authority.rate('a', { wanted: 10, spent: 20 })).toMatchObject({
      granted: 30,
      spent: 20,
      remaining: 70,
    });
  });

  test('that is not renewed is lost when its life ends, and nothing of it is minted again', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 100 });
    authority.wait(RATE_LIFE_MS - 1);
    expect(authority.rate('b', { wanted: 100 }).remaining).toBe(0);
    authority.wait(1);
    expect(authority.rate('b', { wanted: 0 }).remaining).toBe(0);
    authority.wait(500);
    expect(authority.rate('a', { spent: 100 })).toMatchObject({ granted: 100, remaining: 50 });
  });
});

describe('the bucket', () => {
  test('and what is outstanding are never above the burst together', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 40 });
    authority.wait(900);
    expect(authority.rate('a', { wanted: 40 })).toMatchObject({ granted: 40, remaining: 60 });
  });

  test('pays what a node spent beyond its grants', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 10 });
    expect(authority.rate('a', { wanted: 0, spent: 160 })).toMatchObject({
      granted: 160,
      remaining: -60,
      waitMs: 610,
    });
    authority.wait(609);
    expect(authority.rate('b', { wanted: 1 }).granted).toBe(0);
    authority.wait(1);
    expect(authority.rate('b', { wanted: 1 }).granted).toBe(1);
  });

  test('starts full, and with a tenth of a second of the rate after an outage', () => {
    expect(startAuthority().rate('a', {}).remaining).toBe(100);
    expect(startAuthority().rate('a', { recovering: true }).remaining).toBe(10);
  });

  test('pays what was let in during an outage as far as it can, and owes nothing of it', () => {
    const authority = startAuthority();
    authority.rate('a', {});
    expect(authority.rate('a', { spent: 30, recovering: true }).remaining).toBe(70);
    expect(authority.rate('a', { spent: 5_000, recovering: true }).remaining).toBe(10);
    expect(authority.rate('a', { spent: 9_000, recovering: true }).remaining).toBe(10);
  });

  test('is near empty for an unknown node that was alone: what it owes was lost', () => {
    const authority = startAuthority();
    authority.rate('a', {});
    expect(authority.rate('b', { spent: 75, recovering: false }).remaining).toBe(100);
    expect(authority.rate('c', { spent: 75, recovering: true }).remaining).toBe(10);
  });
});

describe('a request that needs tokens at once', () => {
  test('gets all of them besides what is wanted, or none', () => {
    const authority = startAuthority();
    expect(authority.rate('a', { needed: 70, wanted: 5 })).toMatchObject({ granted: 75, waitMs: 0 });
    expect(authority.rate('b', { needed: 70, wanted: 5 })).toMatchObject({ granted: 5 });
  });

  test('finds its tokens after the wait of its refusal, whatever other nodes ask in between', () => {
    const authority = startAuthority();
    authority.rate('a', { needed: 100 });
    authority.rate('a', { spent: 100 });
    const { waitMs } = authority.rate('b', { needed: 50 });
    expect(waitMs).toBe(500);
    let taken = 100;
    for (let ms = 0; ms < 1_000; ms += 20) {
      authority.wait(20);
      taken = authority.rate('a', { spent: taken, wanted: 10, weight: 900 }).granted;
    }
    expect(authority.rate('c', { needed: 50 }).granted).toBe(50);
    expect(taken).toBeGreaterThanOrEqual(130);
  });

  test('has nothing kept for it for longer than it may take to come back', () => {
    const authority = startAuthority();
    authority.rate('a', { needed: 100 });
    authority.rate('a', { spent: 100 });
    authority.rate('b', { needed: 50 });
    authority.wait(1_249);
    expect(authority.rate('a', { spent: 100, needed: 60 }).granted).toBe(160);
    expect(authority.rate('a', { spent: 160, wanted: 50 }).granted).toBe(200);
    authority.rate('b', { needed: 50 });
    authority.wait(2_000);
    expect(authority.rate('c', { wanted: 100 }).granted).toBe(100);
  });

  test('has a wait that holds whatever other nodes lease', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 60 });
    const { waitMs } = authority.rate('b', { needed: 100 });
    authority.wait(waitMs);
    expect(authority.rate('b', { needed: 100 }).granted).toBe(100);
  });
});

describe('a message', () => {
  test('of a process that started again begins anew, and one of its forerunner is not heard', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 20 });
    expect(authority.rateAs(authority.sender('a', 2), { wanted: 5 })).toMatchObject({
      granted: 5,
      remaining: 75,
    });
    expect(authority.rateAs(authority.sender('a', 1), { wanted: 90, spent: 20 })).toMatchObject({
      granted: 20,
      spent: 20,
    });
    expect(authority.nodes()[0]).toMatchObject({ granted: 5, spent: 0 });
  });

  test('of a node that forgot the account tells it what it had spent', () => {
    const authority = startAuthority();
    authority.rate('a', { wanted: 20 });
    authority.rate('a', { spent: 20 });
    expect(authority.rate('a', { spent: 0, wanted: 3 })).toMatchObject({ granted: 23, spent: 20 });
  });

  test('of an older plan does not undo a newer one', () => {
    const authority = startAuthority();
    authority.rate('a', { revision: 2, rps: 10, burst: 10 });
    expect(authority.rate('b', { revision: 1, wanted: 100 }).granted).toBe(10);
  });
});

test('nodes that went for good are forgotten', () => {
  const authority = startAuthority();
  for (let i = 0; i < 50; i++) authority.rate(`n${i}`, { wanted: 1 });
  expect(authority.nodes().length).toBe(50);
  authority.wait(RATE_LIFE_MS + RATE_FORGET_MS);
  authority.rate('a', {});
  expect(authority.nodes().length).toBe(1);
});
