import { describe, expect, test } from 'bun:test';
import {
  RATE_FORGET_MS,
  RATE_LIFE_MS,
  type RateState,
  topUpRate,
} from '../../../gateway/lease/centre-rate.ts';
import type { NodeId, RateAsk, RateGrant, Speaker } from '../../../gateway/lease/messages.ts';

/** A centre that is told one message after the other. */
function started(plan: Partial<RateAsk> = {}) {
  let state: RateState | undefined;
  let nowMs = 1_700_000_000_000;
  const seqs = new Map<string, number>();
  const asked = (ask: Partial<RateAsk>): RateAsk => ({
    accountId: 1,
    revision: 1,
    rps: 100,
    burst: 100,
    spent: 0,
    wanted: 0,
    needed: 0,
    weight: 1,
    recovering: false,
    ...plan,
    ...ask,
  });
  const speaker = (node: string, fence = 1): Speaker => {
    const seq = (seqs.get(node) ?? 0) + 1;
    seqs.set(node, seq);
    return { node: idOf(node), fence, seq };
  };
  function tell(by: Speaker, ask: Partial<RateAsk>): RateGrant {
    const done = topUpRate(state, by, asked(ask), nowMs);
    state = done.state;
    return done.grant;
  }
  return {
    tell,
    say: (node: string, ask: Partial<RateAsk>) => tell(speaker(node), ask),
    speaker,
    wait: (ms: number) => void (nowMs += ms),
    lose: () => void (state = undefined),
    state: () => state,
  };
}

// The brand is the identity file's to give; a test needs only names that differ.
const idOf = (name: string) => name as NodeId;

describe('a grant', () => {
  test('is what is wanted while there is enough for all, and moves it out of the bucket', () => {
    const centre = started();
    expect(centre.say('a', { wanted: 20 })).toEqual({
      granted: 20,
      spent: 0,
      given: 0,
      lifeMs: RATE_LIFE_MS,
      waitMs: 0,
      left: 80,
      nodes: 1,
      weights: 1,
    });
    expect(centre.say('b', { wanted: 30, weight: 3 })).toMatchObject({
      granted: 30,
      left: 50,
      nodes: 2,
      weights: 4,
    });
  });

  test('is a share by offered demand when the wishes are above what is there', () => {
    const centre = started();
    centre.say('c', { wanted: 100 });
    centre.say('a', { wanted: 60, weight: 3 });
    centre.wait(100);
    centre.say('c', { wanted: 0, spent: 88 });
    expect(centre.say('b', { wanted: 60, weight: 9 }).granted).toBe(9);
  });

  test.each([
    ['nothing', 0],
    ['two calls a message', 2],
  ])('is as much for who speaks right after others, when each owes %s', (_, debt) => {
    const centre = started();
    // Three speak one after the other, and one by itself: what there is differs by three times.
    const phases = { a: 0, b: 5, c: 10, d: 150 };
    const granted = new Map(Object.keys(phases).map((node) => [node, 0]));
    for (let ms = 0; ms < 30_000; ms += 5) {
      centre.wait(5);
      for (const [node, phase] of Object.entries(phases)) {
        if (ms % 200 !== phase) continue;
        const spent = (granted.get(node) ?? 0) + (ms < 200 ? 0 : debt);
        granted.set(node, centre.say(node, { spent, wanted: 60, weight: 250 }).granted);
      }
    }
    const all = [...granted.values()];
    const sum = all.reduce((a, b) => a + b, 0);
    expect(sum).toBeWithin(3_000, 3_101);
    for (const each of all) expect(each / (sum / 4)).toBeWithin(0.9, 1.1);
  });

  test('is one token at least when there is one', () => {
    const centre = started({ rps: 5, burst: 5 });
    centre.say('a', { wanted: 4, weight: 1_000 });
    expect(centre.say('b', { wanted: 4, weight: 1 }).granted).toBe(1);
  });

  test('above the wish goes back to the bucket', () => {
    const centre = started();
    centre.say('a', { wanted: 50 });
    expect(centre.say('a', { wanted: 10, spent: 20 })).toMatchObject({ granted: 30, spent: 20, left: 70 });
  });

  test('that is not renewed is lost when its life ends, and nothing of it is minted again', () => {
    const centre = started();
    centre.say('a', { wanted: 100 });
    centre.wait(RATE_LIFE_MS - 1);
    expect(centre.say('b', { wanted: 100 }).left).toBe(0);
    centre.wait(1);
    expect(centre.say('b', { wanted: 0 }).left).toBe(0);
    centre.wait(500);
    expect(centre.say('a', { spent: 100 })).toMatchObject({ granted: 100, left: 50 });
  });
});

