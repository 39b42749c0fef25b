import type { Address } from '@solana/kit';
import { describe, expect, test } from 'bun:test';
import { readPrograms } from '../../../deploys/watch/read.ts';
import { createRpcBackend } from '../../../deploys/watch/rpc.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  addressOf,
  type Fault,
  LOADER_V2,
  LOADER_V3,
  programBytes,
  programDataBytes,
  startChain,
} from '../../fakes/chain.ts';

const { signal } = new AbortController();
const authority = addressOf('authority');
const [one, two, three, four] = [addressOf('1'), addressOf('2'), addressOf('3'), addressOf('4')] as const;

type Chain = ReturnType<typeof startChain>;
function read(chain: Chain, addresses: readonly Address[], floor?: bigint) {
  const { call } = createRpcBackend(
    { name: 'it', url: chain.url, key: undefined },
    { fetch, clock: systemClock },
  );
  return readPrograms(call, addresses, floor, signal);
}
type Options = { commitment: string; encoding: string; dataSlice: object; minContextSlot?: number };
const optionsOf = (chain: Chain) => chain.calls.map(({ params }) => params[1] as Options); // as this project sends it

test('a reading tells every state of spec 3.1', async () => {
  await using chain = startChain();
  chain.deploy(one, 900, authority);
  chain.deploy(two, 800);
  chain.accounts.set(three, { owner: LOADER_V2, data: Buffer.from('\x7fELF') });
  const outcome = await read(chain, [four, three, two, one]);
  expect(outcome).toEqual({
    kind: 'read',
    reading: {
      contextSlot: 1_000n,
      programs: new Map<Address, never>([
        [four, { status: 'missing' } as never],
        [three, { status: 'other_loader' } as never],
        [two, { status: 'frozen', deploySlot: 800n } as never],
        [one, { status: 'upgradeable', deploySlot: 900n, upgradeAuthority: authority } as never],
      ]),
    },
  });
});

test('115 programs take two calls of program accounts and two of ProgramData, sliced, at finalized', async () => {
  await using chain = startChain();
  const addresses = Array.from({ length: 115 }, (_, i) => addressOf(`program ${i}`));
  for (const [i, program] of addresses.entries()) chain.deploy(program, i, authority);
  const outcome = await read(chain, addresses);
  expect(
    outcome.kind === 'read' &&
      [...outcome.reading.programs.values()].map((s) => 'deploySlot' in s && s.deploySlot),
  ).toEqual(addresses.map((_, i) => BigInt(i)));
  expect(chain.calls.map(({ params }) => (params[0] as unknown[]).length)).toEqual([100, 15, 100, 15]);
  expect(
    optionsOf(chain).map(({ commitment, encoding, dataSlice }) => [commitment, encoding, dataSlice]),
  ).toEqual([
    ['finalized', 'base64', { offset: 0, length: 48 }],
    ['finalized', 'base64', { offset: 0, length: 48 }],
    ['finalized', 'base64', { offset: 0, length: 45 }],
    ['finalized', 'base64', { offset: 0, length: 45 }],
  ] as never);
});

test('no ProgramData is asked for when no program has one', async () => {
  await using chain = startChain();
  expect((await read(chain, [four])).kind).toBe('read');
  expect(chain.calls).toHaveLength(1);
});

