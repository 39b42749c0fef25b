import { transferSol } from '@metaplex-foundation/mpl-toolbox';
import { generateSigner, keypairIdentity, lamports, sol } from '@metaplex-foundation/umi';
import { createUmi } from '@metaplex-foundation/umi-bundle-defaults';
import { PollingConnection } from './polling-connection.ts';

const { SLUICE_URL: url = 'http://127.0.0.1:8899', SLUICE_KEY: key = '' } = process.env;

const connection = new PollingConnection(url, { commitment: 'confirmed', httpHeaders: { 'x-token': key } });
const umi = createUmi(connection);
umi.use(keypairIdentity(generateSigner(umi)));
const to = generateSigner(umi).publicKey;
const confirmed = { commitment: 'confirmed' } as const;
// On the embedded chain only; elsewhere the identity is yours and has what it pays.
await umi.rpc.airdrop(umi.identity.publicKey, sol(1), confirmed);

await transferSol(umi, { destination: to, amount: lamports(2_000_000) }).sendAndConfirm(umi, {
  confirm: confirmed,
});
console.log('balance', (await umi.rpc.getBalance(to, confirmed)).basisPoints);
