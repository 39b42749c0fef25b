import { describe, expect, test } from 'bun:test';
import programs from '../../shared/programs.json';
import { addressOf, LOADER_V2, LOADER_V3, LOADER_V4 } from '../../localnet/protocol/address.ts';
import { GENESIS_SLOT } from '../../localnet/genesis/accounts.ts';
import { upgradeAuthorityKeypair } from '../../localnet/protocol/keypair.ts';
import { alice, BEGAN_MS, object, startChain, systemAccount, list, builtWire } from './harness.ts';
import { shared } from '../started/shared.ts';
import { address, type Address } from '@solana/kit';

const ids = programs.map(({ program_id: id }) => address(id));

const net = shared(
  await startChain({ programs, accounts: [[alice.address, systemAccount(10_000_000_000n)]] }),
);

describe('the programs at genesis', () => {
  test('show every status of the specification (§3.1), deployed at different slots of the past', async () => {
    const view = net.chain.viewAt('finalized');
    const slots = new Set<bigint>();
    const forms = ids.map((id) => {
      const program = view.account(id);
      if (program === undefined) return 'no-account';
      if (program.owner !== LOADER_V3) return program.owner;
      const code = view.account(addressOf(program.data.subarray(4, 36)));
      if (code === undefined) return 'no-program-data';
      const slot = new DataView(code.data.buffer, code.data.byteOffset).getBigUint64(4, true);
      const ms = BEGAN_MS - Number(GENESIS_SLOT - slot) * 400;
      expect(net.chain.blockTimeOf(slot)).toBe(BigInt(Math.floor(ms / 1000)));
      slots.add(slot);
      if (code.data[12] !== 1) return 'frozen';
      expect(addressOf(code.data.subarray(13, 45))).toBe(upgradeAuthorityKeypair().address);
      return 'upgradeable';
    });
    const counts = Object.entries(Object.groupBy(forms, (form) => form)).map(([form, all]) => [
      form,
      all?.length,
    ]);
    expect(Object.fromEntries(counts)).toEqual({
      upgradeable: 104,
      frozen: 5,
      [LOADER_V2]: 3,
      [LOADER_V4]: 1,
      'no-account': 1,
      'no-program-data': 1,
    });
    expect([slots.size, [...slots].every((slot) => slot < GENESIS_SLOT)]).toEqual([109, true]);
  });

  test.each([
    ['upgradeable', 0, null],
    ['frozen', 5, null],
    ['of the old loader', 11, null],
    ['of loader v4, which this chain does not run', 17, { InstructionError: [0n, 'UnsupportedProgramId'] }],
    ['without an account', 33, 'ProgramAccountNotFound'],
    ['without ProgramData', 61, { InstructionError: [0n, 'UnsupportedProgramId'] }],
  ])('a program that is %s answers an invocation', async (_, index, err) => {
    const blockhash = net.blockhash();
    const wire = builtWire(alice, blockhash, [
      { program: ids[index] as Address, accounts: [], data: [1, 2] },
    ]); // within the list
    const signature = await net.send(wire);
    expect(object(list(await net.valueOf('getSignatureStatuses', [signature]))[0])['err']).toEqual(err);
  });
});
