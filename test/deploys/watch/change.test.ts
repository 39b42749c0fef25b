import type { Address } from '@solana/kit';
import { expect, test } from 'bun:test';
import fc from 'fast-check';
import {
  deploysBetween,
  implausibleIn,
  type ProgramState,
  type Reading,
  seenAfter,
} from '../../../deploys/watch/change.ts';
import { addressOf } from '../../fakes/chain.ts';

const program = addressOf('program');
const upgradeAuthority = addressOf('authority');
const at = (deploySlot: bigint): ProgramState => ({ status: 'upgradeable', deploySlot, upgradeAuthority });
const frozen = (deploySlot: bigint): ProgramState => ({ status: 'frozen', deploySlot });
const reading = (...states: [typeof program, ProgramState][]): Reading => ({
  contextSlot: 100n,
  programs: new Map(states),
});
const MISSING: ProgramState = { status: 'missing' };

test('over any run of readings every slot a program reaches is found once, in rising order, whoever may upgrade it (§4.1 program.upgraded)', () => {
  const slot = fc.bigInt({ min: 0n, max: 30n });
  const states = fc.array(fc.oneof(fc.constant(MISSING), slot.map(at), slot.map(frozen)), { maxLength: 30 });
  fc.assert(
    fc.property(states, (run) => {
      let seen = seenAfter(new Map(), reading());
      const announced: bigint[] = [];
      let highest: bigint | undefined;
      const wanted: bigint[] = [];
      for (const state of run) {
        const next = reading([program, state]);
        announced.push(...deploysBetween(seen, next).map(({ deploySlot }) => deploySlot));
        seen = seenAfter(seen, next);
        if (!('deploySlot' in state)) continue;
        if (highest !== undefined && state.deploySlot > highest) wanted.push(state.deploySlot);
        highest = highest === undefined || state.deploySlot > highest ? state.deploySlot : highest;
      }
      expect(announced).toEqual(wanted);
    }),
  );
});

/** `present` programs that are there, then `missing` ones. */
function readingOf(present: number, missing: number): Reading {
  const states = Array.from({ length: present + missing }, (_, i): [Address, ProgramState] => [
    addressOf(`program ${i}`),
    i < present ? { status: 'other_loader' } : MISSING,
  ]);
  return { contextSlot: 1n, programs: new Map(states) };
}

test.each([
  ['all of 115', readingOf(115, 0), readingOf(0, 115), { vanished: 115, present: 115 }],
  ['58 of 115', readingOf(115, 0), readingOf(57, 58), { vanished: 58, present: 115 }],
  ['nine of nine', readingOf(9, 0), readingOf(0, 9), undefined],
  ['ten of twenty', readingOf(20, 0), readingOf(10, 10), undefined],
  ['ten of nineteen, beside others', readingOf(19, 96), readingOf(9, 106), { vanished: 10, present: 19 }],
  ['none of those that were missing before', readingOf(0, 115), readingOf(0, 115), undefined],
])('%s vanish: believed unless it is ten and more than half', (_, before, after, expected) => {
  expect(implausibleIn(before.programs, after)).toEqual(expected);
});
