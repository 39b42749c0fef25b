import { type Address, address, getAddressDecoder, getAddressEncoder } from '@solana/kit';

/** One call as it arrived. */
export type SeenCall = Readonly<{ method: string; params: readonly unknown[]; headers: Headers }>;
/** Replaces the chain's own answer when it gives a Response. */
export type Fault = (call: SeenCall) => Response | Promise<Response> | undefined;

type Account = { owner: string; data: Uint8Array };

export const LOADER_V3 = address('BPFLoaderUpgradeab1e11111111111111111111111');
export const LOADER_V4 = address('LoaderV411111111111111111111111111111111111');
export const LOADER_V2 = address('BPFLoader2111111111111111111111111111111111');
export const SYSTEM = address('11111111111111111111111111111111');

/**
 * A chain of accounts and block times behind JSON-RPC over HTTP, for faults that a real node cannot be asked for.
 * It answers `getMultipleAccounts` and `getBlockTime` as Agave does; `fault` stands before every answer.
 */
export function startChain() {
  const accounts = new Map<string, Account>();
  const blockTimes = new Map<number, number>();
  const calls: SeenCall[] = [];
  const chain = {
    accounts,
    blockTimes,
    calls,
    slot: 1_000,
    fault: undefined as Fault | undefined, // set by tests
    /** Puts a loader-v3 program and its ProgramData. `authority` absent is a frozen one. */
    deploy(program: Address, slot: number, authority?: Address) {
      const data = dataAddressOf(program);
      accounts.set(program, { owner: LOADER_V3, data: programBytes(data) });
      accounts.set(data, { owner: LOADER_V3, data: programDataBytes(slot, authority) });
    },
    url: new URL('http://localhost'),
    [Symbol.asyncDispose]: () => server.stop(true),
  };

  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async (request) => {
      const { id, method, params } = JSON.parse(await request.text());
      const call = { method, params, headers: request.headers };
      calls.push(call);
      return (await chain.fault?.(call)) ?? Response.json({ jsonrpc: '2.0', id, ...answer(call) });
    },
  });
  chain.url = new URL(`http://127.0.0.1:${server.port}/`);

  function answer({ method, params }: SeenCall): object {
    if (method === 'getBlockTime') {
      const time = blockTimes.get(Number(params[0]));
      return time === undefined
        ? { error: { code: -32007, message: `Slot ${params[0]} was skipped` } }
        : { result: time };
    }
    if (method !== 'getMultipleAccounts') return { error: { code: -32601, message: 'Method not found' } };
    const [addresses, options] = params as [
      string[],
      { dataSlice: { length: number }; minContextSlot?: number },
    ]; // this file's one caller
    if ((options.minContextSlot ?? 0) > chain.slot) {
      const data = { contextSlot: chain.slot };
      return { error: { code: -32016, message: 'Minimum context slot has not been reached', data } };
    }
    const value = addresses.map((name) => accountJson(accounts.get(name), options.dataSlice.length));
    return { result: { context: { apiVersion: '4.0.0', slot: chain.slot }, value } };
  }

  return chain;
}

export function accountJson(account: Account | undefined, length: number): object | null {
  if (account === undefined) return null;
  const { owner, data } = account;
  return {
    data: [Buffer.from(data.subarray(0, length)).toString('base64'), 'base64'],
    executable: true,
    lamports: 1,
    owner,
    rentEpoch: 0,
    space: data.length,
  };
}

/** An address of its own for `name`; the same name gives the same address. */
export function addressOf(name: string): Address {
  return getAddressDecoder().decode(new Bun.CryptoHasher('sha256').update(name).digest());
}

function dataAddressOf(program: Address): Address {
  return addressOf(`ProgramData of ${program}`);
}

/** Tag 2 and the ProgramData address, little-endian: 36 bytes. */
export function programBytes(data: Address): Uint8Array {
  return Buffer.concat([u32(2), Buffer.from(getAddressEncoder().encode(data))]);
}

/** Tag 3, the slot, an optional authority in 33 bytes, and some code behind. */
export function programDataBytes(slot: number | bigint, authority?: Address): Uint8Array {
  const key = authority === undefined ? Buffer.alloc(32) : Buffer.from(getAddressEncoder().encode(authority));
  const option = Buffer.from([authority === undefined ? 0 : 1]);
  return Buffer.concat([u32(3), u64(slot), option, key, Buffer.from('\x7fELF code')]);
}

/** Slot, authority and status: 48 bytes, and some code behind. */
export function programV4Bytes(slot: number, authority: Address, status: number): Uint8Array {
  const key = Buffer.from(getAddressEncoder().encode(authority));
  return Buffer.concat([u64(slot), key, u64(status), Buffer.from('\x7fELF code')]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