describe('the bucket', () => {
  test('and what is outstanding are never above the burst together', () => {
    const centre = started();
    centre.say('a', { wanted: 40 });
    centre.wait(900);
    expect(centre.say('a', { wanted: 40 })).toMatchObject({ granted: 40, left: 60 });
  });

  test('pays what a node spent beyond its grants', () => {
    const centre = started();
    centre.say('a', { wanted: 10 });
    expect(centre.say('a', { wanted: 0, spent: 160 })).toMatchObject({
      granted: 160,
      left: -60,
      waitMs: 610,
    });
    centre.wait(609);
    expect(centre.say('b', { wanted: 1 }).granted).toBe(0);
    centre.wait(1);
    expect(centre.say('b', { wanted: 1 }).granted).toBe(1);
  });

  test('neither mints nor stops when the wall clock steps back', () => {
    const centre = started();
    centre.say('a', { wanted: 100, spent: 0 });
    centre.wait(-3_600_000);
    expect(centre.say('a', { wanted: 0, spent: 100 }).left).toBe(0);
    centre.wait(500);
    expect(centre.say('a', { wanted: 0, spent: 100 }).left).toBe(50);
  });

  test('holds one burst after a leap of the wall clock', () => {
    const centre = started({ rps: 1e7, burst: 1e7 });
    centre.say('a', { wanted: 1e7, spent: 0 });
    centre.wait(1e11);
    expect(centre.say('a', { spent: 1e7 }).left).toBe(1e7);
    expect(
      Object.values(centre.state() ?? {}).every((n) => typeof n !== 'number' || Number.isSafeInteger(n)),
    ).toBe(true);
  });

  test('starts full, and with a tenth of a second of the rate after an outage', () => {
    expect(started().say('a', {}).left).toBe(100);
    expect(started().say('a', { recovering: true }).left).toBe(10);
  });

  test('pays what was let in during an outage as far as it can, and owes nothing of it', () => {
    const centre = started();
    centre.say('a', {});
    expect(centre.say('a', { spent: 30, recovering: true }).left).toBe(70);
    expect(centre.say('a', { spent: 5_000, recovering: true }).left).toBe(10);
    expect(centre.say('a', { spent: 9_000, recovering: true }).left).toBe(10);
  });

  test('is near empty at a node that did without the centre and is not known to it: what it owes was lost', () => {
    const centre = started();
    centre.say('a', {});
    expect(centre.say('b', { spent: 75, recovering: false }).left).toBe(100);
    expect(centre.say('c', { spent: 75, recovering: true }).left).toBe(10);
  });

  test('refills fractions of a call a second exactly', () => {
    const centre = started({ rps: 0.5, burst: 1 });
    expect(centre.say('a', { needed: 1 }).granted).toBe(1);
    expect(centre.say('a', { spent: 1 }).waitMs).toBe(2_000);
    centre.wait(1_999);
    expect(centre.say('a', { spent: 1 })).toMatchObject({ left: 0, waitMs: 1 });
    centre.wait(1);
    expect(centre.say('a', { spent: 1 }).left).toBe(1);
  });
});

