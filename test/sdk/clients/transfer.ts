import { getTransferSolInstruction } from '@solana-program/system';
import {
  type Address,
  appendTransactionMessageInstruction,
  createTransactionMessage,
  type KeyPairSigner,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit';

export const AMOUNT = 2_000_000;

/** A transfer of AMOUNT lamports, signed by kit under the blockhash. */
export function signTransfer(
  source: KeyPairSigner,
  destination: Address,
  blockhash: Parameters<typeof setTransactionMessageLifetimeUsingBlockhash>[0],
) {
  const transfer = getTransferSolInstruction({ source, destination, amount: BigInt(AMOUNT) });
  return signTransactionMessageWithSigners(
    pipe(
      createTransactionMessage({ version: 0 }),
      (message) => setTransactionMessageFeePayerSigner(source, message),
      (message) => setTransactionMessageLifetimeUsingBlockhash(blockhash, message),
      (message) => appendTransactionMessageInstruction(transfer, message),
    ),
  );
}
