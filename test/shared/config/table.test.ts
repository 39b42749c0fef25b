import { describe, expect, test } from 'bun:test';
import { integer, text } from '../../../shared/config/kinds.ts';
import { openTable, type Problem } from '../../../shared/config/table.ts';

function opened(value: unknown, env: Record<string, string> = {}) {
  const problems: Problem[] = [];
  return { table: openTable(value, 'top', env, problems), problems };
}

const number = integer(1, 9, '5');

describe('a table under reading', () => {
  test('gives the value, the fallback, or undefined and a problem', () => {
    const { table, problems } = opened({ good: 3, bad: 10 });
    expect([
      table.take('good', number),
      table.takeOr('none', number, 7),
      table.takeOr('bad', number, 8),
    ]).toEqual([3, 7, 8]);
    expect(problems).toEqual([
      { key: 'top.bad', found: '10', expected: 'a whole number from 1 to 9', example: '5' },
    ]);
  });
  test('files every key that nobody asked for, with those that exist', () => {
    const { table, problems } = opened({ a: 1, typo: 2, other: 3 });
    table.take('a', number);
    table.has('b');
    table.close();
    expect(problems.map(({ key, example }) => [key, example])).toEqual([
      ['top.typo', 'known keys: a, b'],
      ['top.other', 'known keys: a, b'],
    ]);
  });
  test('reads tables inside by their path', () => {
    const { table, problems } = opened({ in: { x: 0 }, list: [{ x: 1 }, { x: 0 }] });
    table.table('in').take('x', number);
    expect(table.tables('list').map((one) => one.take('x', number))).toEqual([1, undefined]);
    expect(problems.map(({ key }) => key)).toEqual(['top.in.x', 'top.list[1].x']);
  });
  test.each([[5], ['x'], [[]], [null]])('%j is no table', (value) => {
    const { table, problems } = opened(value);
    expect(table.take('a', number)).toBeUndefined();
    expect(problems).toHaveLength(1);
  });
  test('nothing is an empty table', () => {
    const { table, problems } = opened(undefined);
    expect([table.keys(), table.take('a', number), table.tables('b')]).toEqual([[], undefined, []]);
    expect(problems).toEqual([]);
  });
  test('a value from the environment is never shown, only its name', () => {
    const { table, problems } = opened({ a: 'env:NAME', b: 'env:OTHER' }, { NAME: 'hunter2' });
    expect(table.take('b', text('"x"'))).toBeUndefined();
    expect(table.take('a', number)).toBeUndefined();
    expect(problems.map(({ found }) => found)).toEqual(['"env:OTHER"', '"env:NAME"']);
  });
});
