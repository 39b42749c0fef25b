import { describe, expect, test } from 'bun:test';
import {
  CREDIT_LIVE_MS,
  CREDIT_RELEASE_MS,
  type CreditState,
  type Released,
  topUpCredits,
} from '../../../gateway/lease/centre-credit.ts';
import type { CreditAsk, CreditGrant, NodeId, Speaker } from '../../../gateway/lease/messages.ts';

/** A centre that is told one message after the other, of an account with 1000 credits. */
function started() {
  let state: CreditState | undefined;
  let nowMs = 1_700_000_000_000;
  let learning = false;
  const released: Released[] = [];
  const seqs = new Map<string, number>();
  const speaker = (node: string, fence = 1): Speaker => {
    const seq = (seqs.get(node) ?? 0) + 1;
    seqs.set(node, seq);
    return { node: idOf(node), fence, seq };
  };
  function tell(by: Speaker, ask: Partial<CreditAsk>): CreditGrant {
    const whole = {
      accountId: 1,
      revision: 1,
      total: 1_000,
      charged: 0,
      refunded: 0,
      held: 0,
      wanted: 0,
      needed: 0,
      ...ask,
    };
    const done = topUpCredits(state, by, whole, nowMs, learning);
    state = done.state;
    released.push(...done.released);
    return done.grant;
  }
  return {
    tell,
    say: (node: string, ask: Partial<CreditAsk>) => tell(speaker(node), ask),
    speaker,
    wait: (ms: number) => void (nowMs += ms),
    lose: () => void (state = undefined),
    learn: (is: boolean) => void (learning = is),
    state: () => state,
    released,
  };
}

// The brand is the identity file's to give; a test needs only names that differ.
const idOf = (name: string) => name as NodeId;

describe('a lease', () => {
  test('is what is wanted, out of what nobody holds', () => {
    expect(started().say('a', { wanted: 100 })).toEqual({
      allowance: 100,
      available: 900,
      heldByOthers: 0,
      heldByDead: 0,
      recalled: false,
      learning: false,
    });
  });

  test('shrinks with what is left, and with the nodes that share it', () => {
    const centre = started();
    expect(centre.say('a', { wanted: 9_000 }).allowance).toBe(500);
    expect(centre.say('b', { wanted: 9_000 })).toMatchObject({
      allowance: 125,
      heldByOthers: 500,
      available: 375,
    });
  });

  test('counts what was charged and what was refunded', () => {
    const centre = started();
    centre.say('a', { wanted: 100 });
    expect(centre.say('a', { wanted: 100, charged: 60, refunded: 10 })).toMatchObject({
      allowance: 100,
      available: 850,
    });
  });

  test('above the wish goes back', () => {
    const centre = started();
    centre.say('a', { wanted: 400 });
    expect(centre.say('a', { wanted: 50, charged: 100 })).toMatchObject({ allowance: 50, available: 850 });
  });

  test('of a node that the centre lost is what the node has spent, and all adds up again', () => {
    const centre = started();
    centre.say('a', { wanted: 100, charged: 30 });
    centre.lose();
    expect(centre.say('a', { charged: 90, refunded: 5 })).toMatchObject({ allowance: 0, available: 915 });
  });

  test('that was overspent, as after a lost tail, is taken from what is left', () => {
    const centre = started();
    centre.say('a', { wanted: 100 });
    expect(centre.say('a', { charged: 150 })).toMatchObject({ allowance: 0, available: 850 });
  });

  test('grows with the allowance of the newest revision only', () => {
    const centre = started();
    centre.say('a', { revision: 2, total: 5_000 });
    expect(centre.say('b', { revision: 1, total: 1_000 }).available).toBe(5_000);
    expect(centre.say('b', { revision: 3, total: 10 }).available).toBe(10);
  });
});

