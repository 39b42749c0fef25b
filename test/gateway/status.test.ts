import { describe, expect, test } from 'bun:test';
import { healthOf, statusOf, togetherStatus } from '../../gateway/status.ts';
import type { Trouble } from '../../gateway/troubles.ts';
import { type Backend, HEALTHY } from '../../gateway/upstream/backend.ts';
import { type BackendStatus, gatewayStatusFrom } from '../../shared/gateway-status.ts';
import { backendOf, forwardOf } from './upstream/of.ts';
import { createVirtualClock } from './virtual-clock.ts';

const { clock } = createVirtualClock();
const WHOLE: BackendStatus = {
  name: 'a',
  profile: 'agave',
  lanes: ['state'],
  in: true,
  why: null,
  slot: 100,
  lag_slots: 0,
  in_flight: 1,
  max_connections: 512,
  recent_answered: 10,
  recent_failed: 1,
};
const statusWith = (...backends: Partial<BackendStatus>[]) => ({
  version: '1',
  processes: 1,
  recent_seconds: 300,
  backends: backends.map((backend) => ({ ...WHOLE, ...backend })),
});

describe('of one process, a backend', () => {
  const only = (backend: ReturnType<typeof backendOf>) => statusOf([backend], clock).backends[0];

  test('that is well is told with its slot, what is under way and what became of its calls', () => {
    const backend = backendOf({ name: 'a' });
    backend.health = { ...HEALTHY, tip: 314, lagSlots: 2 };
    backend.enter(clock);
    backend.markWell();
    backend.markWell();
    expect(only(backend)).toMatchObject({
      name: 'a',
      in: true,
      why: null,
      slot: 314,
      lag_slots: 2,
      in_flight: 1,
      max_connections: 512,
      recent_answered: 2,
      recent_failed: 0,
    });
  });
  test('that nothing is known of has no slot and no lag', () => {
    expect(only(backendOf())).toMatchObject({ slot: null, lag_slots: null });
  });
  test.each([
    [{ excludedBecause: 'lagging', lagSlots: 40 }, 'lagging'],
    [{ excludedBecause: 'unreachable', reason: 'ECONNREFUSED' }, 'unreachable: ECONNREFUSED'],
  ] as const)('with the standing %j is out because it is %s', (standing, why) => {
    const backend = backendOf();
    backend.health = { ...HEALTHY, ...standing };
    expect(only(backend)).toMatchObject({ in: false, why });
  });
  test('whose calls fail is in, and failing', () => {
    const backend = backendOf();
    backend.markFailed(clock);
    backend.markFailed(clock);
    expect(only(backend)).toMatchObject({ in: true, why: 'failing', recent_failed: 2 });
  });
  test('that begins to answer far later than others is in, and slow', () => {
    const [slow, fast] = [backendOf({ name: 'a' }), backendOf({ name: 'b' })];
    for (let i = 0; i < 5; i++) {
      slow.latencies.state?.note(3_000);
      fast.latencies.state?.note(2);
    }
    forwardOf([slow, fast], clock).pool.compareLatencies();
    expect(only(slow)).toMatchObject({ in: true, why: 'slow' });
    expect(only(fast)).toMatchObject({ in: true, why: null });
  });
  test('is told of its last five minutes', () => {
    const backend = backendOf();
    backend.markWell();
    for (let turn = 1; turn <= 30; turn++) backend.recent.turn();
    expect(only(backend)?.recent_answered).toBe(1);
    backend.recent.turn();
    expect(only(backend)?.recent_answered).toBe(0);
  });
});

