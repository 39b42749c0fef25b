import { afterAll, beforeAll, describe, expect, mock, spyOn, test } from 'bun:test';
import { AnchorProvider, Program, Wallet } from '@coral-xyz/anchor';
import { publicKey } from '@metaplex-foundation/umi';
import { createSolanaRpc, isSolanaError, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR } from '@solana/kit';
import { Connection, type ConnectionConfig, Keypair } from '@solana/web3.js';
import { ASSETS } from '../fakes/das-assets.ts';
import { counterIdl, type CounterIdl } from '../fixtures/anchor/counter-idl.ts';
import { JSON_HEADERS } from '../started/gateway.ts';
import { startTiers } from './tiers.ts';
import { umiOn } from './umi-client.ts';

/** One call, then none for 100 seconds; ten at once. */
const PLANS = '[plans.stuck]\nrps = 0.01\nburst = 1\n[plans.ten]\nrps = 20\nburst = 10\n';
const TRANSACTION_PRICE = 10;
const SIGNATURES = Array.from({ length: 3 }, () => '1'.repeat(64));
const AT_ANY_VERSION = { maxSupportedTransactionVersion: 0 };
const ASSET = publicKey(ASSETS[0]?.id ?? '');
const OVER_RATE = { code: -429, message: 'Rate limit exceeded' };
const NO_CREDITS = { code: -402, message: 'Trial credits used up' };

let tiers: Awaited<ReturnType<typeof startTiers>>;
beforeAll(async () => {
  spyOn(console, 'error').mockImplementation(() => {}); // web3.js reports each of its retries there
  tiers = await startTiers(PLANS);
});
afterAll(async () => {
  mock.restore();
  await tiers[Symbol.asyncDispose]();
});

function postTo(endpoint: string, body: unknown): Promise<Response> {
  return fetch(endpoint, { method: 'POST', headers: JSON_HEADERS, body: JSON.stringify(body) });
}

/** An endpoint that refuses every call for longer than any test. */
async function stuck(): Promise<string> {
  const endpoint = tiers.endpoint('stuck');
  expect((await postTo(endpoint, { jsonrpc: '2.0', id: 1, method: 'getHealth' })).status).toBe(200);
  return endpoint;
}
/** An endpoint of a trial that has so many credits. */
const trial = (credits: number) => tiers.endpoint('trial', credits);

/** A connection that keeps the bodies it sends. */
function connect(endpoint: string, config: ConnectionConfig = {}) {
  const sent: string[] = [];
  const fetchMiddleware: ConnectionConfig['fetchMiddleware'] = (info, init, fetch) => {
    sent.push(String(init?.body));
    fetch(info, init);
  };
  return { connection: new Connection(endpoint, { ...config, fetchMiddleware }), sent };
}
const ONCE = { disableRetryOnRateLimit: true };

/** The JSON-RPC body inside the message of a web3.js error, whose status must be the one given. */
function bodyIn(error: Error, status: string): unknown {
  const at = error.message.indexOf(status);
  if (at === -1) throw new Error(`no ${status} in: ${error.message}`);
  return JSON.parse(error.message.slice(at + status.length + 2));
}

async function refusalOf(asked: Promise<unknown>): Promise<Error> {
  const error = await asked.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error)) throw new Error('it was not refused');
  return error;
}

/** A client of a program that is not there: refusals come before anybody looks. */
function programOn(connection: Connection): Program<CounterIdl> {
  const idl = counterIdl(Keypair.generate().publicKey.toBase58());
  return new Program<CounterIdl>(idl, new AnchorProvider(connection, new Wallet(Keypair.generate())));
}

test.each([
  ['429', stuck, '100'],
  ['402', async () => trial(0), null],
])(
  '@solana/kit: an HTTP error with its status %s, and how long to wait',
  async (status, endpoint, retryAfter) => {
    const error = await refusalOf(
      createSolanaRpc(await endpoint())
        .getSlot()
        .send(),
    );
    if (!isSolanaError(error, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR)) throw error;
    const { statusCode, headers } = error.context;
    expect([statusCode, headers.get('retry-after')]).toEqual([Number(status), retryAfter]);
  },
);

describe('@solana/web3.js: 429 is an error when its retries are switched off', () => {
  test('for a batch, with one error for each of its calls', async () => {
    const { connection, sent } = connect(await stuck(), ONCE);
    const error = await refusalOf(connection.getTransactions(SIGNATURES, AT_ANY_VERSION));
    const calls: { id: string }[] = JSON.parse(sent[0] ?? '');
    expect(calls).toHaveLength(SIGNATURES.length);
    expect(bodyIn(error, '429 Too Many Requests')).toEqual(
      calls.map(({ id }) => ({ jsonrpc: '2.0', error: OVER_RATE, id })),
    );
  });
});

describe('@solana/web3.js: 402 is an error at once', () => {
  test('for a whole batch that the credits left do not pay, and what they do pay still passes', async () => {
    const { connection, sent } = connect(trial(2 * TRANSACTION_PRICE));
    const error = await refusalOf(connection.getTransactions(SIGNATURES, AT_ANY_VERSION));
    const calls: { id: string }[] = JSON.parse(sent[0] ?? '');
    expect(bodyIn(error, '402 Payment Required')).toEqual(
      calls.map(({ id }) => ({ jsonrpc: '2.0', error: NO_CREDITS, id })),
    );
    expect(await connection.getTransactions(SIGNATURES.slice(1), AT_ANY_VERSION)).toEqual([null, null]);
    await expect(connection.getSlot()).rejects.toThrow('402 Payment Required');
  });
});

describe('anchor and umi: as web3.js', () => {
  const ways: readonly (readonly [string, (connection: Connection) => Promise<unknown>])[] = [
    ['account.all', (connection) => programOn(connection).account.counter.all()],
    ['getAsset', (connection) => umiOn(connection).rpc.getAsset(ASSET)],
  ];

  test.each(ways)('%s: 429 with its body when retries are off, 402 at once', async (_way, ask) => {
    const over = connect(await stuck(), ONCE).connection;
    await expect(ask(over)).rejects.toThrow(/429 Too Many Requests: .*Rate limit exceeded/);
    const { connection: unpaid, sent } = connect(trial(0));
    await expect(ask(unpaid)).rejects.toThrow(/402 Payment Required: .*Trial credits used up/);
    expect(sent).toHaveLength(1);
  });

  test("umi's HTTP client gives status, headers and the parsed body", async () => {
    const { umi } = umiOn(connect(tiers.url).connection);
    const data = { jsonrpc: '2.0', id: 7, method: 'getAsset', params: { id: ASSET } };
    const send = (url: string) => umi.http.send({ method: 'POST', url, headers: JSON_HEADERS, data });
    const over = await send(await stuck());
    expect([over.ok, over.status, over.data]).toEqual([
      false,
      429,
      { jsonrpc: '2.0', error: OVER_RATE, id: 7 },
    ]);
    expect(over.headers['retry-after']).toBe('100');
    const unpaid = await send(trial(0));
    expect([unpaid.status, unpaid.data]).toEqual([402, { jsonrpc: '2.0', error: NO_CREDITS, id: 7 }]);
  });
});

describe.concurrent('above the rate for a moment: the SDKs try again and get their answer', () => {
  test('web3.js with more calls at once than the plan takes', async () => {
    const { connection, sent } = connect(tiers.endpoint('ten'));
    const slots = await Promise.all(Array.from({ length: 25 }, () => connection.getSlot()));
    expect(slots.every((slot) => slot > 0)).toBe(true);
    expect(sent.length).toBeGreaterThan(slots.length);
  });
});
