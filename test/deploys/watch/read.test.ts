import type { Address } from '@solana/kit';
import { describe, expect, test } from 'bun:test';
import { deploysBetween, type ProgramState, seenAfter } from '../../../deploys/watch/change.ts';
import { createRead, type Floor } from '../../../deploys/watch/read.ts';
import { createRpcBackend } from '../../../deploys/watch/rpc.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  addressOf,
  type Fault,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programDataBytes,
  programV4Bytes,
  startChain,
} from '../../fakes/chain.ts';

const { signal } = new AbortController();
const authority = addressOf('authority');
const [one, two] = [addressOf('1'), addressOf('2')];
const upgradeable = (deploySlot: bigint): ProgramState => ({
  status: 'upgradeable',
  deploySlot,
  upgradeAuthority: authority,
});
const floorOf = (programs: Floor['programs'] = new Map(), more: Partial<Floor> = {}): Floor => ({
  contextSlot: 1_000n,
  programs,
  deploySlots: new Map(),
  genesisHash: undefined,
  ...more,
});

type Chain = ReturnType<typeof startChain>;
function read(chains: readonly Chain[], addresses: readonly Address[], floor?: Floor, over = signal) {
  const backends = chains.map(({ url }, i) =>
    createRpcBackend({ name: `rpc ${i}`, url, key: undefined }, { fetch, clock: systemClock }),
  );
  return createRead(backends, addresses)(floor, over);
}
type Options = { commitment: string; encoding: string; dataSlice: object; minContextSlot?: number };
/** What was asked of accounts: how many, and how. */
const asked = ({ calls }: Chain) =>
  calls.flatMap(({ method, params }) => {
    if (method !== 'getMultipleAccounts') return [];
    const [addresses, options] = params as [unknown[], Options]; // as this project sends it
    return [{ count: addresses.length, ...options }];
  });

test('115 programs take two calls of program accounts and two of ProgramData, sliced, at finalized', async () => {
  await using chain = startChain();
  const addresses = Array.from({ length: 115 }, (_, i) => addressOf(`program ${i}`));
  for (const [i, program] of addresses.entries()) chain.deploy(program, i, authority);
  const outcome = await read([chain], addresses);
  expect(outcome.kind === 'read' && [...outcome.reading.programs.values()]).toEqual(
    addresses.map((_, i) => upgradeable(BigInt(i))),
  );
  const [slice48, slice45] = [
    { offset: 0, length: 48 },
    { offset: 0, length: 45 },
  ];
  const wanted = [
    { count: 100, dataSlice: slice48 },
    { count: 15, dataSlice: slice48 },
    { count: 100, dataSlice: slice45 },
    { count: 15, dataSlice: slice45 },
  ];
  expect(asked(chain)).toMatchObject(
    wanted.map((each) => ({ ...each, commitment: 'finalized', encoding: 'base64' })),
  );
});

describe('one slot per reading', () => {
  const slotsAsked = (chain: Chain) => asked(chain).map(({ minContextSlot }) => minContextSlot);
  test.each<[string, (chain: Chain) => Fault | undefined, bigint, (number | undefined)[]]>([
    ['every call must not be older than the one before', () => undefined, 1_000n, [950, 1_000]],
    [
      'a slot that passes inside a reading makes it read again, from the newer slot on',
      (chain) => () => void (chain.slot = chain.calls.length < 2 ? 1_000 : 1_001),
      1_001n,
      [950, 1_000, 1_001, 1_001],
    ],
    [
      'a chain that never stands still is read three times, and the last reading is kept',
      (chain) => () => void chain.slot++,
      1_006n,
      [950, 1_001, 1_002, 1_003, 1_004, 1_005],
    ],
    [
      'a second try that fails leaves the first reading standing',
      (chain) => () => {
        chain.slot++;
        return chain.calls.length > 2 ? new Response('', { status: 503 }) : undefined;
      },
      1_002n,
      [950, 1_001, 1_002],
    ],
  ])('%s', async (_, faultOf, contextSlot, slots) => {
    await using chain = startChain();
    chain.deploy(one, 900, authority);
    chain.fault = faultOf(chain);
    const floor = floorOf(undefined, { contextSlot: 950n });
    expect(await read([chain], [one], floor)).toMatchObject({ kind: 'read', reading: { contextSlot } });
    expect(slotsAsked(chain)).toEqual(slots);
  });
});

const answerAt = (slot: number, value: readonly unknown[]) =>
  Response.json({ jsonrpc: '2.0', id: 1, result: { context: { slot }, value } });

test('a backend behind the previous reading is recognised, whether it says so or answers older', async () => {
  await using chain = startChain();
  const behind = { kind: 'behind', reasons: ['rpc 0 is behind the previous reading'] } as const;
  expect(await read([chain], [one], floorOf(undefined, { contextSlot: 1_001n }))).toEqual(behind);
  chain.fault = () => answerAt(999, [null]);
  expect(await read([chain], [one], floorOf())).toEqual(behind);
});

