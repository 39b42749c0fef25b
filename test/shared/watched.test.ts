import { expect, test } from 'bun:test';
import builtIn from '../../shared/programs.json';
import { PROGRAMS_MAX, watchedFrom } from '../../shared/watched.ts';
import { addressOf } from '../fakes/chain.ts';

const [one, two] = [addressOf('one'), addressOf('two')];
const linesOf = (json: unknown) => {
  const watched = watchedFrom(json);
  return watched.kind === 'problems' ? watched.lines : [];
};

test('the built-in list has no problem and about 115 programs (§3)', () => {
  const watched = watchedFrom(builtIn);
  expect(watched.kind === 'watched' && watched.programs.length).toBe(115);
});

test('a list keeps its order, and members it does not know are passed over', () => {
  const json = [one, two].map((address) => ({
    program_id: address,
    label: address.slice(0, 9),
    kind: 'amm',
  }));
  const programs = [one, two].map((address) => ({ address, label: address.slice(0, 9) }));
  expect(watchedFrom(json)).toEqual({ kind: 'watched', programs });
});

test('every problem of a list is told at once', () => {
  const lines = linesOf([
    { program_id: 'abc', label: '' },
    { program_id: one, label: 'One' },
    { program_id: one, label: ' padded ' },
    { label: 7 },
    null,
  ]);
  expect(lines).toEqual([
    '[0].program_id: found "abc", expected a base58 address of 32 bytes',
    '[0].label: found "", expected a name without leading or trailing spaces',
    '[2].label: found " padded ", expected a name without leading or trailing spaces',
    `[2].program_id: ${one} is in the list already, at [1]`,
    '[3].program_id: found nothing, expected a base58 address of 32 bytes',
    '[3].label: found 7, expected a name without leading or trailing spaces',
    '[4].program_id: found nothing, expected a base58 address of 32 bytes',
    '[4].label: found nothing, expected a name without leading or trailing spaces',
  ]);
});

test.each<[string, object, number]>([
  ['an address short of 32 bytes', { program_id: '1'.repeat(31) }, 1],
  ['a letter that base58 leaves out', { program_id: `${'1'.repeat(31)}0` }, 1],
  ['a label of 100 characters', { label: 'x'.repeat(100) }, 0],
  ['a label of 101 characters', { label: 'x'.repeat(101) }, 1],
  ['a label with a line break: labels stand in logs and tables', { label: 'a\nb' }, 1],
])('%s: %3$i problems', (_, given, problems) => {
  expect(linesOf([{ program_id: one, label: 'One', ...given }])).toHaveLength(problems);
});

test.each([
  [PROGRAMS_MAX, 'watched'],
  [PROGRAMS_MAX + 1, 'problems'],
])('a list of %i programs is %s', (count, kind) => {
  const json = Array.from({ length: count }, (_, i) => ({ program_id: addressOf(`${i}`), label: `${i}` }));
  expect(watchedFrom(json).kind).toBe(kind as 'watched'); // the table's literal
});

test('nothing, and an empty list, in the place of a list is one problem', () => {
  for (const json of [undefined, []]) expect(linesOf(json)).toHaveLength(1);
});
