import {
  address,
  type Address,
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
import type { AccountState } from '../../localnet/protocol/account.ts';
import {
  addressBytes,
  addressOf,
  SYSTEM_PROGRAM,
  COMPUTE_BUDGET_PROGRAM,
} from '../../localnet/protocol/address.ts';
import { type Keypair, keypairNamed, transferWire } from '../../localnet/protocol/keypair.ts';
import {
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  parseJson,
  printJson,
} from '../../localnet/json/value.ts';
import type { Commitment } from '../../localnet/chain/slots.ts';
import { createLocalnet } from '../../localnet/compose.ts';
import { createAnswerRequest } from '../../localnet/http/server.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { monotonicOf } from '../fakes/chain-clock.ts';

export const ROOTED_LAG = 4;
export const SLOT_MS = 400;
/** When the tests' chains begin: 2026-01-01T00:00:00Z. */
export const BEGAN_MS = 1_767_225_600_000;

/** A clock that stands still. */
export const stillClock: Clock = {
  now: () => BEGAN_MS,
  monotonic: () => monotonicOf(0),
  sleep: () => {
    throw new Error('nothing may wait here');
  },
};

export type HarnessOptions = Readonly<{
  programs?: readonly Readonly<{ program_id: string }>[];
  dataDir?: string;
  accounts?: readonly (readonly [Address, AccountState])[];
  clock?: Clock;
  rootedLag?: number;
}>;

/** A localnet whose slots the test ends by hand, asked without a socket. */
export async function startChain(options: HarnessOptions = {}) {
  const localnet = await createLocalnet({
    programs: (options.programs ?? []).map(({ program_id: id }) => address(id)),
    dataDir: options.dataDir,
    slotMs: SLOT_MS,
    rootedLag: options.rootedLag ?? ROOTED_LAG,
    clock: options.clock ?? stillClock,
    random: (bytes) => new Uint8Array(bytes).fill(7),
    accounts: (options.accounts ?? []).map(([of, state]) => ({ file: 'test', address: of, state })),
  });
  const { chain } = localnet;
  const faults: unknown[] = [];
  const answer = createAnswerRequest({ chain, onFault: (cause) => faults.push(cause) });

  function request(body: string | Uint8Array<ArrayBuffer>, init: RequestInit = {}): Promise<Response> {
    const headers = { 'content-type': 'application/json', ...init.headers };
    return answer(new Request('http://localnet/', { method: 'POST', body, ...init, headers }));
  }

  async function post(body: string): Promise<string> {
    return (await request(body)).text();
  }

  /** The whole answer to a call. A fault inside fails the test. */
  async function call(method: string, ...params: readonly Json[]): Promise<JsonObject> {
    const text = await post(printJson({ jsonrpc: '2.0', id: 1, method, params }));
    if (faults.length > 0) throw faults[0];
    return object(parseJson(text));
  }

  /** The result of a call that must succeed. */
  async function result(method: string, ...params: readonly Json[]): Promise<Json> {
    const { result: value, error } = await call(method, ...params);
    if (error !== undefined || value === undefined) throw new Error(`${method}: ${printJson(error ?? null)}`);
    return value;
  }

  /** The `value` of a result in a context. */
  async function valueOf(method: string, ...params: readonly Json[]): Promise<Json> {
    return object(await result(method, ...params))['value'] ?? null;
  }

  /** The error of a call that must be refused. */
  async function refusal(method: string, ...params: readonly Json[]): Promise<JsonObject> {
    const { error } = await call(method, ...params);
    if (error === undefined) throw new Error(`${method} was not refused`);
    return object(error);
  }

  function advance(slots = 1): void {
    for (let count = 0; count < slots; count += 1) chain.advance();
  }

  function blockhash(commitment: Commitment = 'processed'): string {
    return chain.latestBlockhash(chain.slotAt(commitment)).blockhash;
  }

  /** Sends a transaction, without a preflight unless told; gives its signature. */
  async function send(wire: Uint8Array, config: JsonObject = UNCHECKED): Promise<string> {
    return text(await result('sendTransaction', base64(wire), config));
  }

  const transfer = (from: Keypair, to: Address, lamports: bigint) =>
    send(transferWire(from, to, lamports, blockhash()));

  /** The error of a preflight. */
  const preflightError = (wire: Uint8Array) => refusal('sendTransaction', base64(wire), CHECKED);

  const statusOf = async (signature: string) =>
    list(await valueOf('getSignatureStatuses', [signature]))[0] ?? null;

  const balance = (address: Address, commitment: Commitment = 'processed') =>
    valueOf('getBalance', address, { commitment });

  return {
    localnet,
    chain,
    faults,
    request,
    post,
    call,
    result,
    valueOf,
    refusal,
    advance,
    blockhash,
    send,
    transfer,
    preflightError,
    statusOf,
    balance,
    [Symbol.dispose]: () => localnet.close(),
  };
}

export const CHECKED = { encoding: 'base64', preflightCommitment: 'processed' };
export const UNCHECKED = { encoding: 'base64', skipPreflight: true };
export const alice = keypairNamed('alice');
export const bob = keypairNamed('bob');

/** Alice with 10 SOL. */
export const RICH = [[alice.address, systemAccount(10_000_000_000n)]] as const;

/** An address that no keypair is known for. */
export function addressNumber(number: number): Address {
  const bytes = new Uint8Array(32).fill(1);
  new DataView(bytes.buffer).setUint32(0, number);
  return addressOf(bytes);
}

export function systemAccount(lamports: bigint): AccountState {
  return {
    lamports,
    data: new Uint8Array(),
    owner: SYSTEM_PROGRAM,
    executable: false,
    rentEpoch: 18446744073709551615n,
  };
}

export function ownedAccount(owner: Address, data: Uint8Array, lamports = 10_000_000n): AccountState {
  return { lamports, data, owner, executable: false, rentEpoch: 18446744073709551615n };
}

/** An initialized mint of alice's. */
export function mintData(supply: bigint, decimals: number): Uint8Array {
  const data = new Uint8Array(82);
  const view = new DataView(data.buffer);
  view.setUint32(0, 1, true);
  data.set(addressBytes(alice.address), 4);
  view.setBigUint64(36, supply, true);
  data[44] = decimals;
  data[45] = 1;
  return data;
}

/** An initialized token account. */
export function tokenData(mint: Address, owner: Address, amount: bigint): Uint8Array {
  const data = new Uint8Array(165);
  data.set(addressBytes(mint));
  data.set(addressBytes(owner), 32);
  new DataView(data.buffer).setBigUint64(64, amount, true);
  data[108] = 1;
  return data;
}

export function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

export function object(value: Json | undefined): JsonObject {
  if (!isJsonObject(value)) throw new Error(`not an object: ${printJson(value ?? null)}`);
  return value;
}

export function list(value: Json | undefined): readonly Json[] {
  if (!isJsonArray(value)) throw new Error(`not a list: ${printJson(value ?? null)}`);
  return value;
}

export function integer(value: Json | undefined): bigint {
  if (typeof value !== 'bigint') throw new Error(`not an integer: ${printJson(value ?? null)}`);
  return value;
}

export function text(value: Json | undefined): string {
  if (typeof value !== 'string') throw new Error(`not a text: ${printJson(value ?? null)}`);
  return value;
}

export const SYSTEM = SYSTEM_PROGRAM;
export const COMPUTE_BUDGET = COMPUTE_BUDGET_PROGRAM;

export type WireInstruction = Readonly<{
  program: Address;
  accounts: readonly Address[];
  data: readonly number[];
}>;

/** A signed legacy transaction of any instructions; every account but the programs is writable, only the payer signs. */
export function builtWire(
  payer: Keypair,
  blockhash: string,
  instructions: readonly WireInstruction[],
): Uint8Array {
  const programs = [...new Set(instructions.map(({ program }) => program))];
  const others = new Set(
    instructions.flatMap(({ accounts }) => accounts).filter((key) => !programs.includes(key)),
  );
  others.delete(payer.address);
  const keys = [payer.address, ...others, ...programs];
  const message = Buffer.concat([
    Uint8Array.of(1, 0, programs.length, keys.length),
    ...keys.map(addressBytes),
    // A blockhash has the form of an address.
    addressBytes(blockhash as Address), // only its bytes matter
    Uint8Array.of(instructions.length),
    ...instructions.map(({ program, accounts, data }) =>
      Uint8Array.of(
        keys.indexOf(program),
        accounts.length,
        ...accounts.map((key) => keys.indexOf(key)),
        data.length,
        ...data,
      ),
    ),
  ]);
  return Buffer.concat([Uint8Array.of(1), payer.sign(message), message]);
}

/** The data of a system transfer. */
export function transferData(lamports: bigint): number[] {
  return [2, 0, 0, 0, ...new Uint8Array(BigUint64Array.of(lamports).buffer)];
}

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

/** A running localnet on a port of its own, with short slots. */
export async function startServed(programs: readonly Readonly<{ program_id: string }>[] = []) {
  const faults: unknown[] = [];
  const localnet = await createLocalnet({
    programs: programs.map(({ program_id: id }) => address(id)),
    accounts: [],
    dataDir: undefined,
    slotMs: 20,
    rootedLag: 3,
    clock: systemClock,
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
  });
  const server = localnet.serve({
    hostname: '127.0.0.1',
    port: 0,
    onFault: (cause) => faults.push(cause),
  });
  const stop = new AbortController();
  const running = localnet.run(stop.signal);
  return {
    url: server.url,
    chain: localnet.chain,
    faults,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
      await server.stop(true);
      localnet.close();
    },
  };
}
