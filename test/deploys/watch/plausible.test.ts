import type { Address } from '@solana/kit';
import { expect, test } from 'bun:test';
import { implausibleIn, type ProgramState, type Reading } from '../../../deploys/watch/change.ts';
import { addressOf } from '../../fakes/chain.ts';

/** `present` programs that are there, then `missing` ones. */
function reading(
  present: number,
  missing: number,
  there: ProgramState = { status: 'other_loader' },
): Reading {
  const states = Array.from({ length: present + missing }, (_, i): [Address, ProgramState] => [
    addressOf(`program ${i}`),
    i < present ? there : { status: 'missing' },
  ]);
  return { contextSlot: 1n, programs: new Map(states) };
}

test.each([
  ['all of 115', reading(115, 0), reading(0, 115), { vanished: 115, present: 115 }],
  ['58 of 115', reading(115, 0), reading(57, 58), { vanished: 58, present: 115 }],
  ['57 of 115', reading(115, 0), reading(58, 57), undefined],
  ['ten of ten', reading(10, 0), reading(0, 10), { vanished: 10, present: 10 }],
  ['nine of nine', reading(9, 0), reading(0, 9), undefined],
  ['ten of twenty', reading(20, 0), reading(10, 10), undefined],
  ['ten of the nineteen that were there', reading(19, 96), reading(9, 106), { vanished: 10, present: 19 }],
  ['none of those that were missing before', reading(0, 115), reading(0, 115), undefined],
  ['none, when those that were missing come back', reading(0, 115), reading(115, 0), undefined],
  [
    'none, when they are frozen',
    reading(115, 0),
    reading(115, 0, { status: 'frozen', deploySlot: 1n }),
    undefined,
  ],
])('%s vanish: believed unless it is ten and more than half', (_, before, after, expected) => {
  expect(implausibleIn(before.programs, after)).toEqual(expected);
});
