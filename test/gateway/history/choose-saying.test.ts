import { expect, test } from 'bun:test';
import { moreCertain, type Missing } from '../../../gateway/history/lookup.ts';
import type { Outcome } from '../../../gateway/history/request.ts';

const NULL: Outcome = { kind: 'null' };
const NONE: Outcome = { kind: 'unreachable' };
const error = (code: number): Outcome => ({ kind: 'lacking', code });

const BLOCK: Missing = { isTime: false, isNew: false, isBelow: false, mayBeArchived: true };
const NEW: Missing = { ...BLOCK, isNew: true };
const TIME: Missing = { ...BLOCK, isTime: true };
const OLD: Missing = { ...BLOCK, isBelow: true };
const NOWHERE: Missing = { ...OLD, mayBeArchived: false };

test.each([
  [
    'what was skipped or lost stays ambiguous (rpc.md 2.1 note 4)',
    error(-32007),
    error(-32009),
    BLOCK,
    'live',
  ],
  ['what was skipped or lost stays so without an archive', error(-32007), NONE, BLOCK, 'live'],
  ['what was cleaned up is skipped for good in the archive', error(-32001), error(-32009), BLOCK, 'archive'],
  ['what is not there is skipped for good in the archive', error(-32004), error(-32009), BLOCK, 'archive'],
  ['a slot that is not there yet is not skipped', error(-32004), error(-32009), NEW, 'live'],
  ['a block not written yet is not skipped', error(-32014), error(-32009), BLOCK, 'live'],
  [
    'what was cleaned up stays so when the archive has no such epoch',
    error(-32001),
    error(-32004),
    BLOCK,
    'live',
  ],
  ['what was cleaned up stays so against a null', error(-32001), NULL, BLOCK, 'live'],
  ['what was cleaned up may be in an archive that is away', error(-32001), NONE, OLD, 'unavailable'],
  ['what was cleaned up since the last probe too', error(-32001), NONE, BLOCK, 'unavailable'],
  ['what a node without history lacks too', error(-32011), NONE, BLOCK, 'unavailable'],
  ['what is skipped or lost below the floor too', error(-32007), NONE, OLD, 'unavailable'],
  ['what is not there below the floor too', error(-32004), NONE, OLD, 'unavailable'],
  ['what an archive had no time to look for too', error(-32001), error(-32000), OLD, 'unavailable'],
  ['what was cleaned up stays so where no archive may have it', error(-32001), NONE, NOWHERE, 'live'],
  ['a slot above the tip stays so without an archive', error(-32004), NONE, NEW, 'live'],
  ['two nulls are a null', NULL, NULL, BLOCK, 'live'],
  ['a null gives way to skipped', NULL, error(-32009), BLOCK, 'archive'],
  ['a time of null stays', NULL, error(-32009), TIME, 'live'],
  ['a null without an archive is no answer', NULL, NONE, BLOCK, 'unavailable'],
  ['a time of null without an archive is no answer', NULL, NONE, TIME, 'unavailable'],
  ['without a live node skipped is skipped', NONE, error(-32009), BLOCK, 'archive'],
  ['without a live node a new slot is not skipped', NONE, error(-32009), NEW, 'live'],
  ["without a live node the archive's null says nothing", NONE, NULL, BLOCK, 'live'],
  ['nobody answers', NONE, NONE, BLOCK, 'live'],
] as const)('%s', (_, hot, archive, missing, choice) => {
  expect(moreCertain(hot, archive, missing)).toBe(choice);
});
