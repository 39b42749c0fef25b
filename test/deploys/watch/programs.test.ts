import { expect, test } from 'bun:test';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { createBlockTimeStore } from '../../../deploys/watch/block-time.ts';
import { createProgramList, createReadings } from '../../../deploys/watch/readings.ts';
import type { WatchedProgram } from '../../../deploys/watch/watched.ts';
import { addressOf } from '../../fakes/chain.ts';
import { opened } from '../../started/gateway.ts';

const [one, two, three, four] = ['one', 'two', 'three', 'four'].map(addressOf) as [
  never,
  never,
  never,
  never,
]; // four
const authority = addressOf('authority');
const WATCHED = [
  { address: one, label: 'Raydium AMM' },
  { address: two, label: 'Orca' },
  { address: three, label: 'Raydium CLMM' },
  { address: four, label: 'Serum' },
] as readonly WatchedProgram[]; // no more of them is read

function started() {
  const store = opened(':memory:', DEPLOYS_MIGRATIONS);
  const programs = new Map([
    [one, { status: 'upgradeable', deploySlot: 5n, upgradeAuthority: authority } as const],
    [two, { status: 'frozen', deploySlot: 6n } as const],
    [three, { status: 'missing' } as const],
  ]);
  createReadings(store, () => undefined).save({ reading: { contextSlot: 9n, programs }, checkedAtMs: 1 });
  createBlockTimeStore(store).save(5n, 1_700_000_000);
  const list = createProgramList(store, WATCHED);
  return {
    list: (wish: Parameters<typeof list>[0]) => list(wish, 1_700_000_060_000),
    [Symbol.dispose]: () => store.close(),
  };
}
const names = (programs: readonly { label: string }[]) => programs.map(({ label }) => label);

test('every watched program is told with its status, slot, age and authority, in the order of the list', () => {
  using s = started();
  expect(s.list({})).toEqual([
    {
      programId: one,
      label: 'Raydium AMM',
      status: 'upgradeable',
      deploySlot: 5,
      deployedAtMs: 1_700_000_000_000,
      ageMs: 60_000,
      authority,
    },
    {
      programId: two,
      label: 'Orca',
      status: 'frozen',
      deploySlot: 6,
      deployedAtMs: undefined,
      ageMs: undefined,
      authority: undefined,
    },
    expect.objectContaining({ label: 'Raydium CLMM', status: 'missing', deploySlot: undefined }),
    expect.objectContaining({ label: 'Serum', status: undefined }),
  ] as never); // matchers stand for whole members
});
test('programs are found by a part of their label or address, and by their status', () => {
  using s = started();
  expect(names(s.list({ search: 'rayDIUM' }))).toEqual(['Raydium AMM', 'Raydium CLMM']);
  expect(names(s.list({ search: String(two).slice(3, 20).toLowerCase() }))).toEqual(['Orca']);
  expect(names(s.list({ status: 'frozen' }))).toEqual(['Orca']);
  expect(names(s.list({ search: 'raydium', status: 'missing' }))).toEqual(['Raydium CLMM']);
  expect(s.list({ search: 'nothing' })).toEqual([]);
});
