import { describe, expect, test } from 'bun:test';
import type { BackendConfig } from '../../../shared/config/backends.ts';
import { failure } from '../../fakes/backend.ts';
import { type LiveState, startLiveNode } from '../../fakes/live-node.ts';
import { declaredUnknown, METHODS } from '../../../shared/config/methods.ts';
import { ACCOUNT_ABC, backendOf, callOf, forwardOf } from './of.ts';
import { rpc } from './straight-way.ts';
import { createVirtualClock } from '../virtual-clock.ts';

type Node = Readonly<{ state?: Partial<LiveState>; config?: Partial<BackendConfig> }>;

/** Nodes named a, b, c … behind a pool that is probed when the test says so. */
async function pooled(...given: readonly Node[]) {
  const clock = createVirtualClock();
  const nodes = given.map(({ state }) => startLiveNode(state));
  const backends = given.map(({ config }, i) =>
    backendOf({ name: 'abcde'[i] ?? '?', at: nodes[i]?.url ?? '', clock: clock.clock, ...config }),
  );
  const changes: string[] = [];
  const { pool } = forwardOf(backends, clock.clock, {
    onChange: ({ config, health }) =>
      void changes.push(`${config.name}: ${health.excludedBecause ?? 'back'}`),
    onGap: (gap) => void changes.push(gap === undefined ? 'no gap' : `gap: ${gap.from} to ${gap.to}`),
  });
  return {
    pool,
    backends,
    changes,
    nodes: nodes.map(({ now }) => now),
    outs: () => backends.map(({ health }) => health.excludedBecause),
    order: () =>
      pool
        .inOrder(backends, { accountId: ACCOUNT_ABC, commitment: 'confirmed', slotMin: 0 })
        .map(({ config }) => config.name)
        .join(''),
    hang: (node: number, until: Promise<void>) =>
      nodes[node]?.probed(async (call) => {
        await until;
        return failure(call, -32601, 'Method not found');
      }),
    begin: () => pool.probeAll(new AbortController().signal),
    sleeping: clock.sleeping,
    advance: clock.advance,
    /** `rounds` probes two seconds apart, the chain five slots on each time for nodes that are not told otherwise. */
    async pass(rounds: number, still: readonly number[] = []) {
      for (let i = 0; i < rounds; i++) {
        clock.advance(2_000);
        nodes.forEach(({ now }, n) => void (still.includes(n) || (now.slot += 5)));
        await pool.probeAll(new AbortController().signal);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { client } of backends) client.close();
      for (const node of nodes) await node[Symbol.asyncDispose]();
    },
  };
}

describe('probes', () => {
  test('learn the slots of each commitment, the first block and the chain', async () => {
    await using all = await pooled({ state: { slot: 1_000, floor: 17 } });
    await all.pass(1);
    expect(all.backends[0]?.slots).toEqual({
      tip: { processed: 1_005, confirmed: 1_004, finalized: 973 },
      firstLocalBlock: 17,
      firstBlock: 17,
    });
    expect(all.pool.floor()).toBe(17);
  });

  test('G10 leave out a node of another chain than most at once, and nobody is ever sent to it', async () => {
    await using all = await pooled({ state: { genesis: 'G2', floor: 3 } }, { state: { floor: 9 } }, {});
    await all.pass(1);
    expect(all.changes).toEqual(['a: of another chain']);
    expect(all.order()).toBe('bc');
    expect(all.backends[0]?.slots).toEqual({
      tip: { processed: 0, confirmed: 0, finalized: 0 },
      firstLocalBlock: undefined,
      firstBlock: undefined,
    });
    const [, b, c] = all.nodes;
    if (b !== undefined && c !== undefined) b.down = c.down = true;
    await all.pass(3);
    expect(all.order()).toBe('bc');
  });

  test('learn the first block of a node that was down when they began, as soon as it is back', async () => {
    await using all = await pooled({ state: { down: true, floor: 7 } }, {});
    await all.pass(3);
    expect([all.backends[0]?.slots.firstLocalBlock, all.pool.floor()]).toEqual([undefined, undefined]);
    const [a] = all.nodes;
    if (a !== undefined) a.down = false;
    await all.pass(1);
    expect([all.backends[0]?.slots.firstLocalBlock, all.pool.floor()]).toEqual([7, 0]);
  });

  test('know an asset server by any answer, and leave it out when none comes', async () => {
    await using all = await pooled({}, { config: { profile: 'das', lanes: ['assets'] } });
    all.hang(1, Promise.resolve());
    await all.pass(3);
    expect(all.outs()).toEqual([undefined, undefined]);
    await using dead = await pooled(
      {},
      { config: { profile: 'das', lanes: ['assets'] }, state: { down: true } },
    );
    await dead.pass(2);
    expect(dead.outs()).toEqual([undefined, 'unreachable']);
  });
});

