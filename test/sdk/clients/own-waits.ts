import { AnchorProvider, Native, Wallet } from '@coral-xyz/anchor';
import {
  address,
  assertIsTransactionWithBlockhashLifetime,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  sendAndConfirmTransactionFactory,
} from '@solana/kit';
import {
  Connection,
  type ConnectionConfig,
  Keypair,
  LAMPORTS_PER_SOL,
  type PublicKey,
  sendAndConfirmTransaction,
  SystemProgram,
  Transaction,
} from '@solana/web3.js';
import BN from 'bn.js';
import { PollingConnection } from '../../../examples/polling-connection.ts';
import { AMOUNT, signTransfer } from './transfer.ts';

// What each SDK's own wait says of transactions that landed, where there is no WebSocket. A process of its own, because
// web3.js goes on connecting for as long as its process lives.
const url = process.env['ENDPOINT'] ?? '';
const confirmed = { commitment: 'confirmed' } as const;
const polling = new PollingConnection(url, confirmed);
const payer = Keypair.generate();
await polling.confirmTransaction(await polling.requestAirdrop(payer.publicKey, 10 * LAMPORTS_PER_SOL));

const plain = (config: ConnectionConfig = {}) => new Connection(url, { ...confirmed, ...config });
const failure = (call: Promise<unknown>) =>
  call.then(
    () => '',
    (reason: unknown) => String(reason),
  );
const paid = async (to: PublicKey) => (await polling.getBalance(to)) / AMOUNT;
const newAddress = () => Keypair.generate().publicKey;

/** Three tries at one payment, each signed anew after the one before it failed. */
async function kit() {
  const rpc = createSolanaRpc(url);
  const rpcSubscriptions = createSolanaRpcSubscriptions(url.replace('http', 'ws'));
  const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions });
  const from = await createKeyPairSignerFromBytes(payer.secretKey);
  const to = newAddress();
  const says: string[] = [];
  for (let last = '', tries = 0; tries < 3;) {
    const { value: blockhash } = await rpc.getLatestBlockhash(confirmed).send();
    if (blockhash.blockhash === last) continue;
    last = blockhash.blockhash;
    tries++;
    const transaction = await signTransfer(from, address(to.toBase58()), blockhash);
    assertIsTransactionWithBlockhashLifetime(transaction);
    says.push(await failure(sendAndConfirm(transaction, confirmed)));
  }
  while ((await paid(to)) < 3) await Bun.sleep(50); // to land takes the chain a few slots
  return { says, paid: await paid(to) };
}

async function web3() {
  const to = newAddress();
  const transfer = SystemProgram.transfer({ fromPubkey: payer.publicKey, toPubkey: to, lamports: AMOUNT });
  const says = await failure(sendAndConfirmTransaction(plain(), new Transaction().add(transfer), [payer]));
  return { says, paid: await paid(to) };
}

async function anchor() {
  const to = newAddress();
  const provider = new AnchorProvider(plain({ confirmTransactionInitialTimeout: 3_000 }), new Wallet(payer));
  const transfer = Native.system(provider).methods.transfer(new BN(AMOUNT));
  return {
    says: await failure(transfer.accounts({ from: payer.publicKey, to }).rpc()),
    paid: await paid(to),
  };
}

/** web3.js's own way with 429, which lasts as long: a plan that is refused for 100 seconds. */
async function limited() {
  let sent = 0;
  const counting = new Connection(process.env['STUCK_ENDPOINT'] ?? '', {
    fetchMiddleware: (info, init, fetch) => {
      sent++;
      fetch(info, init);
    },
  });
  const began = performance.now();
  const says = await failure(counting.getSlot());
  return { says, sent, seconds: (performance.now() - began) / 1_000 };
}

const [ofKit, ofWeb3, ofAnchor, ofLimited] = await Promise.all([kit(), web3(), anchor(), limited()]);
console.log(JSON.stringify({ kit: ofKit, web3: ofWeb3, anchor: ofAnchor, limited: ofLimited }));
process.exit(0);
