import {
  findAssociatedTokenPda,
  getCreateAssociatedTokenIdempotentInstruction,
  getInitializeMint2Instruction,
  getMintSize,
  getMintToInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token';
import {
  getCreateAccountInstruction,
  getInitializeNonceAccountInstruction,
  getNonceSize,
  getTransferSolInstruction,
  SYSTEM_PROGRAM_ADDRESS,
} from '@solana-program/system';
import * as kit from '@solana/kit';
import { MEMO_PROGRAM } from '../../localnet/protocol/address.ts';
import { keypairNamed, transferWire } from '../../localnet/protocol/keypair.ts';
import { fundPayer, landing, send } from '../../localnet/upgrade.ts';
import { systemClock } from '../../shared/clock.ts';
import { base64 } from '../localnet/harness.ts';

const SCENE_TIMEOUT_MS = 180_000;
const POLL_MS = 100;

export const payer = keypairNamed('agave scene payer');
export const poor = keypairNamed('agave scene poor');
/** No account has this address. */
export const nobody = keypairNamed('agave scene nobody');

/** What the questions ask for, on the chain of one node. */
export type Scene = Awaited<ReturnType<typeof setScene>>;

/**
 * Puts the accounts and transactions that are asked for on a chain, through its own RPC: transfers that landed and failed,
 * a memo, a mint with a token account, a nonce account. Waits until they are finalized.
 */
export async function setScene(rpcUrl: string) {
  const signal = AbortSignal.timeout(SCENE_TIMEOUT_MS);
  const context = { rpc: kit.createSolanaRpc(rpcUrl), clock: systemClock, signal };
  const { rpc } = context;
  const [signer, mint, nonce] = await Promise.all([
    kit.createKeyPairSignerFromPrivateKeyBytes(payer.privateKey),
    kit.generateKeyPairSigner(),
    kit.generateKeyPairSigner(),
  ]);
  await fundPayer(context, payer.address);
  const rentOf = (bytes: number) => rpc.getMinimumBalanceForRentExemption(BigInt(bytes)).send();
  const landed = async (instructions: kit.Instruction[]) => {
    const signature = await send(context, signer, instructions, true);
    return { signature, ...(await landing(context, signature)) };
  };
  const memo = { programAddress: MEMO_PROGRAM, data: Buffer.from('a memo of "id", {braces} and \\') };
  const transferOf = (amount: number | bigint) =>
    getTransferSolInstruction({ source: signer, destination: poor.address, amount });
  const paid = await landed([transferOf(10_000_000), memo]);
  const failed = await landed([transferOf(10n ** 18n)]);
  const [tokens] = await findAssociatedTokenPda({
    owner: payer.address,
    mint: mint.address,
    tokenProgram: TOKEN_PROGRAM_ADDRESS,
  });
  const minted = await landed([
    getCreateAccountInstruction({
      payer: signer,
      newAccount: mint,
      lamports: await rentOf(getMintSize()),
      space: getMintSize(),
      programAddress: TOKEN_PROGRAM_ADDRESS,
    }),
    getInitializeMint2Instruction({ mint: mint.address, decimals: 6, mintAuthority: payer.address }),
    getCreateAssociatedTokenIdempotentInstruction({
      payer: signer,
      ata: tokens,
      owner: payer.address,
      mint: mint.address,
    }),
    getMintToInstruction({ mint: mint.address, token: tokens, mintAuthority: signer, amount: 12_345_678n }),
  ]);
  const nonced = await landed([
    getCreateAccountInstruction({
      payer: signer,
      newAccount: nonce,
      lamports: await rentOf(getNonceSize()),
      space: getNonceSize(),
      programAddress: SYSTEM_PROGRAM_ADDRESS,
    }),
    getInitializeNonceAccountInstruction({ nonceAccount: nonce.address, nonceAuthority: payer.address }),
  ]);
  while ((await rpc.getSlot({ commitment: 'finalized' }).send()) < nonced.slot)
    await systemClock.sleep(POLL_MS, signal);
  const { value: blockhash } = await rpc.getLatestBlockhash({ commitment: 'finalized' }).send();
  const wireOf = (from: typeof payer, lamports: bigint, hash: string = blockhash.blockhash) =>
    transferWire(from, poor.address, lamports, hash);
  const wrong = wireOf(payer, 7n);
  wrong[1] = (wrong[1] ?? 0) ^ 1;
  return {
    slot: Number(paid.slot),
    paid: paid.signature,
    failed: failed.signature,
    minted: minted.signature,
    mint: mint.address,
    tokens,
    nonce: nonce.address,
    blockhash: blockhash.blockhash,
    /** Transactions, in base64, none of which is to land. */
    wires: {
      good: base64(wireOf(payer, 5n)),
      unfunded: base64(wireOf(poor, 10n ** 15n)),
      noPayer: base64(wireOf(nobody, 5n)),
      expired: base64(wireOf(payer, 6n, nobody.address)),
      wrongSignature: base64(wrong),
    },
    message: base64(wireOf(payer, 5n).subarray(65)),
  };
}