describe('one slot per reading', () => {
  test('every call after the first must not be older than the one before', async () => {
    await using chain = startChain();
    chain.deploy(one, 900, authority);
    await read(chain, [one], 950n);
    expect(optionsOf(chain).map(({ minContextSlot }) => minContextSlot)).toEqual([950, 1_000]);
  });

  test('a slot that passes inside a reading makes it read again, from the newer slot on', async () => {
    await using chain = startChain();
    chain.deploy(one, 900, authority);
    chain.fault = () => {
      if (chain.calls.length === 2) chain.slot = 1_001;
      return undefined;
    };
    const outcome = await read(chain, [one]);
    expect(outcome).toMatchObject({ kind: 'read', reading: { contextSlot: 1_001n } });
    expect(optionsOf(chain).map(({ minContextSlot }) => minContextSlot)).toEqual([
      undefined,
      1_000,
      1_001,
      1_001,
    ]);
  });

  test('a chain that never stands still is read three times, and the last reading is kept', async () => {
    await using chain = startChain();
    chain.deploy(one, 900, authority);
    chain.fault = () => void chain.slot++;
    expect(await read(chain, [one])).toMatchObject({ kind: 'read', reading: { contextSlot: 1_006n } });
    expect(chain.calls).toHaveLength(6);
  });

  test('a second try that fails leaves the first reading standing', async () => {
    await using chain = startChain();
    chain.deploy(one, 900, authority);
    chain.fault = () => {
      chain.slot++;
      return chain.calls.length > 2 ? new Response('', { status: 503 }) : undefined;
    };
    expect(await read(chain, [one])).toMatchObject({ kind: 'read', reading: { contextSlot: 1_002n } });
  });
});

describe('a backend that is behind the reading before', () => {
  test('is told apart when it says so', async () => {
    await using chain = startChain();
    expect(await read(chain, [one], 1_001n)).toEqual({ kind: 'behind' });
    expect((await read(chain, [one], 1_000n)).kind).toBe('read');
  });

  test('and when it ignores the wanted slot and answers older', async () => {
    await using chain = startChain();
    chain.fault = () => answerAt(chain, 999, [null]);
    expect(await read(chain, [one], 1_000n)).toEqual({ kind: 'behind' });
  });
});

describe('a reading with one untrue answer is no reading', () => {
  const account = (data: Uint8Array, space: number | undefined = data.length) => ({
    owner: LOADER_V3,
    data: [Buffer.from(data).toString('base64'), 'base64'],
    space,
  });
  const program = account(programBytes(addressOf('data')));
  const data = (bytes: Uint8Array) => account(bytes.subarray(0, 45), bytes.length);
  test.each([
    ['fewer accounts than asked for', [], []],
    ['more accounts than asked for', [program, program], []],
    ['a program account that was cut', [account(programBytes(one).subarray(0, 20), 36)], []],
    ['a ProgramData that was cut', [program], [account(programDataBytes(5).subarray(0, 13), 60)]],
    ['a ProgramData list of another length', [program], [null, null]],
    ['a deploy from after its own slot', [program], [data(programDataBytes(1_001, authority))]],
    ['a deploy slot of 2^64 - 1', [program], [data(programDataBytes(2n ** 64n - 1n))]],
  ])('%s', async (_, programs, datas) => {
    await using chain = startChain();
    chain.fault = () => answerAt(chain, 1_000, chain.calls.length === 1 ? programs : datas);
    expect((await read(chain, [one])).kind).toBe('failed');
  });

  test('a deploy in the very slot of the answer is true', async () => {
    await using chain = startChain();
    chain.deploy(one, 1_000, authority);
    expect((await read(chain, [one])).kind).toBe('read');
  });
});

test.each([
  ['an HTTP error', () => new Response('<html>', { status: 502 }), 'answered HTTP 502'],
  [
    'a JSON-RPC error',
    () => Response.json({ jsonrpc: '2.0', id: 1, error: { code: -32005, message: 'x' } }),
    'answered JSON-RPC error -32005',
  ],
] as [string, Fault, string][])('%s in the second step fails the reading', async (_, fault, reason) => {
  await using chain = startChain();
  chain.deploy(one, 900, authority);
  chain.fault = (call) => (chain.calls.length === 2 ? fault(call) : undefined);
  expect(await read(chain, [one])).toEqual({ kind: 'failed', reason });
});

function answerAt(_: Chain, slot: number, value: readonly unknown[]): Response {
  return Response.json({ jsonrpc: '2.0', id: 1, result: { context: { slot }, value } });
}
