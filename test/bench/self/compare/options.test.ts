import { describe, expect, test } from 'bun:test';
import { HELP, optionsFrom } from '../../../../bench/self/compare/options.ts';
import { needsOf, SCENARIOS } from '../../../../bench/self/compare/scenarios.ts';

describe('the arguments of bench/compare', () => {
  test('without any, everything is timed', () => {
    const parsed = optionsFrom([]);
    expect(parsed).toMatchObject({ kind: 'run', options: { refs: [], rounds: 7, seconds: 2, priority: 0 } });
    expect(parsed.kind === 'run' && parsed.options.scenarios).toEqual(SCENARIOS.map(({ name }) => name));
    expect(parsed.kind === 'run' && parsed.options.subjects).toContain('haproxy');
  });

  test('names are taken in the order of the report', () => {
    const parsed = optionsFrom(['--only', 'batch,small', '--subjects', 'sluice, nginx']);
    expect(parsed).toMatchObject({
      options: { scenarios: ['small', 'batch'], subjects: ['nginx', 'sluice'] },
    });
  });

  test('two commits are timed without peers, unless peers are named', () => {
    expect(optionsFrom(['a', 'b'])).toMatchObject({ options: { refs: ['a', 'b'], subjects: ['sluice'] } });
    expect(optionsFrom(['a', 'b', '--subjects', 'nginx,sluice'])).toMatchObject({
      options: { subjects: ['nginx', 'sluice'] },
    });
  });

  test.each([
    [['--only', 'smal'], '"smal"'],
    [['--subjects', ''], '""'],
    [['--rounds', '0'], '--rounds'],
    [['--seconds', 'x'], '--seconds'],
    [['--speed', '1'], '--speed'],
    [['a'], 'two commits'],
    [['a', 'b', '--sluice', 'c'], '--sluice'],
  ])('%p is refused', (args, part) => {
    const parsed = optionsFrom(args);
    expect(parsed.kind === 'wrong' && parsed.sentence).toContain(part);
  });

  test('the help fits a screen', () => {
    expect(optionsFrom(['--help', 'a'])).toEqual({ kind: 'help' });
    expect(HELP.split('\n').length).toBeLessThanOrEqual(24);
    expect(HELP.split('\n').every((line) => line.length <= 110)).toBe(true);
  });
});

test('keys and backends are made for the scenarios that are timed', () => {
  const named = (name: string) => SCENARIOS.filter((scenario) => scenario.name === name);
  expect(needsOf(named('small'))).toEqual({ keys: 1, backends: 1 });
  expect(needsOf([...named('keys'), ...named('backends')])).toEqual({ keys: 100_000, backends: 16 });
});
