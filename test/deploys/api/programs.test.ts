import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { programsAnswer } from '../../../deploys/api/programs.ts';
import type { ProgramState } from '../../../deploys/watch/change.ts';
import { addressOf } from '../../fakes/chain.ts';
import { watchedOf } from '../started.ts';

const none = () => undefined;
const answerOf = (
  states: Record<string, ProgramState>,
  timeOf: (slot: bigint) => number | undefined = none,
) =>
  programsAnswer(
    {
      reading: {
        contextSlot: 1n,
        programs: new Map(Object.entries(states).map(([label, state]) => [addressOf(label), state])),
      },
      checkedAtMs: 1_795_132_800_007,
    },
    watchedOf(...Object.keys(states)),
    new Set(),
    timeOf,
  );
const frozen = (deploySlot: bigint): ProgramState => ({ status: 'frozen', deploySlot });

test.each([
  [0, '1970-01-01T00:00:00Z'],
  [253_402_300_799, '9999-12-31T23:59:59Z'],
])('the first and the last second that can be shown: %i', (unixSeconds, iso) => {
  expect(answerOf({ A: frozen(5n) }, () => unixSeconds).programs[0]?.deployed_at).toBe(iso);
});

test('deploy_slot is an integer in JSON, also at the largest a number can hold', () => {
  const json = JSON.stringify(answerOf({ A: frozen(9_007_199_254_740_991n) }));
  expect(json).toContain('"deploy_slot":9007199254740991,');
});

test('slot 0 is a slot, and newer than none', () => {
  for (const states of [
    { A: { status: 'missing' }, B: frozen(0n) },
    { B: frozen(0n), A: { status: 'missing' } },
  ] as Record<string, ProgramState>[]) {
    const { programs } = answerOf(states, () => 1);
    expect(programs.map(({ label, deploy_slot }) => [label, deploy_slot])).toEqual([
      ['B', 0],
      ['A', null],
    ]);
  }
});

test('the order is the same for every order of the list', () => {
  const states = {
    A: frozen(1n),
    B: frozen(1n),
    C: frozen(2n),
    D: { status: 'missing' },
    E: { status: 'missing' },
  } as const;
  const entries = Object.entries<ProgramState>(states);
  fc.assert(
    fc.property(fc.shuffledSubarray(entries, { minLength: entries.length }), (shuffled) => {
      const { programs } = answerOf(Object.fromEntries(shuffled));
      expect(programs.map(({ label }) => label)).toEqual(['C', 'A', 'B', 'D', 'E']);
    }),
  );
});

test('programs with one label stand by address', () => {
  const reading = { contextSlot: 1n, programs: new Map() };
  const watched = ['x', 'y', 'z'].map((name) => ({ address: addressOf(name), label: 'Same' }));
  const { programs } = programsAnswer({ reading, checkedAtMs: 0 }, watched, new Set(), none);
  const ids = programs.map(({ program_id }) => program_id);
  expect(ids).toEqual(watched.map(({ address }) => String(address)).toSorted());
});
