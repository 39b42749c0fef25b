/*
 * The accounts of the watched programs at genesis. Most are upgradeable; some places of the list are given to the
 * other things that can be found at a program's address, so that every status of the specification's 3.1 occurs.
 */
import { createHash } from 'node:crypto';
import { getProgramDerivedAddress, type Address } from '@solana/kit';
import { RENT_EXEMPT_EPOCH, type AccountState } from '../chain/account.ts';
import { addressBytes } from '../chain/address.ts';
import { LOADER_V2, LOADER_V3, LOADER_V4 } from '../chain/known-address.ts';
import { noopElf } from './noop-elf.ts';

/** What stands at a program's address on a new localnet. */
export type ProgramForm =
  'upgradeable' | 'frozen' | 'loader-v2' | 'loader-v4' | 'no-account' | 'no-program-data';

/** Rent for an account of so many bytes. */
export type RentMinimum = (bytes: number) => bigint;

const DEPLOYS_WITHIN_SLOTS = 86_400_000n; // 400 days before genesis
const DEPLOYS_UNTIL_SLOTS = 10_000n; // none in the last hour: a new deploy is then a real one
const PADDING_MAX = 1_024;
const PROGRAM_DATA_HEADER_BYTES = 45;
const LOADER_V4_HEADER_BYTES = 48;
const LOADER_V4_DEPLOYED = 1n;

/** The form of the program at a place of the list. */
export function formAt(index: number): ProgramForm {
  if (index === 17) return 'loader-v4';
  if (index === 33) return 'no-account';
  if (index === 61) return 'no-program-data';
  if (index % 41 === 11) return 'loader-v2';
  if (index % 23 === 5) return 'frozen';
  return 'upgradeable';
}

/** The slot, before `genesisSlot`, in which a program was last deployed. */
export function deploySlotOf(program: Address, genesisSlot: bigint): bigint {
  const spread = DEPLOYS_WITHIN_SLOTS - DEPLOYS_UNTIL_SLOTS;
  return genesisSlot - DEPLOYS_UNTIL_SLOTS - (numberFrom(program) % spread);
}

/** The address of a program's ProgramData account under the upgradeable loader. */
export async function programDataAddressOf(program: Address): Promise<Address> {
  const [derived] = await getProgramDerivedAddress({
    programAddress: LOADER_V3,
    seeds: [addressBytes(program)],
  });
  return derived;
}

/** The accounts of one program, ProgramData first. */
export async function programAccounts(
  program: Address,
  form: ProgramForm,
  from: Readonly<{ genesisSlot: bigint; authority: Address; rentMinimum: RentMinimum }>,
): Promise<(readonly [Address, AccountState])[]> {
  const elf = noopElf(Number(numberFrom(program) % BigInt(PADDING_MAX)));
  const deploySlot = deploySlotOf(program, from.genesisSlot);
  const make = (owner: Address, data: Uint8Array, executable: boolean): AccountState => {
    return { lamports: from.rentMinimum(data.length), data, owner, executable, rentEpoch: RENT_EXEMPT_EPOCH };
  };
  if (form === 'no-account') return [];
  if (form === 'loader-v2') return [[program, make(LOADER_V2, elf, true)]];
  if (form === 'loader-v4')
    return [[program, make(LOADER_V4, loaderV4Data(deploySlot, from.authority, elf), true)]];
  const programDataAddress = await programDataAddressOf(program);
  const pointer = [program, make(LOADER_V3, programData(programDataAddress), true)] as const;
  if (form === 'no-program-data') return [pointer];
  const authority = form === 'frozen' ? undefined : from.authority;
  return [[programDataAddress, make(LOADER_V3, programDataData(deploySlot, authority, elf), false)], pointer];
}

/** The 36 bytes of a Program account: tag 2, and where its ProgramData is. */
function programData(programDataAddress: Address): Uint8Array {
  const data = new Uint8Array(36);
  data[0] = 2;
  data.set(addressBytes(programDataAddress), 4);
  return data;
}

/** A ProgramData account: tag 3, slot, optional authority, ELF. */
function programDataData(slot: bigint, authority: Address | undefined, elf: Uint8Array): Uint8Array {
  const data = new Uint8Array(PROGRAM_DATA_HEADER_BYTES + elf.length);
  data[0] = 3;
  new DataView(data.buffer).setBigUint64(4, slot, true);
  if (authority !== undefined) {
    data[12] = 1;
    data.set(addressBytes(authority), 13);
  }
  data.set(elf, PROGRAM_DATA_HEADER_BYTES);
  return data;
}

/** A loader-v4 program: slot, authority, status, ELF. */
function loaderV4Data(slot: bigint, authority: Address, elf: Uint8Array): Uint8Array {
  const data = new Uint8Array(LOADER_V4_HEADER_BYTES + elf.length);
  const view = new DataView(data.buffer);
  view.setBigUint64(0, slot, true);
  data.set(addressBytes(authority), 8);
  view.setBigUint64(40, LOADER_V4_DEPLOYED, true);
  data.set(elf, LOADER_V4_HEADER_BYTES);
  return data;
}

function numberFrom(program: Address): bigint {
  return createHash('sha256').update(addressBytes(program)).digest().readBigUInt64LE(0);
}
