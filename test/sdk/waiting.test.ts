import { afterAll, beforeAll, describe, expect, mock, spyOn, test } from 'bun:test';
import { join } from 'node:path';
import { publicKey } from '@metaplex-foundation/umi';
import {
  address,
  createDefaultRpcTransport,
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcFromTransport,
  isSolanaError,
  type Signature,
  SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR,
} from '@solana/kit';
import {
  Connection,
  type FetchFn,
  Keypair,
  LAMPORTS_PER_SOL,
  type PublicKey,
  SystemProgram,
  Transaction,
} from '@solana/web3.js';
import { createHelius } from 'helius-sdk';
import { makePollTransactionConfirmation } from 'helius-sdk/transactions/pollTransactionConfirmation';
import type { PollingConnection } from '../../examples/polling-connection.ts';
import { confirm, retrying, send } from '../../examples/send-and-confirm.ts';
import { ASSETS } from '../fakes/das-assets.ts';
import { childEnv } from '../started/process.ts';
import { AMOUNT, signTransfer } from './clients/transfer.ts';
import { startWorld } from './clients/world.ts';
import { quickly } from './quickly.ts';
import { umiOn } from './umi-client.ts';

const NEVER_SENT = '1'.repeat(64) as Signature; // 64 zero bytes
const ASSET = ASSETS[0]?.id ?? '';
const TRANSACTION_PRICE = 10;
/** Blockhashes of this chain are over after some eight seconds, more on a busy machine. */
const OWN_WAITS_MS_MAX = 60_000;

let world: Awaited<ReturnType<typeof startWorld>>;
let connection: PollingConnection;
/** What `own-waits.ts` prints: it waits while other tests run. */
let ownWaits: Promise<string>;
const payer = Keypair.generate();
beforeAll(async () => {
  spyOn(console, 'error').mockImplementation(() => {}); // web3.js reports each of its retries there
  world = await startWorld();
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'clients/own-waits.ts')], {
    env: childEnv({ ENDPOINT: world.tiers.endpoint(), STUCK_ENDPOINT: await stuck() }),
    stdout: 'pipe',
    stderr: 'ignore', // web3.js reports its WebSocket there, several times a second
    timeout: OWN_WAITS_MS_MAX,
  });
  ownWaits = child.stdout.text();
  connection = polling(world.tiers.url, world.tiers.key('scale'));
  await connection.confirmTransaction(
    await connection.requestAirdrop(payer.publicKey, 100 * LAMPORTS_PER_SOL),
  );
});
afterAll(async () => {
  mock.restore();
  await world[Symbol.asyncDispose]();
});

const headersOf = (key: string) => ({ 'x-token': key });
const polling = (url: string, key: string) => quickly(url, { httpHeaders: headersOf(key) });
function kitOn(url: string, key: string) {
  return createSolanaRpcFromTransport(createDefaultRpcTransport({ url, headers: headersOf(key) }));
}
const healthy = () => kitOn(world.tiers.url, world.tiers.key('scale'));
const troubled = () => kitOn(world.troubled.url.href, world.troubled.key('scale'));
const landed = async (to: PublicKey) => (await connection.getBalance(to)) / AMOUNT;
const transferTo = (to: PublicKey, from = payer.publicKey) =>
  SystemProgram.transfer({ fromPubkey: from, toPubkey: to, lamports: AMOUNT });

/** An endpoint that answers the first call with 429 and `retryAfter`, and then that it is at slot 7. */
function startBusy(retryAfter: string) {
  let calls = 0;
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      if (calls++ === 0) return new Response('busy', { status: 429, headers: { 'retry-after': retryAfter } });
      const { id } = Object(await request.json());
      return Response.json({ jsonrpc: '2.0', id, result: 7 });
    },
  });
  return { url: server.url.href, calls: () => calls, [Symbol.dispose]: () => void server.stop(true) };
}

/** A transfer by kit. */
async function signedByKit(to: PublicKey, from = payer) {
  const { value: blockhash } = await healthy().getLatestBlockhash({ commitment: 'confirmed' }).send();
  const source = await createKeyPairSignerFromBytes(from.secretKey);
  return { blockhash, transaction: await signTransfer(source, address(to.toBase58()), blockhash) };
}

