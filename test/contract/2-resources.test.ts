import { Value } from '@sinclair/typebox/value';
import { FormatRegistry } from '@sinclair/typebox';
import { beforeAll, expect, test } from 'bun:test';
import { ProgramsAnswer } from '../../deploys/api/schema.ts';
import { addressOf, LOADER_V2 } from '../fakes/chain.ts';
import { AUTHORITY, programsOf, startDeploys, watchedOf } from '../deploys/started.ts';

beforeAll(() => FormatRegistry.Set('date-time', (text) => !Number.isNaN(Date.parse(text))));

test('an upgradeable program has every field, with the block time of its deploy (spec 2.1)', async () => {
  await using deploys = startDeploys(watchedOf('Raydium'));
  deploys.chain.deploy(addressOf('Raydium'), 900, AUTHORITY);
  deploys.chain.blockTimes.set(900, 1_700_000_000);
  await deploys.watch();
  await deploys.blockTimes(1);
  expect(await programsOf(await deploys.get())).toEqual([
    {
      program_id: addressOf('Raydium'),
      label: 'Raydium',
      status: 'upgradeable',
      upgrade_authority: AUTHORITY,
      deploy_slot: 900,
      deployed_at: '2023-11-14T22:13:20Z',
    },
  ]);
});

test('upgrade_authority, deploy_slot and deployed_at are null when there is none (spec 2.1)', async () => {
  await using deploys = startDeploys(watchedOf('Frozen', 'Gone', 'Old'));
  deploys.chain.deploy(addressOf('Frozen'), 900);
  deploys.chain.accounts.set(addressOf('Old'), { owner: LOADER_V2, data: Buffer.alloc(4) });
  await deploys.watch();
  const nothing = { upgrade_authority: null, deploy_slot: null, deployed_at: null };
  expect(await programsOf(await deploys.get())).toEqual([
    { program_id: addressOf('Frozen'), label: 'Frozen', status: 'frozen', ...nothing, deploy_slot: 900 },
    { program_id: addressOf('Gone'), label: 'Gone', status: 'missing', ...nothing },
    { program_id: addressOf('Old'), label: 'Old', status: 'other_loader', ...nothing },
  ]);
});

test('checked_at is in UTC with milliseconds and is when the programs were last read (spec 2.2)', async () => {
  await using deploys = startDeploys(watchedOf('Raydium'));
  await deploys.clock.advance(412);
  await deploys.watch();
  expect(await (await deploys.get()).json()).toMatchObject({ checked_at: '2026-11-20T00:00:00.412Z' });
});

test('programs stand by deploy slot, newest first; those without one last, by label (spec 2.2)', async () => {
  const labels = ['Old', 'New', 'No slot B', 'Twin B', 'Twin A', 'No slot A'];
  await using deploys = startDeploys(watchedOf(...labels));
  deploys.chain.deploy(addressOf('Old'), 5);
  deploys.chain.deploy(addressOf('New'), 999, AUTHORITY);
  deploys.chain.deploy(addressOf('Twin A'), 50);
  deploys.chain.deploy(addressOf('Twin B'), 50, AUTHORITY);
  await deploys.watch();
  const programs = await programsOf(await deploys.get());
  expect(programs.map(({ label }) => label)).toEqual([
    'New',
    'Twin A',
    'Twin B',
    'Old',
    'No slot A',
    'No slot B',
  ]);
});

test('the answer has exactly the fields of the specification, and nothing else (spec 2.1, 2.2)', async () => {
  await using deploys = startDeploys(watchedOf('Raydium', 'Gone'));
  deploys.chain.deploy(addressOf('Raydium'), 900, AUTHORITY);
  await deploys.watch();
  const answer: unknown = await (await deploys.get()).json();
  expect([...Value.Errors(ProgramsAnswer, answer)]).toEqual([]);
  expect(Value.Check(ProgramsAnswer, { ...Object(answer), extra: 1 })).toBe(false);
});
