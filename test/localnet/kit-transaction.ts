import {
  appendTransactionMessageInstructions,
  compressTransactionMessageUsingAddressLookupTables,
  createKeyPairSignerFromPrivateKeyBytes,
  createTransactionMessage,
  getTransactionEncoder,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
  blockhash as toBlockhash,
  type AddressesByLookupTableAddress,
  type Instruction,
} from '@solana/kit';
import type { Keypair } from '../../localnet/protocol/keypair.ts';

const signers = new Map<Keypair, ReturnType<typeof createKeyPairSignerFromPrivateKeyBytes>>();

/** The signer of a keypair; the same one each time, as kit demands within a transaction. */
export function signerOf(keypair: Keypair) {
  const signer = signers.get(keypair) ?? createKeyPairSignerFromPrivateKeyBytes(keypair.privateKey);
  signers.set(keypair, signer);
  return signer;
}

/** The wire bytes of a v0 transaction that kit builds and signs. */
export async function kitWire(
  payer: Keypair,
  blockhash: string,
  instructions: readonly Instruction[],
  tables: AddressesByLookupTableAddress = {},
): Promise<Uint8Array> {
  const signer = await signerOf(payer);
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (made) => setTransactionMessageFeePayerSigner(signer, made),
    (made) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: toBlockhash(blockhash), lastValidBlockHeight: 0n },
        made,
      ),
    (made) => appendTransactionMessageInstructions([...instructions], made),
    (made) => compressTransactionMessageUsingAddressLookupTables(made, tables),
  );
  return new Uint8Array(getTransactionEncoder().encode(await signTransactionMessageWithSigners(message)));
}