describe('the examples for kit', () => {
  test('send gives the signature when the outcome is unknown and when it has landed, pays once, and throws what was refused', async () => {
    const to = Keypair.generate().publicKey;
    const { blockhash, transaction } = await signedByKit(to);
    const before = world.reached('sendTransaction');
    const signature = await send(troubled(), transaction);
    expect(signature).toBe(await send(healthy(), transaction));
    await confirm(healthy(), signature, blockhash.lastValidBlockHeight);
    expect(await send(healthy(), transaction)).toBe(signature);
    expect(await landed(to)).toBe(1);
    expect(world.reached('sendTransaction')).toBe(before + 1);
    const { transaction: poor } = await signedByKit(payer.publicKey, Keypair.generate());
    await expect(send(healthy(), poor)).rejects.toThrow('simulation failed');
    await expect(send(kitOn(world.tiers.url, 'sluice_secret'), transaction)).rejects.toThrow('401');
  });

  test('confirm ends when the blockhash of what never landed is over', async () => {
    const height = await healthy().getBlockHeight({ commitment: 'confirmed' }).send();
    await expect(confirm(healthy(), NEVER_SENT, height)).rejects.toThrow('has expired and will never land');
  });

  test('an abortSignal bounds a call', async () => {
    const call = troubled().getBalance(address(SystemProgram.programId.toBase58()));
    await expect(call.send({ abortSignal: AbortSignal.timeout(200) })).rejects.toThrow('timed out');
  });
});

describe('the PollingConnection of the examples', () => {
  test('gives the signature when the outcome is unknown, and throws what was refused', async () => {
    const { blockhash, lastValidBlockHeight } = await connection.getLatestBlockhash();
    const signed = (from: Keypair) => {
      const transaction = new Transaction({ feePayer: from.publicKey, blockhash, lastValidBlockHeight });
      transaction.add(transferTo(Keypair.generate().publicKey, from.publicKey)).sign(from);
      return transaction.serialize();
    };
    const wire = signed(payer);
    const unsure = polling(world.troubled.url.href, world.troubled.key('scale'));
    const signature = await connection.sendRawTransaction(wire);
    expect(await unsure.sendRawTransaction(wire)).toBe(signature);
    await connection.confirmTransaction(signature);
    expect(await connection.sendRawTransaction(wire)).toBe(signature);
    await expect(connection.sendRawTransaction(signed(Keypair.generate()))).rejects.toThrow(
      'simulation failed',
    );
    const stranger = polling(world.tiers.url, 'sluice_secret');
    await expect(stranger.sendRawTransaction(wire)).rejects.toThrow('401 Unauthorized');
  });

  test('ends when the blockhash of what never landed is over, and when its signal aborts', async () => {
    const lastValidBlockHeight = await connection.getBlockHeight();
    const strategy = { signature: NEVER_SENT, blockhash: '', lastValidBlockHeight };
    await expect(connection.confirmTransaction(strategy)).rejects.toThrow(
      'has expired: block height exceeded',
    );
    const abortSignal = AbortSignal.abort(new Error('enough'));
    await expect(connection.confirmTransaction({ ...strategy, abortSignal })).rejects.toThrow('enough');
  });

  test.each([
    ['max', 'finalized'],
    ['root', 'finalized'],
    ['single', 'confirmed'],
    ['singleGossip', 'confirmed'],
    ['recent', 'processed'],
  ] as const)('waits for %s until it is %s', async (commitment, until) => {
    const reached = ['processed', 'confirmed', 'finalized'];
    let looks = 0;
    const inProgress = 90;
    const fetch = (async (_: string, { body }: RequestInit = {}) => {
      const { id, method } = JSON.parse(String(body));
      expect(method).toBe('getSignatureStatuses');
      const status = { slot: 58, confirmations: null, err: null, confirmationStatus: reached[looks++] };
      const result = { context: { slot: inProgress }, value: [status] };
      return Response.json({ jsonrpc: '2.0', id, result });
    }) as FetchFn; // without Bun's `preconnect`
    const strategy = { signature: NEVER_SENT, blockhash: '', lastValidBlockHeight: 1 };
    const confirmed = await quickly('http://127.0.0.1:1', { fetch }).confirmTransaction(strategy, commitment);
    expect(reached[looks - 1]).toBe(until);
    // A slot that the commitment has reached, and not the one in progress.
    expect(confirmed).toEqual({ context: { slot: 58 }, value: { err: null } });
  });

  test.each([
    ['http://127.0.0.1:8899', 'ws://127.0.0.1:8900'],
    ['https://rpc.example.com/?api-key=k', 'wss://rpc.example.com/?api-key=k'],
  ])('and every other Connection would dial a WebSocket for %s at %s', (url, dialled) => {
    expect(new Connection(url)).toMatchObject({ _rpcWsEndpoint: dialled });
  });

  test('refuses what is no signature in the words of web3.js, and asks nobody', async () => {
    const plain = new Connection('http://127.0.0.1:1');
    for (const signature of ['not base58', '1'.repeat(63), '', '0'.repeat(64)]) {
      const strategy = { signature, blockhash: '', lastValidBlockHeight: 1 };
      for (const given of [strategy, signature]) {
        const words = await plain.confirmTransaction(given as string).catch((error: Error) => error.message); // or a strategy
        expect(words).toContain('signature');
        await expect(quickly('http://127.0.0.1:1').confirmTransaction(given)).rejects.toThrow(String(words));
      }
    }
  });
});

