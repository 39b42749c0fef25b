import { createMint, getAccount, getOrCreateAssociatedTokenAccount, mintTo } from '@solana/spl-token';
import { Keypair, LAMPORTS_PER_SOL } from '@solana/web3.js';
import { PollingConnection } from './polling-connection.ts';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '' } = process.env;

const connection = new PollingConnection(url, { commitment: 'confirmed', httpHeaders: { 'x-token': key } });

const payer = Keypair.generate();
// On the embedded chain only; elsewhere the payer is yours and has what it pays.
await connection.confirmTransaction(await connection.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL));

// Each of these sends a transaction and waits for it through the connection.
const mint = await createMint(connection, payer, payer.publicKey, null, 6);
const { address } = await getOrCreateAssociatedTokenAccount(connection, payer, mint, payer.publicKey);
await mintTo(connection, payer, mint, address, payer, 2_000_000n);
console.log('balance', (await getAccount(connection, address)).amount);
