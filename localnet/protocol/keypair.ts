import { createHash, createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { getTransferSolInstructionDataEncoder } from '@solana-program/system';
import { type Address, getBase58Encoder } from '@solana/kit';
import { addressBytes, addressOf, SYSTEM_PROGRAM } from './address.ts';

// RFC 8410: the DER prefix of an Ed25519 private key of 32 bytes.
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** An Ed25519 keypair that a seed always gives again. `privateKey` is the 32-byte seed that kit and web3.js take. */
export type Keypair = ReturnType<typeof keypairNamed>;

/** The keypair of a name: anyone can derive it, so it guards nothing outside a localnet. */
export function keypairNamed(name: string) {
  const privateKey = createHash('sha256').update(name).digest();
  const pkcs8 = Buffer.concat([PKCS8_PREFIX, privateKey]);
  const key = createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' });
  const publicDer = createPublicKey(key).export({ format: 'der', type: 'spki' });
  return {
    address: addressOf(publicDer.subarray(-32)),
    privateKey: new Uint8Array(privateKey),
    sign: (message: Uint8Array) => new Uint8Array(sign(null, message, key)),
  };
}

/** Pays every airdrop. */
export const faucetKeypair = () => keypairNamed('sluice localnet faucet');

/** May upgrade every upgradeable program of the localnet. */
export const upgradeAuthorityKeypair = () => keypairNamed('sluice localnet upgrade authority');

/** Names the account that the localnet's only validator votes with. */
export const voteKeypair = () => keypairNamed('sluice localnet vote account');

/** Owns what is staked on the localnet's only validator. */
export const stakeKeypair = () => keypairNamed('sluice localnet stake account');

/** Names the localnet's only validator. */
export const identityKeypair = () => keypairNamed('sluice localnet identity');

const base58 = getBase58Encoder();

/** The wire bytes of a signed transfer of lamports from `from`, as a legacy transaction. */
export function transferWire(from: Keypair, to: Address, lamports: bigint, blockhash: string): Uint8Array {
  const data = getTransferSolInstructionDataEncoder().encode({ amount: lamports });
  const isToSelf = to === from.address;
  const keys = isToSelf ? [from.address, SYSTEM_PROGRAM] : [from.address, to, SYSTEM_PROGRAM];
  const message = Buffer.concat([
    Uint8Array.of(1, 0, 1, keys.length),
    ...keys.map(addressBytes),
    new Uint8Array(base58.encode(blockhash)),
    Uint8Array.of(1, keys.length - 1, 2, 0, isToSelf ? 0 : 1, data.length),
    new Uint8Array(data),
  ]);
  return Buffer.concat([Uint8Array.of(1), from.sign(message), message]);
}