type Asked = Readonly<{ key?: string; signal?: AbortSignal }>;

describe.each<[string, (url: string, asked?: Asked) => Promise<unknown>]>([
  [
    'kit',
    (url, { key = '', signal = new AbortController().signal } = {}) => {
      const transport = retrying(createDefaultRpcTransport({ url, headers: headersOf(key) }));
      return createSolanaRpcFromTransport(transport).getSlot().send({ abortSignal: signal });
    },
  ],
  [
    'web3.js',
    (url, { key = '', signal = new AbortController().signal } = {}) =>
      quickly(url, {
        httpHeaders: headersOf(key),
        fetchMiddleware: (info, init, next) => next(info, { ...init, signal }),
      }).getSlot(),
  ],
])('a call of the examples for %s', (_, slot) => {
  test('waits as long as Retry-After says, but not for 100 seconds', async () => {
    expect(Number(await slot(world.tiers.url, { key: await world.brisk() }))).toBeGreaterThan(0);
    await expect(slot(world.tiers.url, { key: await world.stuck() })).rejects.toThrow('429');
  });

  test('reads a Retry-After that is a date, and ends by its signal while it waits', async () => {
    using dated = startBusy(new Date().toUTCString());
    expect(Number(await slot(dated.url))).toBe(7);
    using busy = startBusy('20');
    await expect(slot(busy.url, { signal: AbortSignal.timeout(200) })).rejects.toThrow('timed out');
    expect(busy.calls()).toBe(1);
  });
});

describe('a call', () => {
  test('of web3.js ends by the signal of a fetch in its config', async () => {
    const fetchFor200Ms = ((input: string, init?: RequestInit) =>
      fetch(input, { ...init, signal: AbortSignal.timeout(200) })) as FetchFn; // without Bun's `preconnect`
    const url = `${world.troubled.url.href}?api-key=${world.troubled.key()}`;
    const bounded = new Connection(url, { fetch: fetchFor200Ms });
    await expect(bounded.getBalance(payer.publicKey)).rejects.toThrow('timed out');
  });

  test('that cannot connect shows the key of a URL in the printed error on Bun, and none of a header', async () => {
    const url = `${world.closed}?api-key=sluice_secret`;
    const failures = (there: string, headers = headersOf('')) => [
      createSolanaRpcFromTransport(createDefaultRpcTransport({ url: there, headers }))
        .getSlot()
        .send(),
      new Connection(there, { httpHeaders: headers }).getSlot(),
    ];
    const printed = (calls: Promise<unknown>[]) =>
      Promise.all(calls.map((call) => call.catch((error: unknown) => Bun.inspect(error))));
    const helius = createHelius({ baseUrl: world.closed, apiKey: 'sluice_secret' });
    for (const text of await printed([...failures(url), helius.getAsset({ id: ASSET })]))
      expect(text).toContain('sluice_secret');
    for (const text of await printed(failures(world.closed, headersOf('sluice_secret'))))
      expect(text).not.toContain('sluice_secret');
    expect(Bun.inspect(new Connection(url))).toContain('sluice_secret');
  });
});

