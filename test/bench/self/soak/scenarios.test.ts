import { expect, test } from 'bun:test';
import { atLeast, atMost, between, said } from '../../../../bench/self/soak/finding.ts';
import { scenarios } from '../../../../bench/self/soak/scenarios.ts';

test('a figure on its bound holds, and one beyond does not', () => {
  expect([atMost('x', 3, 3).holds, atMost('x', 3.1, 3).holds, atMost('x', Number.NaN, 3).holds]).toEqual([
    true,
    false,
    false,
  ]);
  expect([atLeast('x', 3, 3).holds, atLeast('x', 2.9, 3).holds]).toEqual([true, false]);
  expect([between('x', 1, 1, 2).holds, between('x', 2.1, 1, 2).holds]).toEqual([true, false]);
  expect(between('x', 1.25, 1, 2, 1)).toMatchObject({ bounds: '1.0 - 2.0', measured: '1.3' });
  expect(said('x', '7')).toMatchObject({ bounds: '', measured: '7', holds: true });
});

test('every scenario has a name of its own', () => {
  const names = scenarios(30).map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

test.each([
  [['--only', 'no-such-scenario'], 1],
  [['--seconds', 'soon'], 2],
  [['--seconds', '5'], 2],
  [['--slowly'], 2],
])('a soak of nothing, or with a mistake, is no success: %p', async (words, code) => {
  const child = Bun.spawn([process.execPath, 'bench/self/soak.ts', ...words], {
    stdout: 'ignore',
    stderr: 'ignore',
  });
  expect(await child.exited).toBe(code);
});
