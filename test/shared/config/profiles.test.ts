import { describe, expect, test } from 'bun:test';
import { configFrom } from '../../../shared/config/config.ts';

const AT = 'http://10.0.0.1:8899';

function backendOf(rows: Record<string, unknown>) {
  const result = configFrom({ backends: [{ name: 'a', url: AT, ...rows }] }, {});
  if (result.kind === 'problems') return result.problems;
  return result.config.backends[0];
}

describe('a profile sets what its table leaves out', () => {
  test.each([
    [undefined, ['state', 'scan', 'archive', 'send'], [], 51_200, 512],
    ['old-faithful', ['archive'], [], 1_024, 512],
    ['superbank', ['archive'], ['getTransactionsForAddress'], 1_048_576, 512],
    ['cloudbreak', ['state', 'scan'], ['getTokenAccountsByMint'], undefined, 100],
    ['das', ['assets'], [], undefined, 512],
  ])('%p', (profile, lanes, methods, bodyBytesMax, connectionsMax) => {
    const expected = { lanes, methods, bodyBytesMax, connectionsMax, trustsEnd: false, codings: [] };
    expect(backendOf(profile === undefined ? {} : { profile })).toMatchObject(expected);
  });

  test('and nothing that it says itself', () => {
    const rows = {
      profile: 'superbank',
      lanes: ['archive', 'state'],
      max_body_bytes: 2_048,
      trusts_end: true,
      codings: 'zstd,gzip',
    };
    expect(backendOf({ ...rows, methods: [], max_connections: 7 })).toMatchObject({
      profile: 'superbank',
      lanes: ['archive', 'state'],
      methods: [],
      bodyBytesMax: 2_048,
      connectionsMax: 7,
      trustsEnd: true,
      codings: ['zstd', 'gzip'],
    });
  });
});

test('an unknown profile is a problem that names the known ones', () => {
  const expected = 'one of agave, old-faithful, superbank, cloudbreak, das';
  expect(backendOf({ profile: 'geth' })).toMatchObject([{ key: 'backends[0].profile', expected }]);
});

describe('lanes', () => {
  test.each([
    ['old-faithful', ['state', 'archive'], 'only lanes that old-faithful serves: archive'],
    ['superbank', ['archive', 'send'], 'only lanes that superbank serves: archive, state'],
    ['cloudbreak', ['archive'], 'only lanes that cloudbreak serves: state, scan'],
    ['das', ['assets', 'state'], 'only lanes that das serves: assets'],
  ])('that %s serves nothing of are a problem: %p', (profile, lanes, expected) => {
    expect(backendOf({ profile, lanes })).toMatchObject([
      { key: 'backends[0].lanes', found: JSON.stringify(lanes), expected },
    ]);
  });

  test('may be none only where methods are named', () => {
    expect(backendOf({ lanes: [] })).toMatchObject([
      { key: 'backends[0].lanes', found: '[]', expected: 'at least one lane or method' },
    ]);
    expect(backendOf({ lanes: [], methods: ['getPriorityFeeEstimate'] })).toMatchObject({ lanes: [] });
  });
});