describe('of several processes, a backend', () => {
  test('is in when all have it in, and why not is said by one that has it out', () => {
    const out = { in: false, why: 'lagging' };
    for (const pair of [
      [{}, out],
      [out, {}],
      [{ why: 'failing' }, out],
    ])
      expect(togetherStatus(pair.map((one) => statusWith(one))).backends).toMatchObject([out]);
    expect(togetherStatus([statusWith({}), statusWith({ why: 'failing' })]).backends[0]?.why).toBe('failing');
  });
  test('has its counts added up, the connections of the host that they share, and the newest slot with its lag', () => {
    const other = { slot: 120, lag_slots: 3, in_flight: 4, recent_answered: 5, recent_failed: 6 };
    expect(togetherStatus([statusWith({}), statusWith(other), statusWith({ slot: null })])).toMatchObject({
      processes: 3,
      backends: [
        {
          slot: 120,
          lag_slots: 3,
          in_flight: 6,
          max_connections: 512,
          recent_answered: 25,
          recent_failed: 8,
        },
      ],
    });
  });
  test('that only one of them has is told of too', () => {
    const { backends } = togetherStatus([statusWith({}), statusWith({ name: 'b' })]);
    expect(backends.map(({ name }) => name)).toEqual(['a', 'b']);
  });
});

test('what is written is what is read, and nothing else is', () => {
  const status = statusOf([backendOf()], clock);
  expect(gatewayStatusFrom(JSON.parse(JSON.stringify(status)))).toEqual(status);
  for (const wrong of [
    null,
    7,
    {},
    { ...status, backends: [{}] },
    { ...status, version: 1 },
    { ...status, backends: [{ ...WHOLE, slot: 'x' }] },
  ])
    expect(gatewayStatusFrom(wrong)).toBeUndefined();
});

const health = (backends: readonly Backend[], ...troubles: Trouble[]) => healthOf(backends, clock, troubles);

const node = (name: string) => backendOf({ name });
const archive = (name: string) => backendOf({ name, profile: 'superbank', lanes: ['archive'] });

describe('the health', () => {
  test('is ok when every backend is well', () => {
    expect(health([node('a'), archive('b')])).toEqual({ ok: true, sentence: 'ok' });
  });

  test('names those that are not, each with its reason', () => {
    const [a, b, c, d, e] = [node('a'), node('b'), node('c'), node('d'), node('e')];
    b.health = { ...HEALTHY, excludedBecause: 'lagging', lagSlots: 40 };
    c.health = { ...HEALTHY, excludedBecause: 'unreachable', reason: 'HTTP 401' };
    d.health = { ...HEALTHY, excludedBecause: 'of another chain' };
    e.markFailed(clock);
    expect(health([a, b, c, d, e])).toEqual({
      ok: true,
      sentence:
        'ok, but not these backends: b (40 slots behind), c (HTTP 401), d (of another chain), e (failing)',
    });
  });

  test('says of one that is out and has answered its last probe that it does again', () => {
    const [a, b] = [node('a'), node('b')];
    b.health = { ...HEALTHY, excludedBecause: 'unreachable' };
    expect(health([a, b]).sentence).toBe('ok, but not these backends: b (answers again)');
  });

  test('is bad when no backend that serves accounts is well, whatever the archives are', () => {
    const a = node('a');
    a.health = { ...HEALTHY, excludedBecause: 'unreachable', reason: 'ECONNREFUSED' };
    expect(health([a, archive('b')])).toEqual({
      ok: false,
      sentence: 'no backend is well: a (ECONNREFUSED)',
    });
  });

  test('of a gateway of archives alone is theirs', () => {
    const [a, b] = [archive('a'), archive('b')];
    a.health = { ...HEALTHY, excludedBecause: 'unreachable', reason: 'HTTP 404' };
    expect(health([a, b]).ok).toBe(true);
    b.health = a.health;
    expect(health([a, b]).ok).toBe(false);
  });

  const UNCOUNTED = { what: 'usage is not written', cause: 'the disk is full', stops: false };
  const UNPAID = { what: 'charges are not written', stops: true };

  test('tells troubles with their causes, beside the backends, and is bad when one stops the service', () => {
    expect(health([node('a')], UNCOUNTED)).toEqual({
      ok: true,
      sentence: 'ok, but usage is not written (the disk is full)',
    });
    const [a, b] = [node('a'), node('b')];
    b.markFailed(clock);
    expect(health([a, b], UNPAID, UNCOUNTED)).toEqual({
      ok: false,
      sentence:
        'charges are not written; usage is not written (the disk is full); not these backends: b (failing)',
    });
  });
});