test('the floor of the pool is the lowest first block of all that have history', async () => {
  await using all = await pooled(
    { state: { floor: 900 } },
    { state: { floor: 432_000 }, config: { profile: 'old-faithful', lanes: ['archive'] } },
    { state: { floor: 3 }, config: { lanes: ['state'] } },
  );
  expect(all.pool.floor()).toBeUndefined();
  await all.pass(1);
  expect(all.pool.floor()).toBe(900);
});

test('a gap between archives and live nodes is told once, and its end too', async () => {
  await using all = await pooled(
    { state: { floor: 700 } },
    { state: { slot: 500 }, config: { profile: 'superbank', lanes: ['archive'] } },
  );
  await all.pass(3, [1]);
  expect(all.changes).toEqual(['gap: 500 to 699']);
  const [, archive] = all.nodes;
  if (archive !== undefined) archive.slot = 800;
  await all.pass(2, [1]);
  expect(all.changes).toEqual(['gap: 500 to 699', 'no gap']);
});

describe('what is finalized', () => {
  test('is what all live nodes that take part have finalized, and nothing before each has told', async () => {
    await using all = await pooled({ state: { slot: 1_010 } }, { state: { slot: 1_000 } }, ARCHIVE);
    expect(all.pool.finality()).toEqual({ slot: 0, resets: 0 });
    await all.pass(1);
    expect(all.pool.finality()).toEqual({ slot: 973, resets: 0 });
    const [, b] = all.nodes;
    if (b === undefined) throw new Error('two nodes');
    b.down = true;
    await all.pass(3, [1]);
    expect(all.pool.finality()).toEqual({ slot: 998, resets: 0 });
    b.down = false;
    b.slot = 1_025;
    await all.pass(3);
    expect(all.pool.finality().resets).toBe(0);
  });

  test('is not what an answer shows: a caller may have it read at another commitment than it seems', async () => {
    await using all = await pooled({ state: { slot: 1_000 } });
    await all.pass(1);
    const before = all.pool.finality();
    const [a] = all.backends;
    if (a === undefined) throw new Error('a node');
    all.pool.learn(a, { accountId: 7, commitment: 'finalized', slotMin: 0 }, 1_100);
    expect(all.pool.finality()).toEqual(before);
  });

  test.each([
    ['of another genesis', { slot: 1_000, genesis: 'G2' }],
    ['set far back', { slot: 500 }],
  ])('may not be so any more when the chain is %s', async (_, state) => {
    await using all = await pooled({ state: { slot: 1_000 } });
    await all.pass(1);
    Object.assign(all.nodes[0] ?? {}, state);
    await all.pass(15);
    expect(all.pool.finality().resets).toBe(1);
    await all.pass(15);
    expect(all.pool.finality().resets).toBe(1);
  });

  test('may not be so any more when a node turns out to be of another chain', async () => {
    await using all = await pooled({}, {}, { state: { genesis: 'G2' } });
    await all.pass(2);
    expect(all.pool.finality()).toEqual({ slot: 978, resets: 1 });
  });
});

const CONFIRMED = { accountId: ACCOUNT_ABC, commitment: 'confirmed', slotMin: 0 } as const;

/** A pool of these slots, as the last probe showed them, what a call of an account then needs, and what a backend is known to have. */
async function shown(...slots: readonly number[]) {
  const all = await pooled(...slots.map((slot) => ({ state: { slot: slot - 5 } })));
  await all.pass(1);
  const call = callOf('getBalance', '["x",{"commitment":"confirmed"}]');
  const method = METHODS.get('getBalance') ?? declaredUnknown('getBalance');
  return {
    ...all,
    learn(index: number, slot: number) {
      const backend = all.backends[index];
      if (backend !== undefined) all.pool.learn(backend, CONFIRMED, slot);
    },
    needed: () => all.pool.needOf(call, method, ACCOUNT_ABC).slotMin,
    tips: () => all.backends.map(({ slots: { tip } }) => tip.confirmed),
  };
}

