import { getBase58Encoder, type Address } from '@solana/kit';
import type { Keypair } from '../genesis/keypair.ts';
import { addressBytes } from './address.ts';
import { SYSTEM_PROGRAM } from './known-address.ts';

const TRANSFER = 2;
const base58 = getBase58Encoder();

/** The wire bytes of a signed transfer of lamports from `from`, as a legacy transaction. */
export function transferWire(from: Keypair, to: Address, lamports: bigint, blockhash: string): Uint8Array {
  const data = new Uint8Array(12);
  const view = new DataView(data.buffer);
  view.setUint32(0, TRANSFER, true);
  view.setBigUint64(4, lamports, true);
  const isToSelf = to === from.address;
  const keys = isToSelf ? [from.address, SYSTEM_PROGRAM] : [from.address, to, SYSTEM_PROGRAM];
  const message = Buffer.concat([
    Uint8Array.of(1, 0, 1, keys.length),
    ...keys.map(addressBytes),
    new Uint8Array(base58.encode(blockhash)),
    Uint8Array.of(1, keys.length - 1, 2, 0, isToSelf ? 0 : 1, data.length),
    data,
  ]);
  return Buffer.concat([Uint8Array.of(1), from.sign(message), message]);
}
