import { expect, test } from 'bun:test';
import type { Coding } from '../../../shared/config/kinds.ts';
import { codingFor } from '../../../gateway/respond/compress.ts';

const BOTH = ['zstd', 'gzip'] as const;

test.each<[string | null, Coding | undefined]>([
  [null, undefined],
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['GZIP ; Q=1', 'gzip'],
  ['gzip, deflate, br, zstd', 'zstd'],
  ['gzip;q=1.0, zstd;q=0.9', 'gzip'],
  ['*', 'zstd'],
  ['*;q=0.1, zstd;q=0', 'gzip'],
  ['gzip, *;q=0', 'gzip'],
  ['identity;q=0, gzip;q=0.1', 'gzip'],
  ['identity;q=0.6, gzip;q=0.5', undefined],
  ['gzip;q=2', undefined],
  [`gzip${' '.repeat(2_000)}`, undefined],
])('a caller who accepts %p gets %p', (header, coding) => {
  expect(codingFor(header, BOTH)).toBe(coding);
});

test('a coding that is not offered is not used', () => {
  expect(codingFor('gzip, zstd;q=0.1', ['zstd'])).toBe('zstd');
  expect(codingFor('gzip', ['zstd'])).toBeUndefined();
});
