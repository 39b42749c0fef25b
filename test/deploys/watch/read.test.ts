import type { Address } from '@solana/kit';
import { describe, expect, test } from 'bun:test';
import { deploysBetween, type DeploySlots, type Reading, seenAfter } from '../../../deploys/watch/change.ts';
import { createRead, type Floor } from '../../../deploys/watch/read.ts';
import { createRpcBackend } from '../../../deploys/watch/rpc.ts';
import { systemClock } from '../../../shared/clock.ts';
import {
  addressOf,
  type Fault,
  LOADER_V2,
  LOADER_V3,
  LOADER_V4,
  programBytes,
  programDataBytes,
  programV4Bytes,
  startChain,
} from '../../fakes/chain.ts';

const { signal } = new AbortController();
const authority = addressOf('authority');
const [one, two, three, four] = [addressOf('1'), addressOf('2'), addressOf('3'), addressOf('4')] as const;

const program = addressOf('program');
const floor: Floor = {
  contextSlot: 1_000n,
  programs: new Map([[program, { status: 'upgradeable', deploySlot: 900n, upgradeAuthority: authority }]]),
  deploySlots: new Map([[program, 900n]]),
  genesisHash: undefined,
};

type Chain = ReturnType<typeof startChain>;
function readOver(
  chains: readonly Chain[],
  at?: Floor,
  over = signal,
  addresses: readonly Address[] = [program],
) {
  const backends = chains.map(({ url }, i) =>
    createRpcBackend({ name: `rpc ${i}`, url, key: undefined }, { fetch, clock: systemClock }),
  );
  return createRead(backends, addresses)(at, over);
}
/** A reading of one backend, not older than `slot`. */
const read = (chain: Chain, addresses: readonly Address[], slot?: bigint) =>
  readOver(
    [chain],
    slot === undefined ? undefined : { ...floor, contextSlot: slot, programs: new Map() },
    signal,
    addresses,
  );
const accountCalls = (chain: Chain) => chain.calls.filter(({ method }) => method === 'getMultipleAccounts');
type Options = { commitment: string; encoding: string; dataSlice: object; minContextSlot?: number };
const optionsOf = (chain: Chain) => accountCalls(chain).map(({ params }) => params[1] as Options); // as this project sends it

