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

test('the first and the last second are shown, and the largest slot as an integer', () => {
  for (const [unixSeconds, iso] of [
    [0, '1970-01-01T00:00:00Z'],
    [253_402_300_799, '9999-12-31T23:59:59Z'],
  ] as const)
    expect(answerOf({ A: frozen(5n) }, () => unixSeconds).programs[0]?.deployed_at).toBe(iso);
  const json = JSON.stringify(answerOf({ A: frozen(9_007_199_254_740_991n) }));
  expect(json).toContain('"deploy_slot":9007199254740991,');
});

test('the order is the same for every order of the list: slot 0 is newer than none, then labels and addresses', () => {
  const none = { status: 'missing' } as const;
  const entries: [string, ProgramState][] = [
    ['A', frozen(1n)],
    ['B', frozen(1n)],
    ['C', frozen(2n)],
    ['D', none],
    ['E', none],
    ['F', frozen(0n)],
  ];
  fc.assert(
    fc.property(fc.shuffledSubarray(entries, { minLength: entries.length }), (shuffled) => {
      const { programs } = answerOf(Object.fromEntries(shuffled));
      expect(programs.map(({ label }) => label)).toEqual(['C', 'A', 'B', 'F', 'D', 'E']);
    }),
  );
  const reading = { contextSlot: 1n, programs: new Map() };
  const watched = ['x', 'y', 'z'].map((name) => ({ address: addressOf(name), label: 'Same' }));
  const { programs } = programsAnswer({ reading, checkedAtMs: 0 }, watched, new Set(), () => undefined);
  const ids = programs.map(({ program_id }) => program_id);
  expect(ids).toEqual(watched.map(({ address }) => String(address)).toSorted());
});