describe('a reading with one wrong answer is rejected', () => {
  const account = (data: Uint8Array, space: number | undefined = data.length) => ({
    owner: LOADER_V3,
    data: [Buffer.from(data).toString('base64'), 'base64'],
    space,
  });
  const program = account(programBytes(addressOf('data')));
  const data = (bytes: Uint8Array) => account(bytes.subarray(0, 45), bytes.length);
  const error = { jsonrpc: '2.0', id: 1, error: { code: -32005, message: 'x' } };
  test.each<[string, () => Response, RegExp, unknown[]?]>([
    ['fewer accounts than asked for', () => answerAt(1_000, []), /other accounts than requested$/, []],
    ['a cut account', () => answerAt(1_000, [account(programDataBytes(5).subarray(0, 13), 60)]), /13 bytes/],
    [
      'a deploy from after its own slot',
      () => answerAt(1_000, [data(programDataBytes(1_001, authority))]),
      /newer than its own slot$/,
    ],
    ['a JSON-RPC error', () => Response.json(error), /returned JSON-RPC error -32005$/],
  ])('%s', async (_, second, reason, first = [program]) => {
    await using chain = startChain();
    chain.fault = () => (chain.calls.length === 1 ? answerAt(1_000, first) : second());
    expect(await read([chain], [one])).toEqual({
      kind: 'failed',
      reasons: [expect.stringMatching(reason)] as never,
    }); // one matcher
  });

  test('but a deploy in the slot of the answer is valid', async () => {
    await using chain = startChain();
    chain.deploy(one, 1_000, authority);
    expect((await read([chain], [one])).kind).toBe('read');
  });
});

const bad = () => new Response('<html>', { status: 502 });
const FLOOR = floorOf(new Map([[one, upgradeable(900n)]]));

/** Two backends of one chain, on which program one was deployed in slot 900. */
async function withTwo(test: (first: Chain, second: Chain) => Promise<void>): Promise<void> {
  await using first = startChain();
  await using second = startChain();
  for (const chain of [first, second]) chain.deploy(one, 900, authority);
  await test(first, second);
}

test('only the first backend is read while it answers, and the next gives the whole reading when it fails', () =>
  withTwo(async (first, second) => {
    first.fault = () => (first.calls.length === 2 ? bad() : undefined);
    expect(await read([first, second], [one])).toMatchObject({
      kind: 'read',
      reasons: ['rpc 0 returned HTTP 502'],
    });
    expect(asked(second)).toHaveLength(2);
    expect(await read([first, second], [one])).toMatchObject({ kind: 'read', reasons: [] });
    expect(asked(second)).toHaveLength(2);
  }));

test('a backend that lags or reports an older deploy at a newer slot is skipped', () =>
  withTwo(async (first, second) => {
    first.slot = 999;
    expect(await read([first, second], [one], FLOOR)).toMatchObject({
      kind: 'read',
      reading: { contextSlot: 1_000n },
      reasons: ['rpc 0 is behind the previous reading'],
    });
    first.slot = 2_000;
    first.deploy(one, 899, authority);
    expect(await read([first, second], [one], FLOOR)).toMatchObject({
      kind: 'read',
      reasons: [`rpc 0 reports an older deploy of ${one} than the previous reading`],
    });
  }));

test('all lagging and all failing are told apart, with the reason of each', () =>
  withTwo(async (first, second) => {
    first.slot = second.slot = 999;
    expect((await read([first, second], [one], FLOOR)).kind).toBe('behind');
    second.fault = bad;
    expect((await read([first, second], [one], FLOOR)).kind).toBe('failed');
    first.fault = bad;
    const reasons = ['rpc 0 returned HTTP 502', 'rpc 1 returned HTTP 502'];
    expect(await read([first, second], [one])).toEqual({ kind: 'failed', reasons });
  }));

