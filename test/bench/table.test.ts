import { expect, test } from 'bun:test';
import { tableOf } from '../../bench/table.ts';

test('columns are as wide as their widest cell, names to the left and figures to the right', () => {
  const rows = [
    ['way', 'MB/s', ''],
    ['direct', '4000', '1.00'],
    ['sluice', '700'],
  ];
  expect(tableOf(rows)).toBe('way     MB/s\ndirect  4000  1.00\nsluice   700');
});

test('a table without rows is empty', () => expect(tableOf([])).toBe(''));

test('a figure that is none is no NaN', () => {
  expect(tableOf([['a', 'NaN', 'NaN ms', 'BANANA']])).toBe('a  -  - ms  BANANA');
});
