import {
  Keypair,
  LAMPORTS_PER_SOL,
  sendAndConfirmTransaction,
  SystemProgram,
  Transaction,
} from '@solana/web3.js';
import { PollingConnection } from './polling-connection.ts';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '' } = process.env;

const connection = new PollingConnection(url, { commitment: 'confirmed', httpHeaders: { 'x-token': key } });

const payer = Keypair.generate();
const to = Keypair.generate().publicKey;
// On the embedded chain only; elsewhere the payer is yours and has what it pays.
await connection.confirmTransaction(await connection.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL));

const transfer = SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: 2_000_000 });
await sendAndConfirmTransaction(connection, new Transaction().add(transfer), [payer]);
console.log('balance', await connection.getBalance(to));
