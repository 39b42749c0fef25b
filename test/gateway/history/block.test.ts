import { describe, expect, test } from 'bun:test';
import { type Missing, moreCertain } from '../../../gateway/history/transaction.ts';
import type { ReplyClass } from '../../../gateway/history/tiers.ts';
import { timeOf } from '../../fakes/history.ts';
import { caller, chainOf, fakesOf, probed } from './world.ts';

const history = chainOf(1);

const fakes = fakesOf(history);
const hot = fakes.node(50, 90);
const faithful = fakes.faithful(0, 2);
const superbank = fakes.superbank(0, 80);

const node = probed(hot.url, 'agave', 50, 90);
const withFaithful = [node, probed(faithful.url, 'old-faithful', 1, 59)];
const withSuperbank = [node, probed(superbank.url, 'superbank', 0, 80)];
const asked = () => [hot, faithful, superbank].map(({ seen }) => seen.length);
const { ask, text } = caller();

describe('the tier that should have the slot is asked first', () => {
  test('the live node from its floor on, the archive below it', async () => {
    const slot = history.slots.find((each) => each >= 50);
    expect(await ask(withFaithful, 'getBlockTime', [slot])).toBe(timeOf(slot ?? 0));
    expect(asked()).toEqual([1, 0, 0]);
    expect(await ask(withFaithful, 'getBlock', [1])).toMatchObject({ blockhash: 'b1' });
    expect(asked()).toEqual([1, 1, 0]);
  });

  test('the live node while its floor is not known, and the archive then', async () => {
    const unprobed = [probed(hot.url, 'agave'), probed(faithful.url, 'old-faithful')];
    expect(await ask(unprobed, 'getBlock', [1])).toMatchObject({ blockhash: 'b1' });
    expect(asked()).toEqual([1, 1, 0]);
  });

  test('the other one when it fails', async () => {
    faithful.state.epochs = [1, 2];
    hot.state.held = { floor: 10, top: 90 };
    const slot = history.slots.find((each) => each >= 10);
    expect(await ask(withFaithful, 'getBlock', [slot])).toMatchObject({ blockhash: `b${slot}` });
    expect(asked()).toEqual([1, 1, 0]);
    faithful.state.epochs = [0, 2];
    hot.state.held = { floor: 50, top: 90 };
  });
});

test('a member that an archive does not know is kept from it, every other byte is not', async () => {
  const params = '[ 1 , {"foo":1,"rewards" : false,"minContextSlot":5,"encoding":"js\\u006fn"} ]';
  expect(await ask(withSuperbank, 'getBlock', params)).toMatchObject({ blockhash: 'b1' });
  expect(superbank.seen[0]?.text).toContain('"params":[ 1 , {"rewards" : false,"encoding":"js\\u006fn"} ]}');
});

test.each([['[]'], ['["1"]'], ['[1.5]'], ['{"slot":1}']])(
  "the node's own words are the answer to %s",
  async (params) => {
    await text(withSuperbank, 'getBlock', params);
    expect(hot.seen[0]?.text).toContain(`"params":${params}}`);
  },
);

const NULL: ReplyClass = { kind: 'null' };
const NONE: ReplyClass = { kind: 'unreachable' };
const error = (code: number): ReplyClass => ({ kind: 'lacking', code });

const BLOCK: Missing = { isTime: false, isNew: false, isBelow: false, mayBeArchived: true };
const NEW: Missing = { ...BLOCK, isNew: true };
const TIME: Missing = { ...BLOCK, isTime: true };
const OLD: Missing = { ...BLOCK, isBelow: true };
const NOWHERE: Missing = { ...OLD, mayBeArchived: false };

test.each([
  ['what was skipped or lost stays ambiguous', error(-32007), error(-32009), BLOCK, 'live'],
  ['what was skipped or lost stays so without an archive', error(-32007), NONE, BLOCK, 'live'],
  ['what was cleaned up is skipped for good in the archive', error(-32001), error(-32009), BLOCK, 'archive'],
  ['what is not there is skipped for good in the archive', error(-32004), error(-32009), BLOCK, 'archive'],
  ['a slot that is not there yet is not skipped', error(-32004), error(-32009), NEW, 'live'],
  ['a block not written yet is not skipped', error(-32014), error(-32009), BLOCK, 'live'],
  ['what was cleaned up may be in an archive that is away', error(-32001), NONE, BLOCK, 'unavailable'],
  ['what is skipped or lost below the floor too', error(-32007), NONE, OLD, 'unavailable'],
  ['what a node without history lacks too', error(-32011), NONE, BLOCK, 'unavailable'],
  ['what is not there below the floor too', error(-32004), NONE, OLD, 'unavailable'],
  ['what an archive had no time to look for too', error(-32001), error(-32000), OLD, 'unavailable'],
  ['what was cleaned up stays so where no archive may have it', error(-32001), NONE, NOWHERE, 'live'],
  ['a slot above the tip stays so without an archive', error(-32004), NONE, NEW, 'live'],
  ['a null gives way to skipped', NULL, error(-32009), BLOCK, 'archive'],
  ['a time of null stays', NULL, error(-32009), TIME, 'live'],
  ['a null without an archive is no answer', NULL, NONE, BLOCK, 'unavailable'],
  ['a time of null without an archive is no answer', NULL, NONE, TIME, 'unavailable'],
  ['without a live node skipped is skipped', NONE, error(-32009), BLOCK, 'archive'],
  ['without a live node a new slot is not skipped', NONE, error(-32009), NEW, 'live'],
  ["without a live node the archive's null says nothing", NONE, NULL, BLOCK, 'live'],
] as const)('%s', (_, hot, archive, missing, choice) => {
  expect(moreCertain(hot, archive, missing)).toBe(choice);
});