describe('at the end', () => {
  test('a request gets the last credits whole, past the share', () => {
    const centre = started();
    expect(centre.say('a', { needed: 1_000 })).toMatchObject({
      allowance: 1_000,
      available: 0,
      recalled: false,
    });
    expect(centre.say('b', { needed: 1 })).toMatchObject({ allowance: 0, heldByOthers: 1_000 });
  });

  test('a request that is short has the others asked to hold no more than they need, and they get no more', () => {
    const centre = started();
    centre.say('a', { wanted: 500 });
    expect(centre.say('b', { needed: 600 })).toMatchObject({
      allowance: 500,
      recalled: false,
      heldByOthers: 500,
    });
    expect(centre.say('a', { wanted: 500 })).toMatchObject({ allowance: 500, recalled: true });
    expect(centre.say('a', { wanted: 0 })).toMatchObject({ allowance: 0, available: 500, recalled: true });
    expect(centre.say('a', { wanted: 100 }).allowance).toBe(0);
    expect(centre.say('b', { needed: 600 })).toMatchObject({ allowance: 600, available: 400 });
    expect(centre.say('a', { wanted: 100 })).toMatchObject({ allowance: 100, recalled: false });
  });

  test('a recall takes nothing that the holder did not offer: it may be spending it', () => {
    const centre = started();
    centre.say('a', { wanted: 500 });
    centre.say('b', { needed: 900 });
    expect(centre.say('a', { wanted: 200 }).allowance).toBe(200);
  });

  test('what a silent node holds is told apart, also from a wall clock that leaps', () => {
    const centre = started();
    centre.say('a', { wanted: 300 });
    centre.say('b', {});
    centre.wait(86_400_000);
    expect(centre.say('b', {})).toMatchObject({ heldByOthers: 300, heldByDead: 0 });
    for (let ms = 0; ms < CREDIT_LIVE_MS; ms += 1_000) {
      centre.wait(1_000);
      centre.say('b', {});
    }
    expect(centre.say('b', {})).toMatchObject({ heldByOthers: 0, heldByDead: 300, available: 700 });
    expect(centre.released).toEqual([]);
  });

  test('what a dead node holds is released after a day, and its journal still counts when it comes back', () => {
    const centre = started();
    centre.say('a', { wanted: 300, charged: 100 });
    for (let ms = 0; ms < CREDIT_RELEASE_MS; ms += 2_000) {
      centre.wait(2_000);
      centre.say('b', {});
    }
    expect(centre.released).toEqual([{ node: idOf('a'), credits: 300 }]);
    expect(centre.say('b', {})).toMatchObject({ available: 900, heldByDead: 0 });
    expect(centre.tell(centre.speaker('a', 2), { charged: 250 })).toMatchObject({
      allowance: 0,
      available: 750,
    });
  });
});

describe('a message', () => {
  test('that comes twice, late or out of order changes nothing', () => {
    const centre = started();
    const first = centre.speaker('a');
    centre.tell(first, { wanted: 100 });
    centre.say('a', { wanted: 50, charged: 80, refunded: 10 });
    const before = centre.state();
    expect(centre.tell(first, { wanted: 100 })).toMatchObject({ allowance: 50, available: 880 });
    expect(centre.state()).toEqual(before);
  });

  test('never takes a counter back, whatever it says', () => {
    const centre = started();
    centre.say('a', { charged: 80, refunded: 10 });
    expect(centre.tell(centre.speaker('a', 2), { charged: 7, refunded: 1 }).available).toBe(930);
  });

  test('of a process that has a successor counts, and gives it nothing to spend', () => {
    const centre = started();
    centre.tell(centre.speaker('a', 2), { wanted: 100 });
    expect(centre.tell(centre.speaker('a', 1), { charged: 30 })).toMatchObject({
      allowance: 0,
      available: 900,
    });
    expect(centre.tell(centre.speaker('a', 2), { charged: 30, wanted: 100 }).allowance).toBe(100);
  });

  test('of a process that started again finds its lease, less what its journal says', () => {
    const centre = started();
    centre.say('a', { wanted: 100 });
    expect(centre.tell(centre.speaker('a', 2), { charged: 40, wanted: 60 })).toMatchObject({
      allowance: 60,
      available: 900,
    });
  });
});

test('a centre that may have lost grants only listens, and says that a shortage proves nothing', () => {
  const centre = started();
  centre.learn(true);
  expect(centre.say('a', { needed: 10, wanted: 100, charged: 5 })).toMatchObject({
    allowance: 0,
    available: 995,
    learning: true,
  });
  expect(centre.say('a', { held: 0, wanted: 100, charged: 5 }).allowance).toBe(0);
  centre.learn(false);
  expect(centre.say('b', { wanted: 10 })).toMatchObject({ allowance: 10, learning: false, recalled: false });
});

test('a centre that is learning keeps for a node no more than the node knows of', () => {
  const centre = started();
  centre.say('a', { wanted: 400 });
  centre.learn(true);
  expect(centre.say('a', { held: 30, wanted: 400, charged: 20 })).toMatchObject({
    allowance: 30,
    available: 950,
  });
});