describe('a program whose deploy slot falls (E38)', () => {
  const put = (chain: Chain, slot: number, status: number) =>
    chain.accounts.set(one, { owner: LOADER_V4, data: programV4Bytes(slot, authority, status) });
  /** The next reading of the two programs, and the floor that it leaves. */
  async function next(chain: Chain, at: Floor | undefined) {
    const outcome = await read([chain], [one, two], at);
    if (outcome.kind !== 'read') throw new Error(JSON.stringify(outcome.reasons));
    const deploySlots = seenAfter(at?.deploySlots ?? new Map(), outcome.reading);
    const deploys = deploysBetween(at?.deploySlots ?? new Map(), outcome.reading);
    return { ...outcome, deploys, floor: { ...outcome.reading, deploySlots, genesisHash: undefined } };
  }

  test('hides no deploy of another program, nor its own next one', async () => {
    await using chain = startChain();
    put(chain, 900, 1);
    chain.deploy(two, 800, authority);
    const first = await next(chain, undefined);
    chain.slot = 1_100;
    put(chain, 0, 0);
    chain.deploy(two, 1_050, authority);
    const second = await next(chain, first.floor);
    expect(second.reasons).toEqual([`rpc 0 reports an older deploy of ${one} than the previous reading`]);
    expect(second.reading.programs.get(one)).toEqual(upgradeable(0n));
    expect(second.deploys).toEqual([{ program: two, previousSlot: 800n, deploySlot: 1_050n }]);
    chain.slot = 1_200;
    expect((await next(chain, second.floor)).reasons).toEqual([]);
    put(chain, 1_150, 1);
    const third = await next(chain, second.floor);
    expect(third.deploys).toEqual([{ program: one, previousSlot: 900n, deploySlot: 1_150n }]);
  });

  test('in the same slot is a contradiction, and is rejected', async () => {
    await using chain = startChain();
    put(chain, 900, 1);
    const { floor } = await next(chain, undefined);
    put(chain, 0, 0);
    expect(await read([chain], [one, two], floor)).toMatchObject({ kind: 'behind' });
  });
});

describe('the genesis hash', () => {
  const [hash, there]: [string, string] = [addressOf('genesis'), addressOf('another genesis')];
  const telling = (chain: Chain, told: unknown = hash) => {
    chain.fault = ({ method }) =>
      method === 'getGenesisHash' ? Response.json({ jsonrpc: '2.0', id: 1, result: told }) : undefined;
  };
  const here: Floor = { ...FLOOR, genesisHash: hash };

  test('is that of the backend that was read, also when none was told before', () =>
    withTwo(async (first, second) => {
      first.fault = bad;
      telling(second);
      for (const before of [undefined, FLOOR, here])
        expect(await read([first, second], [one], before)).toMatchObject({ kind: 'read', genesisHash: hash });
      expect(first.calls.map(({ method }) => method)).not.toContain('getGenesisHash');
    }));

  test.each([hash.slice(8), null, 5])('is none when a backend tells %p, and no reason to refuse it', (told) =>
    withTwo(async (first) => {
      telling(first, told);
      const expected = { kind: 'read', reasons: [], genesisHash: undefined };
      expect(await read([first], [one], here)).toMatchObject(expected);
    }),
  );

  test('of another chain skips its backend, whatever it reports', () =>
    withTwo(async (first, second) => {
      telling(first, there);
      telling(second);
      first.slot = 5_000;
      first.deploy(one, 4_000, authority);
      expect(await read([first, second], [one], here)).toMatchObject({
        kind: 'read',
        reading: { contextSlot: 1_000n },
        reasons: ['rpc 0 is on a different chain than the previous reading'],
      });
    }));

  test.each([900, 5_000])('of another chain in all backends is a chain begun anew, also at slot %i', (slot) =>
    withTwo(async (first, second) => {
      for (const chain of [first, second]) {
        telling(chain, there);
        chain.slot = slot;
      }
      first.deploy(one, 3, authority);
      expect(await read([first, second], [one], here)).toMatchObject({
        kind: 'other-chain',
        genesisHash: there,
        reading: { contextSlot: BigInt(slot), programs: new Map([[one, upgradeable(3n)]]) },
      });
    }),
  );

  test('of several other chains, or of one while another backend is away, is a failure', () =>
    withTwo(async (first, second) => {
      telling(first, there);
      telling(second, addressOf('a third genesis'));
      expect((await read([first, second], [one], here)).kind).toBe('failed');
      second.fault = bad;
      expect(await read([first, second], [one], here)).toEqual({
        kind: 'failed',
        reasons: ['rpc 0 is on a different chain than the previous reading', 'rpc 1 returned HTTP 502'],
      });
    }));
});

test('programs that vanish at once are implausible while another backend has them or is away', () =>
  withTwo(async (first, second) => {
    const many = Array.from({ length: 20 }, (_, i) => addressOf(`program ${i}`));
    const full = floorOf(new Map(many.map((address) => [address, { status: 'other_loader' }])));
    const gone = 'reports 20 of 20 programs missing at once';
    const reasons = [`rpc 0 ${gone}`, `rpc 1 ${gone}`];
    expect(await read([first, second], many, full)).toMatchObject({ kind: 'implausible', reasons });
    expect((await read([first], many, full)).kind).toBe('implausible');
    expect((await read([first], many)).kind).toBe('read');
    for (const address of many) second.deploy(address, 5, authority);
    const outcome = await read([first, second], many, full);
    expect(outcome).toMatchObject({ kind: 'read', reasons: [`rpc 0 ${gone}`] });
    expect(outcome.kind === 'read' && outcome.reading.programs.get(addressOf('program 0'))?.status).toBe(
      'upgradeable',
    );
    second.fault = bad;
    expect((await read([first, second], many, full)).kind).toBe('failed');
  }));