describe('G10 a slot far above the last probe', () => {
  test('G10 of an answer is not believed: neither of its backend nor as what its caller has been shown', async () => {
    await using all = await shown(1_000, 1_000);
    for (const slot of [999_999_999, 1e14, 1_065]) all.learn(0, slot);
    expect([all.tips(), all.needed()]).toEqual([[999, 999], 0]);
    all.learn(0, 1_064);
    expect([all.tips(), all.needed()]).toEqual([[1_064, 999], 1_064]);
  });

  test('G10 is one by the time since then: ten slots a second and 64 are believed', async () => {
    await using all = await shown(1_000, 1_000);
    all.advance(10_050);
    all.learn(0, 1_165);
    expect(all.needed()).toBe(0);
    all.learn(0, 1_164);
    expect(all.needed()).toBe(1_164);
  });

  test('G10 of a probe is not believed beside others, which say what its backend is measured by', async () => {
    for (const others of [[1_000], [1_000, 1_010], [1_000, 1_010, 1_020]]) {
      await using all = await shown(999_999_999, ...others);
      const best = others.length === 1 ? 1_000 : Math.max(...others);
      expect(all.backends[0]?.slots.tip).toEqual({ processed: 0, confirmed: 0, finalized: 0 });
      expect(all.tips().slice(1)).toEqual(others.map((slot) => slot - 1));
      expect(all.pool.finality().slot).toBe(968);
      all.learn(0, 999_999_999);
      expect([all.needed(), all.tips()[0]]).toEqual([0, 0]);
      all.learn(0, best + 63);
      expect(all.needed()).toBe(best + 63);
    }
  });

  test('G10 of the only node is believed, and so is what answers say before any probe', async () => {
    await using all = await shown(999_999_999);
    expect(all.tips()).toEqual([999_999_998]);
    await using other = await pooled({}, {});
    const [a] = other.backends;
    if (a === undefined) throw new Error('two nodes');
    other.pool.learn(a, CONFIRMED, 5_000);
    expect(a.slots.tip.confirmed).toBe(5_000);
  });

  test('G10 is believed again when its node comes back to the others, or they to it', async () => {
    await using all = await shown(999_999_999, 1_000, 1_000);
    const [a, b] = all.nodes;
    if (a !== undefined) a.slot = 1_010;
    await all.pass(1);
    expect(all.tips()).toEqual([1_014, 1_004, 1_004]);
    if (b !== undefined) b.slot = 5_000;
    await all.pass(1);
    expect(all.tips()).toEqual([1_019, 0, 1_009]);
    for (const node of all.nodes) node.slot = 5_010;
    await all.pass(1);
    expect(all.tips()).toEqual([5_014, 5_014, 5_014]);
  });
});

const ARCHIVE: Node = { config: { profile: 'old-faithful', lanes: ['archive'] }, state: { slot: 500 } };

/** A backend that says whatever it is told to; `open` counts its connections. */
function startSaying(say: (socket: Bun.Socket) => unknown) {
  let open = 0;
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: () => void open++,
      close: () => void open--,
      data: (socket) => void say(socket),
    },
  });
  return {
    url: `http://127.0.0.1:${listener.port}/`,
    open: () => open,
    [Symbol.dispose]: () => void listener.stop(true),
  };
}

const JSON_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';

test('B12 a probe does not take the answer to a call for its own, and closes the connection that it came over', async () => {
  const late = rpc('"ABCDEFGHIJKLMNOP"', '7');
  using backend = startSaying((socket) =>
    socket.write(`${JSON_HEAD}content-length: ${late.length}\r\n\r\n${late}`),
  );
  const { clock } = createVirtualClock();
  const one = backendOf({ at: backend.url, clock });
  await forwardOf([one], clock).pool.probeAll(new AbortController().signal);
  while (backend.open() > 0) await Bun.sleep(1); // bounded by the test's own timeout
  expect(one.slots.tip.processed).toBe(0);
  one.client.close();
});

test('a backend that drips every answer delays no other, is unreachable, and keeps no connection and no stop waiting', async () => {
  const { clock, advance } = createVirtualClock();
  await using good = startLiveNode();
  using bad = startSaying(async (socket) => {
    socket.write(`${JSON_HEAD}content-length: 3000\r\n\r\n{`);
    for (; socket.readyState > 0; await Bun.sleep(5)) socket.write(' '); // drips without end
  });
  const backends = [good, bad].map(({ url: at }) => backendOf({ at, clock }));
  const { probeAll } = forwardOf(backends, clock).pool;
  const stop = new AbortController();
  for (let round = 0; round < 4; round++) {
    const looking = probeAll(stop.signal);
    while (bad.open() === 0) await Bun.sleep(1); // until it has been asked
    await Bun.sleep(20); // the good one answers meanwhile
    advance(1_000);
    await looking;
    advance(1_000); // the questions' own limit
    while (bad.open() > 0) await Bun.sleep(1); // bounded by the test's own timeout
    good.now.slot += 5;
  }
  expect(backends.map(({ health }) => health.excludedBecause)).toEqual([undefined, 'unreachable']);
  expect(backends[0]?.slots.tip.processed).toBe(1_015);

  const last = probeAll(stop.signal);
  while (bad.open() === 0) await Bun.sleep(1); // until it has been asked
  stop.abort();
  advance(1_000);
  await last;
  while (bad.open() > 0) await Bun.sleep(1); // bounded by the test's own timeout
  expect(bad.open()).toBe(0);
  for (const { client } of backends) client.close();
});