describe('a request that needs tokens at once', () => {
  test('gets all of them besides what is wanted, or none', () => {
    const centre = started();
    expect(centre.say('a', { needed: 70, wanted: 5 })).toMatchObject({ granted: 75, waitMs: 0 });
    expect(centre.say('b', { needed: 70, wanted: 5 })).toMatchObject({ granted: 5 });
  });

  test('finds its tokens after the wait that it was told, whoever asked in between', () => {
    const centre = started();
    centre.say('a', { needed: 100 });
    centre.say('a', { spent: 100 });
    const { waitMs } = centre.say('b', { needed: 50 });
    expect(waitMs).toBe(500);
    let taken = 100;
    for (let ms = 0; ms < 1_000; ms += 20) {
      centre.wait(20);
      taken = centre.say('a', { spent: taken, wanted: 10, weight: 900 }).granted;
    }
    expect(centre.say('c', { needed: 50 }).granted).toBe(50);
    expect(taken).toBeGreaterThanOrEqual(130);
  });

  test('has nothing kept for it for longer than it may take to come back', () => {
    const centre = started();
    centre.say('a', { needed: 100 });
    centre.say('a', { spent: 100 });
    centre.say('b', { needed: 50 });
    centre.wait(1_249);
    expect(centre.say('a', { spent: 100, needed: 60 }).granted).toBe(160);
    expect(centre.say('a', { spent: 160, wanted: 50 }).granted).toBe(200);
  });

  test('is told a wait that leases of others cannot make a lie', () => {
    const centre = started();
    centre.say('a', { wanted: 60 });
    const { waitMs } = centre.say('b', { needed: 100 });
    centre.wait(waitMs);
    expect(centre.say('b', { needed: 100 }).granted).toBe(100);
  });
});

describe('a message', () => {
  test('that comes twice, late or out of order changes nothing and is told how things stand', () => {
    const centre = started();
    const first = centre.speaker('a');
    centre.tell(first, { wanted: 20 });
    centre.say('a', { wanted: 10, spent: 15 });
    const before = centre.state();
    centre.wait(50);
    expect(centre.tell(first, { wanted: 20 })).toMatchObject({ granted: 25, spent: 15, lifeMs: 950 });
    expect(centre.state()).toBe(before);
  });

  test('of a process that started again begins anew, and one of its forerunner is not heard', () => {
    const centre = started();
    centre.say('a', { wanted: 20 });
    expect(centre.tell(centre.speaker('a', 2), { wanted: 5 })).toMatchObject({ granted: 5, left: 75 });
    expect(centre.tell(centre.speaker('a', 1), { wanted: 90, spent: 20 })).toMatchObject({
      granted: 20,
      spent: 20,
    });
    expect(centre.state()?.nodes.get(idOf('a'))).toMatchObject({ granted: 5, spent: 0 });
  });

  test('of a node that forgot the account tells it what it had spent', () => {
    const centre = started();
    centre.say('a', { wanted: 20 });
    centre.say('a', { spent: 20 });
    expect(centre.say('a', { spent: 0, wanted: 3 })).toMatchObject({ granted: 23, spent: 20 });
  });

  test('of an older plan does not undo a newer one', () => {
    const centre = started();
    centre.say('a', { revision: 2, rps: 10, burst: 10 });
    expect(centre.say('b', { revision: 1, wanted: 100 }).granted).toBe(10);
  });

  test('after the centre lost everything finds its counters again', () => {
    const centre = started();
    centre.say('a', { wanted: 20 });
    centre.lose();
    expect(centre.say('a', { spent: 7, wanted: 3 })).toMatchObject({ granted: 10, spent: 7 });
  });
});

test('nodes that went for good are forgotten', () => {
  const centre = started();
  for (let i = 0; i < 50; i++) centre.say(`n${i}`, { wanted: 1 });
  expect(centre.state()?.nodes.size).toBe(50);
  centre.wait(RATE_LIFE_MS + RATE_FORGET_MS);
  centre.say('a', {});
  expect(centre.state()?.nodes.size).toBe(1);
});
