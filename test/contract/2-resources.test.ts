import { Value } from '@sinclair/typebox/value';
import { FormatRegistry } from '@sinclair/typebox';
import { beforeAll, expect, test } from 'bun:test';
import { ProgramsAnswer } from '../../deploys/api/schema.ts';
import {
  addressOf,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programV4Bytes,
  SYSTEM,
} from '../fakes/chain.ts';
import { AUTHORITY, programsOf, startDeploys, watchedOf } from '../deploys/started.ts';

beforeAll(() => FormatRegistry.Set('date-time', (text) => !Number.isNaN(Date.parse(text))));

test('an upgradeable program has every field and no other, with the block time of its deploy (§3)', async () => {
  await using deploys = startDeploys(watchedOf('Raydium'));
  deploys.chain.deploy(addressOf('Raydium'), 900, AUTHORITY);
  deploys.chain.blockTimes.set(900, 1_700_000_000);
  await deploys.clock.advance(412);
  await deploys.watch();
  await deploys.blockTimes(1);
  const answer: unknown = await (await deploys.get()).json();
  expect(answer).toEqual({
    checked_at: '2026-11-20T00:00:00.412Z',
    programs: [
      {
        program_id: addressOf('Raydium'),
        label: 'Raydium',
        status: 'upgradeable',
        upgrade_authority: AUTHORITY,
        deploy_slot: 900,
        deployed_at: '2023-11-14T22:13:20Z',
      },
    ],
  });
  expect([...Value.Errors(ProgramsAnswer, answer)]).toEqual([]);
  expect(Value.Check(ProgramsAnswer, { ...Object(answer), extra: 1 })).toBe(false);
});

const program = addressOf('program');
type Chain = ReturnType<typeof startDeploys>['chain'];
const owned = (owner: string, data: Uint8Array) => (chain: Chain) =>
  void chain.accounts.set(program, { owner, data });

test.each([
  ['has an upgrade authority', (chain) => chain.deploy(program, 9, AUTHORITY), 'upgradeable', AUTHORITY],
  ['lost its upgrade authority', (chain) => chain.deploy(program, 9), 'frozen', null],
  ['is deployed on loader v4', owned(LOADER_V4, programV4Bytes(9, AUTHORITY, 1)), 'upgradeable', AUTHORITY],
  ['is retracted on loader v4', owned(LOADER_V4, programV4Bytes(9, AUTHORITY, 0)), 'upgradeable', AUTHORITY],
  ['is finalized on loader v4', owned(LOADER_V4, programV4Bytes(9, AUTHORITY, 2)), 'frozen', null],
  ['has a loader without upgrades', owned(LOADER_V2, Buffer.from('\x7fELF')), 'other_loader', null],
  ['has no account', () => {}, 'missing', null],
  ['has no ProgramData account', owned(LOADER_V3, programBytes(addressOf('nowhere'))), 'missing', null],
  ['is a balance at a closed address', owned(SYSTEM, Buffer.alloc(0)), 'missing', null],
] as [string, (chain: Chain) => void, string, string | null][])(
  'a program that %s has that status (§3.1)',
  async (_, arrange, status, upgrade_authority) => {
    await using deploys = startDeploys([{ address: program, label: 'Program' }]);
    arrange(deploys.chain);
    await deploys.watch();
    const [record] = await programsOf(await deploys.get());
    const deploy_slot = status === 'upgradeable' || status === 'frozen' ? 9 : null;
    expect(record).toMatchObject({ status, upgrade_authority, deploy_slot, deployed_at: null });
  },
);