describe('helius-sdk by its baseUrl', () => {
  test('finds assets, meets -32011 when it searches the whole history, and never sends again', async () => {
    const { tiers, troubled: without } = world;
    const helius = createHelius({ baseUrl: tiers.url, apiKey: tiers.key('scale') });
    expect((await helius.getAsset({ id: ASSET })).content?.metadata?.name).toBe('Compressed');
    const searched = helius.getSignatureStatuses([NEVER_SENT], { searchTransactionHistory: true });
    await expect(searched).rejects.toMatchObject({ context: { __code: -32011 } });
    const before = world.reached('getBalance');
    const bounded = createHelius({
      baseUrl: without.url.href,
      apiKey: without.key(),
      transport: (transport) => (request) => transport({ ...request, signal: AbortSignal.timeout(200) }),
    });
    await expect(bounded.getAsset({ id: ASSET })).rejects.toThrow('no backend here serves getAsset');
    const owner = address(payer.publicKey.toBase58());
    await expect(Promise.resolve(bounded.getBalance(owner))).rejects.toThrow('timed out');
    expect(world.reached('getBalance')).toBe(before + 1);
  });

  test('waits by polling, which does not load with this kit but by its path', async () => {
    const helius = createHelius({ baseUrl: world.tiers.url, apiKey: world.tiers.key('scale') });
    await expect(helius.tx.pollTransactionConfirmation(NEVER_SENT)).rejects.toThrow(
      'estimateComputeUnitLimitFactory',
    );
    const poll = makePollTransactionConfirmation(healthy());
    const { blockhash, transaction } = await signedByKit(Keypair.generate().publicKey);
    const signature = await send(healthy(), transaction);
    const { lastValidBlockHeight } = blockhash;
    expect(await poll(signature, { lastValidBlockHeight, interval: 50 })).toBe(signature);
    await expect(poll(NEVER_SENT, { lastValidBlockHeight: 1n })).rejects.toThrow(
      'exceeded lastValidBlockHeight',
    );
  });
});

test('umi meets -32011 for the whole history, and says "Asset not found" when no backend serves assets', async () => {
  const { rpc } = umiOn(`${world.troubled.url.href}?api-key=${world.troubled.key()}`);
  await expect(rpc.getAsset(publicKey(ASSET))).rejects.toThrow('Asset not found');
  const searched = umiOn(world.tiers.endpoint()).rpc.getSignatureStatuses([new Uint8Array(64)], {
    searchTransactionHistory: true,
  });
  await expect(searched).rejects.toMatchObject({ code: -32011 });
});

/** An endpoint that refuses every call for longer than any test. */
const stuck = async () => `${world.tiers.url}?api-key=${await world.stuck()}`;

describe('a refusal', () => {
  test.each([
    ['429', stuck, '100'],
    ['402', async () => world.tiers.endpoint('trial', 0), null],
  ])('is an HTTP error of kit with its status %s, and how long to wait', async (status, endpoint, wait) => {
    const asked = createSolanaRpc(await endpoint()).getSlot();
    const error: unknown = await asked.send().catch((reason: unknown) => reason);
    if (!isSolanaError(error, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR)) throw error;
    const { statusCode, headers } = error.context;
    expect([statusCode, headers.get('retry-after')]).toEqual([Number(status), wait]);
  });

  test('is an error of web3.js for a whole batch, and what the credits left do pay still passes', async () => {
    const ask = (of: Connection, count: number) =>
      of.getTransactions(Array<string>(count).fill(NEVER_SENT), { maxSupportedTransactionVersion: 0 });
    const over = new Connection(await stuck(), { disableRetryOnRateLimit: true });
    await expect(ask(over, 3)).rejects.toThrow(/429 Too Many Requests: .*Rate limit exceeded/);
    const unpaid = new Connection(world.tiers.endpoint('trial', 2 * TRANSACTION_PRICE));
    await expect(ask(unpaid, 3)).rejects.toThrow(/402 Payment Required: .*Trial credits used up/);
    expect(await ask(unpaid, 2)).toEqual([null, null]);
    await expect(unpaid.getSlot()).rejects.toThrow('402 Payment Required');
  });

  test('above the rate for a moment is met again by web3.js, until each call has its answer', async () => {
    const eager = new Connection(world.tiers.endpoint('ten'));
    const slots = await Promise.all(Array.from({ length: 25 }, () => eager.getSlot()));
    expect(slots.filter((slot) => slot > 0)).toHaveLength(25);
  });
});

test(
  'without WebSocket the own wait of an SDK fails for a transaction that landed; web3.js sends five times on 429',
  async () => {
    const { kit, web3, anchor, limited } = JSON.parse(await ownWaits);
    const noWebSocket = expect.stringContaining('WebSocket failed to connect');
    expect(kit).toEqual({ says: [noWebSocket, noWebSocket, noWebSocket], paid: 3 });
    const expired = { says: expect.stringContaining('has expired: block height exceeded'), paid: 1 };
    expect(web3).toEqual(expired);
    expect(limited).toMatchObject({ says: expect.stringContaining('429'), sent: 5 });
    expect(limited.seconds).toBeGreaterThan(0.5 + 1 + 2 + 4 - 0.1); // of no Retry-After
    expect(anchor).toEqual({
      says: expect.stringContaining('It is unknown if it succeeded or failed'),
      paid: 1,
    });
  },
  OWN_WAITS_MS_MAX,
);
