import { describe, expect, test } from 'bun:test';
import { createRouter, type Route } from '../../../gateway/upstream/selection.ts';
import { LANES, PROFILES } from '../../../shared/config/profiles.ts';
import { backendOf } from './of.ts';
import { METHODS } from '../../../shared/config/methods.ts';

const namesOf = (route: Route) =>
  route.kind === 'forward' ? route.backends.map(({ config }) => config.name) : route.reason;

const routeOf = createRouter([
  backendOf({ name: 'state', lanes: ['state'] }),
  backendOf({ name: 'all', lanes: ['state', 'scan', 'archive', 'send'] }),
  backendOf({
    name: 'vendor',
    lanes: ['archive'],
    methods: ['getSlot', 'requestAirdrop', 'getProgramAccountsV2', 'qn_ownMethod'],
  }),
]);

describe('a method goes to the backends', () => {
  test.each([
    ['getBalance', ['state', 'all']],
    ['getProgramAccounts', ['all']],
    ['getBlock', ['all', 'vendor']],
    ['sendTransaction', ['all']],
    ['getSlot', ['state', 'all', 'vendor']],
    ['requestAirdrop', ['vendor']],
    ['getProgramAccountsV2', ['vendor']],
    ['qn_ownMethod', ['vendor']],
  ])('%s: of its lane or that declare it, in the order of the config', (method, backends) => {
    expect(namesOf(routeOf(method))).toEqual(backends);
  });
});

describe('a method that nobody serves is not found', () => {
  test.each(['getConfirmedBlock', '', 'getslot', 'getSlot ', '__proto__', 'constructor'])('%p', (method) => {
    expect(routeOf(method)).toEqual({ kind: 'not-found', reason: 'Method not found' });
  });

  test.each(['getAsset', 'getTokenAccountsByMint', 'simulateBundle'])('%p, which is known', (method) => {
    const reason = `Method not found: no backend here serves ${method}`;
    expect(routeOf(method)).toEqual({ kind: 'not-found', reason });
  });

  test('when no backend declares it, though one serves its lane (§2.2.1)', () => {
    const everyLane = createRouter([backendOf({ lanes: LANES })]);
    for (const method of ['requestAirdrop', 'sendBundle', 'getTransactionsForAddress'])
      expect(everyLane(method).kind).toBe('not-found');
    expect(everyLane('getAsset').kind).toBe('forward');
  });

  test('and a subscription says why (§2.3.6)', () => {
    expect(namesOf(routeOf('accountSubscribe'))).toBe(
      'Method not found: subscriptions need WebSocket, which this endpoint does not offer',
    );
  });
});

test('a method that only the config knows is taken for a light read', () => {
  expect(routeOf('qn_ownMethod')).toMatchObject({ kind: 'forward', method: { class: 'light' } });
});

describe('a profile narrows its lanes to what its software serves', () => {
  const served = (profile: 'old-faithful' | 'superbank' | 'cloudbreak' | 'das', name: string) =>
    createRouter([
      backendOf({ profile, lanes: PROFILES[profile].lanes, methods: PROFILES[profile].methods }),
    ])(name).kind === 'forward';

  test.each([
    ['old-faithful', ['getBlock', 'getBlocksWithLimit', 'getFirstAvailableBlock'], ['getInflationReward']],
    ['superbank', ['getInflationReward', 'getTransactionsForAddress'], ['getSlot', 'getTransfersByAddress']],
    ['cloudbreak', ['getProgramAccounts', 'getTokenAccountsByMint', 'getBalance'], ['getSupply', 'getBlock']],
    ['das', ['getAsset', 'searchAssets'], ['getSlot']],
  ] as const)('%p', (profile, serves, lacks) => {
    for (const name of serves) expect([name, served(profile, name)]).toEqual([name, true]);
    for (const name of lacks) expect([name, served(profile, name)]).toEqual([name, false]);
  });
});

test.each(['agave', 'old-faithful', 'superbank', 'cloudbreak'] as const)(
  '%s may be given the lanes of which it serves a method, and no other',
  (profile) => {
    const served = LANES.filter((lane) => {
      const routeOf = createRouter([backendOf({ profile, lanes: [lane] })]);
      return [...METHODS.keys()].some((name) => routeOf(name).kind === 'forward');
    });
    expect(served.toSorted()).toEqual(PROFILES[profile].mayServe.toSorted());
  },
);