test('a reading tells every state of spec 3.1', async () => {
  await using chain = startChain();
  chain.deploy(one, 900, authority);
  chain.deploy(two, 800);
  chain.accounts.set(three, { owner: LOADER_V2, data: Buffer.from('\x7fELF') });
  const outcome = await read(chain, [four, three, two, one]);
  expect(outcome).toMatchObject({
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
  expect(accountCalls(chain).map(({ params }) => (params[0] as unknown[]).length)).toEqual([
    100, 15, 100, 15,
  ]);
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
  expect(accountCalls(chain)).toHaveLength(1);
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
    expect(accountCalls(chain)).toHaveLength(6);
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
    expect(await read(chain, [one], 1_001n)).toMatchObject({ kind: 'behind' });
    expect((await read(chain, [one], 1_000n)).kind).toBe('read');
  });

  test('and when it ignores the wanted slot and answers older', async () => {
    await using chain = startChain();
    chain.fault = () => answerAt(999, [null]);
    expect(await read(chain, [one], 1_000n)).toMatchObject({ kind: 'behind' });
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
    chain.fault = () => answerAt(1_000, chain.calls.length === 1 ? programs : datas);
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
  expect(await read(chain, [one])).toEqual({ kind: 'failed', reasons: [`rpc 0 ${reason}`] });
});

function answerAt(slot: number, value: readonly unknown[]): Response {
  return Response.json({ jsonrpc: '2.0', id: 1, result: { context: { slot }, value } });
}

const methodsOf = (chain: Chain) => chain.calls.map(({ method }) => method);
const bad = () => new Response('<html>', { status: 502 });
async function withTwo(test: (first: Chain, second: Chain) => Promise<void>): Promise<void> {
  await using first = startChain();
  await using second = startChain();
  first.deploy(program, 900, authority);
  second.deploy(program, 900, authority);
  await test(first, second);
}

test('the first backend is asked alone while it answers', () =>
  withTwo(async (first, second) => {
    expect(await readOver([first, second])).toMatchObject({ kind: 'read', reasons: [] });
    expect(second.calls).toEqual([]);
  }));

test('the next backend gives the whole reading when the first fails in the middle', () =>
  withTwo(async (first, second) => {
    first.fault = () => (first.calls.length === 2 ? bad() : undefined);
    const outcome = await readOver([first, second]);
    expect(outcome).toMatchObject({ kind: 'read', reasons: ['rpc 0 answered HTTP 502'] });
    expect(methodsOf(second)).toEqual(['getMultipleAccounts', 'getMultipleAccounts', 'getGenesisHash']);
  }));

test('when every backend fails each one’s reason is told', () =>
  withTwo(async (first, second) => {
    first.fault = second.fault = bad;
    expect(await readOver([first, second])).toEqual({
      kind: 'failed',
      reasons: ['rpc 0 answered HTTP 502', 'rpc 1 answered HTTP 502'],
    });
  }));

test('a lagging backend is passed over for one that is not', () =>
  withTwo(async (first, second) => {
    first.slot = 999;
    expect(await readOver([first, second], floor)).toMatchObject({
      kind: 'read',
      reading: { contextSlot: 1_000n },
      reasons: ['rpc 0 is behind the reading before'],
    });
  }));

test('a backend that shows an older deploy at a newer slot is not believed', () =>
  withTwo(async (first, second) => {
    first.slot = 2_000;
    first.deploy(program, 899, authority);
    expect(await readOver([first, second], floor)).toMatchObject({
      kind: 'read',
      reasons: [`rpc 0 shows an older deploy of ${program} than the reading before`],
    });
  }));

describe('a program whose deploy slot falls (E38)', () => {
  const [fallen, other] = [addressOf('fallen'), addressOf('other')];
  const addresses = [fallen, other];
  const putV4 = (chain: Chain, slot: number, status: number) =>
    chain.accounts.set(fallen, { owner: LOADER_V4, data: programV4Bytes(slot, authority, status) });
  const floorAfter = (before: DeploySlots, reading: Reading): Floor => ({
    ...reading,
    deploySlots: seenAfter(before, reading),
    genesisHash: undefined,
  });
  async function readingOf(chain: Chain, at: Floor | undefined) {
    const outcome = await readOver([chain], at, signal, addresses);
    if (outcome.kind !== 'read') throw new Error(JSON.stringify(outcome.reasons));
    return outcome;
  }

  test('stops no other: their deploys are seen, and its own next one is too', async () => {
    await using chain = startChain();
    putV4(chain, 900, 1);
    chain.deploy(other, 800, authority);
    const { reading } = await readingOf(chain, undefined);
    const first = floorAfter(new Map(), reading);

    chain.slot = 1_100;
    putV4(chain, 0, 0);
    chain.deploy(other, 1_050, authority);
    const second = await readingOf(chain, first);
    expect(second.reasons).toEqual([`rpc 0 shows an older deploy of ${fallen} than the reading before`]);
    expect(second.reading.programs.get(fallen)).toMatchObject({ status: 'upgradeable', deploySlot: 0n });
    expect(deploysBetween(first.deploySlots, second.reading)).toEqual([
      { program: other, previousSlot: 800n, deploySlot: 1_050n },
    ]);

    chain.slot = 1_200;
    const fallenFloor = floorAfter(first.deploySlots, second.reading);
    expect((await readingOf(chain, fallenFloor)).reasons).toEqual([]);
    putV4(chain, 1_150, 1);
    const third = await readingOf(chain, fallenFloor);
    expect(deploysBetween(fallenFloor.deploySlots, third.reading)).toEqual([
      { program: fallen, previousSlot: 900n, deploySlot: 1_150n },
    ]);
  });

  test('in the slot of the reading before is a contradiction, and not believed', async () => {
    await using chain = startChain();
    putV4(chain, 900, 1);
    const { reading } = await readingOf(chain, undefined);
    putV4(chain, 0, 0);
    const at = floorAfter(new Map(), reading);
    expect(await readOver([chain], at, signal, addresses)).toMatchObject({ kind: 'behind' });
  });
});

test('all lagging is told apart from all failing', () =>
  withTwo(async (first, second) => {
    first.slot = second.slot = 999;
    expect((await readOver([first, second], floor)).kind).toBe('behind');
    second.fault = bad;
    expect((await readOver([first, second], floor)).kind).toBe('failed');
  }));

test('an aborted reading asks nobody', () =>
  withTwo(async (first, second) => {
    expect(await readOver([first, second], undefined, AbortSignal.abort())).toEqual({
      kind: 'failed',
      reasons: [],
    });
    expect([...first.calls, ...second.calls]).toEqual([]);
  }));

describe('the genesis hash', () => {
  const hash: string = addressOf('genesis');
  const telling = (chain: Chain, told: unknown = hash) => {
    chain.fault = ({ method }) =>
      method === 'getGenesisHash' ? Response.json({ jsonrpc: '2.0', id: 1, result: told }) : undefined;
  };
  const here: Floor = { ...floor, genesisHash: hash };
  const there: string = addressOf('another genesis');

  test('is that of the backend that was read', () =>
    withTwo(async (first, second) => {
      first.fault = bad;
      telling(second);
      expect(await readOver([first, second])).toMatchObject({ kind: 'read', genesisHash: hash });
      expect(methodsOf(first)).not.toContain('getGenesisHash');
    }));

  test('is asked for with every reading, and learnt late when it was not told at first', () =>
    withTwo(async (first, second) => {
      telling(first);
      for (const before of [floor, here])
        expect(await readOver([first, second], before)).toMatchObject({ kind: 'read', genesisHash: hash });
      expect(second.calls).toEqual([]);
    }));

  test('of another chain passes its backend over, whatever it shows', () =>
    withTwo(async (first, second) => {
      telling(first, there);
      telling(second);
      first.slot = 5_000;
      first.deploy(program, 4_000, authority);
      expect(await readOver([first, second], here)).toMatchObject({
        kind: 'read',
        reading: { contextSlot: 1_000n },
        reasons: ['rpc 0 is of another chain than the reading before'],
      });
    }));

  test.each([900, 5_000])('of another chain in all backends is a chain begun anew, also at slot %i', (slot) =>
    withTwo(async (first, second) => {
      for (const chain of [first, second]) {
        telling(chain, there);
        chain.slot = slot;
      }
      first.deploy(program, 3, authority);
      const outcome = await readOver([first, second], here);
      expect(outcome).toMatchObject({ kind: 'other-chain', genesisHash: there });
      const reading = outcome.kind === 'other-chain' ? outcome.reading : undefined;
      expect(reading?.contextSlot).toBe(BigInt(slot));
      expect(reading?.programs.get(program)).toMatchObject({ deploySlot: 3n });
    }),
  );

  test('of several other chains, or of one while another backend is away, is a failure', () =>
    withTwo(async (first, second) => {
      telling(first, there);
      telling(second, addressOf('a third genesis'));
      expect((await readOver([first, second], here)).kind).toBe('failed');
      second.fault = bad;
      expect(await readOver([first, second], here)).toEqual({
        kind: 'failed',
        reasons: ['rpc 0 is of another chain than the reading before', 'rpc 1 answered HTTP 502'],
      });
    }));

  test.each([hash.slice(8), null, 5])('is none when a backend tells %p, and no reason to refuse it', (told) =>
    withTwo(async (first) => {
      telling(first, told);
      const expected = { kind: 'read', reasons: [], genesisHash: undefined };
      expect(await readOver([first], here)).toMatchObject(expected);
    }),
  );
});

describe('programs that vanish at once', () => {
  const many = Array.from({ length: 20 }, (_, i) => addressOf(`program ${i}`));
  const full: Floor = {
    contextSlot: 1_000n,
    programs: new Map(many.map((address) => [address, { status: 'other_loader' }])),
    deploySlots: new Map(),
    genesisHash: undefined,
  };
  const deployAll = (chain: Chain) => {
    for (const address of many) chain.deploy(address, 5, authority);
  };
  const program0 = addressOf('program 0');
  const gone = 'shows 20 of 20 programs gone at once';
  test('are not believed of one backend while the next still has them', () =>
    withTwo(async (first, second) => {
      deployAll(second);
      const outcome = await readOver([first, second], full, signal, many);
      expect(outcome).toMatchObject({ kind: 'read', reasons: [`rpc 0 ${gone}`] });
      expect(outcome.kind === 'read' && outcome.reading.programs.get(program0)?.status).toBe('upgradeable');
    }));

  test('are told apart when every backend says so, also a single one', () =>
    withTwo(async (first, second) => {
      const reasons = [`rpc 0 ${gone}`, `rpc 1 ${gone}`];
      expect(await readOver([first, second], full, signal, many)).toMatchObject({
        kind: 'implausible',
        reasons,
      });
      expect((await readOver([first], full, signal, many)).kind).toBe('implausible');
    }));

  test('are no more than a failure while another backend cannot be asked', () =>
    withTwo(async (first, second) => {
      second.fault = bad;
      expect((await readOver([first, second], full, signal, many)).kind).toBe('failed');
    }));

  test('are believed when nothing was read before in this run', () =>
    withTwo(async (first) => {
      expect((await readOver([first], undefined, signal, many)).kind).toBe('read');
    }));
});
