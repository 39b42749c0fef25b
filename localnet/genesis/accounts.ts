import { createHash } from 'node:crypto';
import { type Address, getProgramDerivedAddress } from '@solana/kit';
import { type AccountState, RENT_EXEMPT_EPOCH } from '../protocol/account.ts';
import {
  addressBytes,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  NATIVE_LOADER,
  SYSTEM_PROGRAM,
} from '../protocol/address.ts';
import { faucetKeypair, upgradeAuthorityKeypair } from '../protocol/keypair.ts';
import { epochOf } from '../protocol/slot.ts';
import { noopElf } from './noop-elf.ts';
import { validatorAccounts } from './validator.ts';

/** The slot in which a new localnet begins. Its features are active from 447,552,000 on. */
export const GENESIS_SLOT = 450_000_000n;

const FAUCET_LAMPORTS = 500_000_000_000_000_000n;

const DEPLOYS_WITHIN_SLOTS = 86_400_000n; // 400 days before genesis
const DEPLOYS_UNTIL_SLOTS = 10_000n; // none in the last hour: a new deploy is then a real one
const PADDING_MAX = 1_024;
const LOADER_V4_DEPLOYED = 1n;

type Account = readonly [Address, AccountState];

/** The accounts of a new localnet. `rentMinimum` is the rent for an account of so many bytes. */
export async function genesisAccounts(
  programs: readonly Address[],
  rentMinimum: (bytes: number) => bigint,
): Promise<readonly Account[]> {
  const authority = addressBytes(upgradeAuthorityKeypair().address);

  function account(owner: Address, executable: boolean, parts: readonly Uint8Array[], lamports?: bigint) {
    const data = new Uint8Array(Buffer.concat(parts));
    const rent = lamports ?? rentMinimum(data.length);
    return { lamports: rent, data, owner, executable, rentEpoch: RENT_EXEMPT_EPOCH };
  }

  async function programAccounts(program: Address, form: ProgramForm): Promise<readonly Account[]> {
    const number = createHash('sha256').update(addressBytes(program)).digest().readBigUInt64LE(0);
    const elf = noopElf(Number(number % BigInt(PADDING_MAX)));
    const spread = DEPLOYS_WITHIN_SLOTS - DEPLOYS_UNTIL_SLOTS;
    const deploySlot = u64(GENESIS_SLOT - DEPLOYS_UNTIL_SLOTS - (number % spread));
    if (form === 'no-account') return [];
    if (form === 'loader-v2') return [[program, account(LOADER_V2, true, [elf])]];
    // Slot, authority, status, ELF.
    if (form === 'loader-v4')
      return [[program, account(LOADER_V4, true, [deploySlot, authority, u64(LOADER_V4_DEPLOYED), elf])]];
    const seeds = [addressBytes(program)];
    const [programData] = await getProgramDerivedAddress({ programAddress: LOADER_V3, seeds });
    // A Program account: tag 2, and where its ProgramData is.
    const pointer = account(LOADER_V3, true, [Uint8Array.of(2, 0, 0, 0), addressBytes(programData)]);
    if (form === 'no-program-data') return [[program, pointer]];
    // ProgramData: tag 3, slot, optional authority, ELF.
    const owned = form === 'frozen' ? [new Uint8Array(33)] : [Uint8Array.of(1), authority];
    const code = account(LOADER_V3, false, [Uint8Array.of(3, 0, 0, 0), deploySlot, ...owned, elf]);
    return [
      [programData, code],
      [program, pointer],
    ];
  }

  const ofPrograms = await Promise.all(
    programs.map((program, index) => programAccounts(program, formAt(index))),
  );
  return [
    [faucetKeypair().address, account(SYSTEM_PROGRAM, false, [], FAUCET_LAMPORTS)],
    ...validatorAccounts(epochOf(GENESIS_SLOT), rentMinimum),
    // LiteSVM runs no loader v4; without its account, a call of one of its programs would abort the process.
    [LOADER_V4, account(NATIVE_LOADER, true, [Buffer.from('loader_v4')], 1n)],
    ...ofPrograms.flat(),
  ];
}

/** The account at a program's address on a new localnet. */
type ProgramForm = 'upgradeable' | 'frozen' | 'loader-v2' | 'loader-v4' | 'no-account' | 'no-program-data';

/**
 * The form of the program at a place of the list. Most are upgradeable; some places are given to the other things that can
 * be found at a program's address, so that every status of docs/spec.md occurs.
 */
function formAt(index: number): ProgramForm {
  if (index === 17) return 'loader-v4';
  if (index === 33) return 'no-account';
  if (index === 61) return 'no-program-data';
  if (index % 41 === 11) return 'loader-v2';
  if (index % 23 === 5) return 'frozen';
  return 'upgradeable';
}

function u64(value: bigint): Uint8Array {
  return new Uint8Array(BigUint64Array.of(value).buffer);
}
