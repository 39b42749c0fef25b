import { expect, test } from 'bun:test';
import {
  addressOf,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programV4Bytes,
  SYSTEM,
} from '../fakes/chain.ts';
import { AUTHORITY, programsOf, startDeploys } from '../deploys/started.ts';

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
  'a program that %s is told as such (spec 3.1)',
  async (_, arrange, status, upgrade_authority) => {
    await using deploys = startDeploys([{ address: program, label: 'Program' }]);
    arrange(deploys.chain);
    await deploys.watch();
    const [record] = await programsOf(await deploys.get());
    const deploy_slot = status === 'upgradeable' || status === 'frozen' ? 9 : null;
    expect(record).toMatchObject({ status, upgrade_authority, deploy_slot });
  },
);

test('a program changes its status from one minute to the next (spec 3.1)', async () => {
  await using deploys = startDeploys([{ address: program, label: 'Program' }]);
  deploys.chain.deploy(program, 9, AUTHORITY);
  await deploys.watch();
  deploys.chain.deploy(program, 9);
  await deploys.readAgain();
  const [record] = await programsOf(await deploys.get());
  expect(record).toMatchObject({ status: 'frozen', upgrade_authority: null, deploy_slot: 9 });
});
