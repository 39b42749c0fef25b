import { describe, expect, test } from 'bun:test';
import { CREDIT_LIVE_MS, CREDIT_RELEASE_MS } from '../../../gateway/limits/authority-credits.ts';
import { startAuthority } from './authority-alone.ts';
import { senderOf } from './stores.ts';

describe('a lease', () => {
  test('is what is wanted, out of what no node holds', () => {
    expect(startAuthority().credits('a', { wanted: 100 })).toEqual({
      allowance: 100,
      available: 900,
      heldByOthers: 0,
      heldByDead: 0,
      recalled: false,
      learning: false,
    });
  });

  test('shrinks with what is left, and with the nodes that share it', () => {
    const authority = startAuthority();
    expect(authority.credits('a', { wanted: 9_000 }).allowance).toBe(500);
    expect(authority.credits('b', { wanted: 9_000 })).toMatchObject({
      allowance: 125,
      heldByOthers: 500,
      available: 375,
    });
  });

  test('of a node that the store lost is what the node has spent, and all adds up again', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 100, charged: 30 });
    authority.lose();
    expect(authority.credits('a', { charged: 90, refunded: 5 })).toMatchObject({
      allowance: 0,
      available: 915,
    });
  });

  test('that was overspent, as after a lost tail, is taken from what is left', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 100 });
    expect(authority.credits('a', { charged: 150 })).toMatchObject({ allowance: 0, available: 850 });
  });

  test('grows with the allowance of the newest revision only', () => {
    const authority = startAuthority();
    authority.credits('a', { revision: 2, total: 5_000 });
    expect(authority.credits('b', { revision: 1, total: 1_000 }).available).toBe(5_000);
    expect(authority.credits('b', { revision: 3, total: 10 }).available).toBe(10);
  });
});

describe('at the end', () => {
  test('a request gets the last credits whole, past the share', () => {
    const authority = startAuthority();
    expect(authority.credits('a', { needed: 1_000 })).toMatchObject({
      allowance: 1_000,
      available: 0,
      recalled: false,
    });
    expect(authority.credits('b', { needed: 1 })).toMatchObject({ allowance: 0, heldByOthers: 1_000 });
  });

  test('a request that is short has the others asked to hold no more than they need, and they get no more', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 500 });
    expect(authority.credits('b', { needed: 600 })).toMatchObject({
      allowance: 500,
      recalled: false,
      heldByOthers: 500,
    });
    expect(authority.credits('a', { wanted: 500 })).toMatchObject({ allowance: 500, recalled: true });
    expect(authority.credits('a', { wanted: 0 })).toMatchObject({
      allowance: 0,
      available: 500,
      recalled: true,
    });
    expect(authority.credits('a', { wanted: 100 }).allowance).toBe(0);
    expect(authority.credits('b', { needed: 600 })).toMatchObject({ allowance: 600, available: 400 });
    expect(authority.credits('a', { wanted: 100 })).toMatchObject({ allowance: 100, recalled: false });
  });

  test('a recall takes nothing that the holder did not offer: it may be spending it', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 500 });
    authority.credits('b', { needed: 900 });
    expect(authority.credits('a', { wanted: 200 }).allowance).toBe(200);
  });

  test('what a silent node holds is counted apart, and a wall clock that leaps makes no node silent', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 300 });
    authority.credits('b', {});
    authority.wait(86_400_000);
    expect(authority.credits('b', {})).toMatchObject({ heldByOthers: 300, heldByDead: 0 });
    for (let ms = 0; ms < CREDIT_LIVE_MS; ms += 1_000) {
      authority.wait(1_000);
      authority.credits('b', {});
    }
    expect(authority.credits('b', {})).toMatchObject({ heldByOthers: 0, heldByDead: 300, available: 700 });
    expect(authority.released).toEqual([]);
  });

  test('what a dead node holds is released after a day, and its journal still counts when it comes back', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 300, charged: 100 });
    for (let ms = 0; ms < CREDIT_RELEASE_MS; ms += 2_000) {
      authority.wait(2_000);
      authority.credits('b', {});
    }
    expect(authority.released).toEqual([{ node: senderOf('a', 0).node, credits: 300 }]);
    expect(authority.credits('b', {})).toMatchObject({ available: 900, heldByDead: 0 });
    expect(authority.creditsAs(authority.sender('a', 2), { charged: 250 })).toMatchObject({
      allowance: 0,
      available: 750,
    });
  });
});

describe('a message', () => {
  test('never decreases a counter', () => {
    const authority = startAuthority();
    authority.credits('a', { charged: 80, refunded: 10 });
    expect(authority.creditsAs(authority.sender('a', 2), { charged: 7, refunded: 1 }).available).toBe(930);
  });

  test('of a process that has a successor counts, and gives it nothing to spend', () => {
    const authority = startAuthority();
    authority.creditsAs(authority.sender('a', 2), { wanted: 100 });
    expect(authority.creditsAs(authority.sender('a', 1), { charged: 30 })).toMatchObject({
      allowance: 0,
      available: 900,
    });
    expect(authority.creditsAs(authority.sender('a', 2), { charged: 30, wanted: 100 }).allowance).toBe(100);
  });

  test('of a process that started again finds its lease, less what its journal counts', () => {
    const authority = startAuthority();
    authority.credits('a', { wanted: 100 });
    expect(authority.creditsAs(authority.sender('a', 2), { charged: 40, wanted: 60 })).toMatchObject({
      allowance: 60,
      available: 900,
    });
  });
});

test('an authority that may have lost grants only learns, and its shortage proves nothing', () => {
  const authority = startAuthority();
  authority.learn(true);
  expect(authority.credits('a', { needed: 10, wanted: 100, charged: 5 })).toMatchObject({
    allowance: 0,
    available: 995,
    learning: true,
  });
  expect(authority.credits('a', { held: 0, wanted: 100, charged: 5 }).allowance).toBe(0);
  authority.learn(false);
  expect(authority.credits('b', { wanted: 10 })).toMatchObject({
    allowance: 10,
    learning: false,
    recalled: false,
  });
});

test('an authority that is learning keeps for a node no more than the node knows of', () => {
  const authority = startAuthority();
  authority.credits('a', { wanted: 400 });
  authority.learn(true);
  expect(authority.credits('a', { held: 30, wanted: 400, charged: 20 })).toMatchObject({
    allowance: 30,
    available: 950,
  });
});
