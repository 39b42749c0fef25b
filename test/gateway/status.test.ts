import { describe, expect, test } from 'bun:test';
import { statusOf, togetherStatus, unwellOf } from '../../gateway/status.ts';
import { type Backend, HEALTHY, type HealthState } from '../../gateway/upstream/backend.ts';
import { type BackendStatus, gatewayStatusFrom } from '../../shared/gateway-status.ts';
import { LANES_BY_DEFAULT } from '../../shared/config/profiles.ts';
import { backendOf } from './upstream/of.ts';
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
  const only = (backend: Backend) => statusOf([backend], clock).backends[0];

  test('that is well has its slot, what is under way and what became of its calls in five minutes', () => {
    const backend = backendOf({ name: 'a' });
    backend.health = { ...HEALTHY, tip: 314, lagSlots: 2 };
    backend.enter(clock);
    backend.markWell();
    backend.markWell();
    const row = { ...WHOLE, lanes: LANES_BY_DEFAULT, slot: 314, lag_slots: 2, recent_failed: 0 };
    for (let turn = 0; turn <= 30; turn++) {
      expect(only(backend)).toEqual({ ...row, recent_answered: 2 });
      backend.recent.turn();
    }
    expect(only(backend)).toEqual({ ...row, recent_answered: 0 });
    expect(only(backendOf())).toMatchObject({ slot: null, lag_slots: null });
  });

  test.each([
    [{ excludedBecause: 'lagging', lagSlots: 40 }, 'lagging'],
    [{ excludedBecause: 'unreachable', reason: 'ECONNREFUSED' }, 'unreachable: ECONNREFUSED'],
  ] as const)('with the health %j is out because it is %s', (health, why) => {
    const backend = backendOf();
    backend.health = { ...HEALTHY, ...health };
    expect(only(backend)).toMatchObject({ in: false, why });
  });

  test('whose calls fail is in, and failing', () => {
    const backend = backendOf();
    backend.markFailed(clock);
    expect(only(backend)).toMatchObject({ in: true, why: 'failing', recent_failed: 1 });
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
    const sums = { slot: 120, lag_slots: 3, in_flight: 6, recent_answered: 25, recent_failed: 8 };
    const together = togetherStatus([statusWith({}), statusWith(other), statusWith({ slot: null })]);
    expect(together).toMatchObject({ processes: 3, backends: [{ ...WHOLE, ...sums }] });
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

const node = (name: string) => backendOf({ name });
const archive = (name: string) => backendOf({ name, profile: 'superbank', lanes: ['archive'] });

describe('of the backends', () => {
  test('those that are not well are named with their reasons, one whose calls fail when that lasts', () => {
    const states: Partial<HealthState>[] = [
      {},
      { excludedBecause: 'lagging', lagSlots: 40 },
      { excludedBecause: 'unreachable', reason: 'HTTP 401' },
      { excludedBecause: 'of another chain' },
      { excludedBecause: 'unreachable' }, // and has answered its last probe
    ];
    const nodes = states.map((state, i) =>
      Object.assign(node('abcd'[i] ?? 'e'), { health: { ...HEALTHY, ...state } }),
    );
    const failing = node('f');
    failing.markFailed(clock);
    const { unwell } = unwellOf([...nodes, failing], clock);
    expect(unwell.map(({ what, cause, raiseMs = 0 }) => [what, cause, raiseMs > 1_000])).toEqual([
      ['b', '40 slots behind', false],
      ['c', 'HTTP 401', false],
      ['d', 'of another chain', false],
      ['e', 'answers again', false],
      ['f', 'failing', true],
    ]);
  });

  test('one of the live nodes is needed, or any where there is none', () => {
    const [a, b, c] = [node('a'), archive('b'), archive('c')];
    expect(unwellOf([a, b], clock).needed).toEqual(['a']);
    expect(unwellOf([b, c], clock).needed).toEqual(['b', 'c']);
  });
});
