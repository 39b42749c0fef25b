import { address, type Address } from '@solana/kit';
import { RENT_EXEMPT_EPOCH, type AccountState } from '../chain/account.ts';
import { LOADER_V4, NATIVE_LOADER, SYSTEM_PROGRAM } from '../chain/known-address.ts';
import type { GenesisProgram } from './programs.ts';
import { faucetKeypair, upgradeAuthorityKeypair } from './keypair.ts';
import { formAt, programAccounts, type RentMinimum } from './program-accounts.ts';

/** The slot in which a new localnet begins. Its features are active from 447,552,000 on. */
export const GENESIS_SLOT = 450_000_000n;

const FAUCET_LAMPORTS = 500_000_000_000_000_000n;

/** The accounts of a new localnet, in an order in which they can be written. */
export async function genesisAccounts(
  programs: readonly GenesisProgram[],
  rentMinimum: RentMinimum,
): Promise<(readonly [Address, AccountState])[]> {
  const from = { genesisSlot: GENESIS_SLOT, authority: upgradeAuthorityKeypair().address, rentMinimum };
  const ofPrograms = await Promise.all(
    programs.map((program, index) => programAccounts(address(program.program_id), formAt(index), from)),
  );
  return [
    [faucetKeypair().address, systemAccount(FAUCET_LAMPORTS)],
    // LiteSVM runs no loader v4; without its account, a call of one of its programs would abort the process.
    [
      LOADER_V4,
      {
        ...systemAccount(1n),
        data: new TextEncoder().encode('loader_v4'),
        owner: NATIVE_LOADER,
        executable: true,
      },
    ],
    ...ofPrograms.flat(),
  ];
}

function systemAccount(lamports: bigint): AccountState {
  return {
    lamports,
    data: new Uint8Array(),
    owner: SYSTEM_PROGRAM,
    executable: false,
    rentEpoch: RENT_EXEMPT_EPOCH,
  };
}
