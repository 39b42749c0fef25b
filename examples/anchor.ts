import { AnchorProvider, Native, Wallet } from '@coral-xyz/anchor';
import { Keypair, LAMPORTS_PER_SOL } from '@solana/web3.js';
import BN from 'bn.js'; // on Node, anchor's own `BN` is no named export
import { PollingConnection } from './polling-connection.ts';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '' } = process.env;

const connection = new PollingConnection(url, { commitment: 'confirmed', httpHeaders: { 'x-token': key } });

const payer = Keypair.generate();
const to = Keypair.generate().publicKey;
// On the embedded chain only; elsewhere the payer is yours and has what it pays.
await connection.confirmTransaction(await connection.requestAirdrop(payer.publicKey, LAMPORTS_PER_SOL));

const provider = new AnchorProvider(connection, new Wallet(payer), { commitment: 'confirmed' });
const program = Native.system(provider); // yours: new Program(idl, provider)
await program.methods.transfer(new BN(2_000_000)).accounts({ from: payer.publicKey, to }).rpc();
console.log('balance', await connection.getBalance(to));
