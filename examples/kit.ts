import { getTransferSolInstruction } from '@solana-program/system';
import {
  appendTransactionMessageInstruction,
  createDefaultRpcTransport,
  createSolanaRpcFromTransport,
  createTransactionMessage,
  generateKeyPairSigner,
  lamports,
  pipe,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit';
import { confirm, retrying, send } from './send-and-confirm.ts';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '' } = process.env;

const transport = createDefaultRpcTransport({ url, headers: { 'x-token': key } });
const rpc = createSolanaRpcFromTransport(retrying(transport));

const payer = await generateKeyPairSigner();
const to = await generateKeyPairSigner();
const { value: blockhash } = await rpc.getLatestBlockhash({ commitment: 'confirmed' }).send();
// On the embedded chain only; elsewhere the payer is yours and has what it pays.
const airdrop = await rpc.requestAirdrop(payer.address, lamports(1_000_000_000n)).send();
await confirm(rpc, airdrop, blockhash.lastValidBlockHeight);

const transfer = getTransferSolInstruction({ source: payer, destination: to.address, amount: 2_000_000n });
const transaction = await pipe(
  createTransactionMessage({ version: 0 }),
  (message) => setTransactionMessageFeePayerSigner(payer, message),
  (message) => setTransactionMessageLifetimeUsingBlockhash(blockhash, message),
  (message) => appendTransactionMessageInstruction(transfer, message),
  (message) => signTransactionMessageWithSigners(message),
);
await confirm(rpc, await send(rpc, transaction), blockhash.lastValidBlockHeight);
const { value: balance } = await rpc.getBalance(to.address, { commitment: 'confirmed' }).send();
console.log('balance', balance);
