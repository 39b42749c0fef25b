import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { failure, result } from '../fakes/backend.ts';
import { startLiveNode } from '../fakes/live-node.ts';
import { startGateway } from '../started/gateway.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';

/** Three live nodes behind a gateway whose probes run on the test's clock. */
let nodes: ReturnType<typeof startLiveNode>[];
let gateway: Awaited<ReturnType<typeof startGateway>>;
let clock: ReturnType<typeof createVirtualClock>;
const NAMES = ['a', 'b', 'c'];

beforeEach(async () => {
  clock = createVirtualClock();
  nodes = NAMES.map(() => startLiveNode());
  await start();
});

async function start() {
  const backends = nodes.map(({ url }, i) => ({ name: NAMES[i], url }));
  const plans = { scale: { rps: 1_000_000, burst: 1_000_000 } };
  gateway = await startGateway({ backends, plans }, clock.clock);
  gateway.key(); // without an account it is not ready
  gateway.maintain();
}
afterEach(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const node of nodes) await node[Symbol.asyncDispose]();
});

/** What a page of the operator says of the nodes. */
const health = async () => (await fetch(new URL('/health', gateway.url))).text();

/** The same when the host has been looked at next, which is done once a second. */
async function nextHealth(): Promise<string> {
  for (let quarter = 0; quarter < 5; quarter++) {
    clock.advance(250);
    await new Promise(setImmediate);
  }
  return health();
}

/** Lets `seconds` go by, a probe every two of them; nodes that are not in `still` go on by five slots each time. */
async function pass(seconds: number, still: readonly number[] = []) {
  for (let s = 0; s < seconds; s += 2) {
    nodes.forEach(({ now }, i) => void (still.includes(i) || (now.slot += 5)));
    const before = await probes();
    for (let step = 0; step < 8; step++) {
      clock.advance(250);
      await new Promise(setImmediate);
    }
    while ((await probes()) === before) await Bun.sleep(1); // until the round's answers are in
  }
}

/** A number that changes with every round of probes: the newest slot that the metrics show. */
async function probes(): Promise<string> {
  const text = await gateway.gateway.metrics.text();
  return text
    .split('\n')
    .filter((line) => line.startsWith('sluice_gateway_backend_slot'))
    .join();
}

/** Which node answered a call of this key; the others were not asked. */
async function askedOf(key: string, params: unknown[] = ['x', { commitment: 'confirmed' }]): Promise<string> {
  const before = nodes.map(({ seen }) => seen.length);
  const response = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getBalance', params }, key);
  await response.text();
  return nodes.flatMap(({ seen }, i) => (seen.length > (before[i] ?? 0) ? [NAMES[i]] : [])).join('');
}

const nodeOf = (name: string) => {
  const node = nodes[NAMES.indexOf(name)];
  if (node === undefined) throw new Error(`no node ${name}`);
  return node;
};

/** A key of an account whose favourite is this node. */
async function keyOn(name: string): Promise<string> {
  for (;;) {
    const key = gateway.key();
    if ((await askedOf(key)) === name) return key;
  }
}

describe('G10 a node that is not at the tip', () => {
  test('G10 that lags is left out and comes back, each once', async () => {
    await pass(2);
    const key = await keyOn('a');
    nodeOf('a').now.slot -= 40;
    await pass(4);
    expect(await nextHealth()).toBe('ok, but not these backends: a (40 slots behind)\n');
    expect(await askedOf(key)).not.toBe('a');
    for (const catchUp of [20, 4, 4, 4]) {
      nodeOf('a').now.slot += catchUp;
      await pass(2);
    }
    await pass(6);
    expect(await nextHealth()).toBe('ok\n');
    await pass(12);
    expect(await askedOf(key)).toBe('a');
    const lines = gateway.lines.filter((line) => JSON.stringify(line).includes('"backend":"a"'));
    expect(lines.length).toBe(2);
  });

  test('G10 costs few questions: five of each node in two seconds, three more in thirty', async () => {
    const count = { probes: 0 };
    const [first] = nodes;
    first?.probed(({ id, method }) => {
      count.probes++;
      return Response.json({ jsonrpc: '2.0', id: JSON.parse(id), result: method === 'getHealth' ? 'ok' : 1 });
    });
    for (let ms = 0; ms < 60_000; ms += 250) {
      clock.advance(250);
      await Bun.sleep(1); // lets the answers of a round come in before the next is due
    }
    expect(count.probes).toBeLessThanOrEqual(31 * 4 + 3 * 3);
    expect(count.probes).toBeGreaterThan(60);
  });
});

test('G10 a gateway that has just looked does not look again before its time: two looks in a row are two seconds apart', async () => {
  const own = createVirtualClock();
  await using node = startLiveNode();
  let looks = 0;
  node.probed((call) => {
    if (call.method === 'getHealth') looks++;
    return failure(call, -32601, 'Method not found');
  });
  await using just = await startGateway({ backends: [{ name: 'a', url: node.url }] }, own.clock);
  await just.gateway.probeAll(new AbortController().signal);
  just.maintain();
  for (let ms = 250; ms < 2_000; ms += 250) {
    own.advance(250);
    await Bun.sleep(5); // a look that was begun would have arrived
    expect(looks).toBe(1);
  }
  own.advance(250);
  while (looks < 2) await Bun.sleep(1); // bounded by the test's own timeout
});

describe('G10 what stands in the data of an account', () => {
  const FAKE = '"context":{"slot":999999999},"slot":999999999';
  const DATA = `{${FAKE},"result":{${FAKE}}}`;
  const contextOf = (slot: number) => `"context":{"apiVersion":"4.2.0","slot":${slot}}`;

  test.each<[string, string, (slot: number) => string]>([
    ['getAccountInfo', 'parsed, before the context', (slot) => `{"value":${DATA},${contextOf(slot)}}`],
    ['getProgramAccounts', 'of a stream', () => `[{"account":${DATA}},"${'x'.repeat(100_000)}"]`],
  ])('G10 sets the slot of no backend: %s, %s', async (method, _, resultAt) => {
    await pass(2);
    const key = await keyOn('a');
    for (const node of nodes) node.script((call) => result(call, resultAt(node.now.slot - 1)));
    for (const commitment of ['processed', 'confirmed', 'finalized']) {
      const params = ['x', { commitment }];
      const answer = await gateway.post({ jsonrpc: '2.0', id: 1, method, params }, key);
      expect(await answer.text()).toContain('999999999');
    }
    // Those at the last probe, or of the real context.
    const slots = [...(await probes()).matchAll(/ (\d+)/g)].map(([, slot]) => Number(slot));
    expect([slots.length, Math.max(...slots) < 1_100]).toEqual([9, true]);
    const other = await keyOn('b');
    expect([await askedOf(other), await askedOf(key)]).toEqual(['b', 'a']);
  });
});

describe('G7 a pool in trouble', () => {
  test('G7 with every node unhealthy the least bad still serves', async () => {
    await pass(2);
    nodeOf('a').now.down = true;
    nodeOf('b').now.behind = 150;
    nodeOf('c').now.slot -= 60;
    await pass(6);
    expect((await fetch(new URL('/health', gateway.url))).status).toBe(503);
    expect(await askedOf(gateway.key())).toBe('c');
    const answer = await gateway.post({ jsonrpc: '2.0', id: 1, method: 'getHealth' }, gateway.key());
    expect(await answer.json()).toMatchObject({ error: { code: -32005 } });
  });

  test('G7 a node that comes back gets its callers little by little', async () => {
    await pass(2);
    const keys: string[] = [];
    while (keys.length < 40) {
      const key = gateway.key();
      if ((await askedOf(key)) === 'a') keys.push(key);
    }
    nodeOf('a').now.down = true;
    await pass(6);
    nodeOf('a').now.down = false;
    await pass(6);
    expect(await health()).toBe('ok\n');
    const share = async () => {
      let there = 0;
      for (const key of keys) if ((await askedOf(key)) === 'a') there++;
      return there / keys.length;
    };
    const shares = [await share()];
    for (let i = 0; i < 6; i++) {
      await pass(2);
      shares.push(await share());
    }
    expect(shares[0]).toBeLessThan(0.2);
    expect(shares.at(-1)).toBe(1);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
    expect(new Set(shares).size).toBeGreaterThan(3);
  });
});

describe('a caller never goes back in slots', () => {
  test('when its node dies, the call goes to a node that has seen its highest slot, not to the next by preference', async () => {
    await pass(2);
    const key = await keyOn('a');
    // The account's second choice must be the late one, else preference alone would pass this test.
    nodeOf('a').now.down = true;
    const second = (await askedOf(key)).replace('a', '');
    nodeOf('a').now.down = false;
    const third = second === 'b' ? 'c' : 'b';
    await pass(14);
    nodeOf(second).now.slot -= 10;
    await pass(2);
    expect(await askedOf(key)).toBe('a');
    nodeOf('a').now.down = true;
    expect((await askedOf(key)).replace('a', '')).toBe(third);
  });

  test('of a long answer that is older nothing is passed on, and its scan permit is held until the newer one has ended', async () => {
    await pass(2);
    const account = await keyOn('a');
    for (const node of nodes) {
      node.script((call) => {
        const slot = node.now.slot - 1;
        const rows = `"${'x'.repeat(4_000_000)}"`;
        return result(call, `{"context":{"apiVersion":"4.2.0","slot":${slot}},"value":[${rows}]}`);
      });
    }
    const params = ['x', { commitment: 'confirmed', withContext: true }];
    const scan = async () => {
      const call = { jsonrpc: '2.0', id: 1, method: 'getProgramAccounts', params };
      const text = await (await gateway.post(call, account)).text();
      return Number(/"slot":(\d+)/.exec(text)?.[1]);
    };
    const shown = await scan();
    nodeOf('a').now.slot -= 8;
    for (let i = 0; i < 3; i++) expect(await scan()).toBeGreaterThanOrEqual(shown);
    // As many scans at once as the plan allows run still: none of the permits was lost or given back twice.
    const together = await Promise.all(Array.from({ length: 16 }, scan));
    expect(together.every((slot) => slot >= shown)).toBe(true);
    expect(nodeOf('a').pending()).toBe(0);
  });
});

describe('G7 a node that hangs', () => {
  const post = (key: string, method: string, params: unknown[]) =>
    gateway.post({ jsonrpc: '2.0', id: 1, method, params }, key);
  /** Lets time go by without waiting for the round of probes, which waits for the node. */
  const step = async (seconds: number) => {
    for (let quarter = 0; quarter < 4 * seconds; quarter++) {
      clock.advance(250);
      await Bun.sleep(2); // turns of the loop, so that woken code has run and been answered
    }
  };
  const isWell = async () => (await fetch(new URL('/health', gateway.url))).ok;
  const arrived = async (name: string, method: string) => {
    while (!nodeOf(name).seen.some((call) => call.method === method)) await Bun.sleep(1); // until it is there
  };

  /** A read, a scan and a send that have arrived at the node that hangs. */
  const threeCalls = async (key: string) => {
    const read = post(key, 'getEpochInfo', []);
    const scan = post(key, 'getProgramAccounts', ['x']);
    const send = post(key, 'sendTransaction', ['x']);
    for (const method of ['getEpochInfo', 'getProgramAccounts', 'sendTransaction'])
      await arrived('a', method);
    return { read, scan, send };
  };

  test('G7 gives up what waits there when it does not answer its probe: reads at once, scans when it is left out, sends never', async () => {
    await pass(2);
    const key = await keyOn('a');
    await pass(2);
    nodeOf('a').now.hangs = true;
    const { read, scan, send } = await threeCalls(key);
    while ((await Promise.race([read, 'not yet'])) === 'not yet') await step(0.25);
    expect((await read).status).toBe(200);
    expect(await Promise.race([scan, 'not yet'])).toBe('not yet');
    await step(3);
    expect((await scan).status).toBe(200);
    expect(await Promise.race([send, 'not yet'])).toBe('not yet');
    await step(20);
    expect((await send).status).toBe(504);
    const sends = nodes.flatMap(({ seen }) => seen.filter(({ method }) => method === 'sendTransaction'));
    expect(sends.length).toBe(1);
  });

  test.each(['unhealthy', 'lagging'] as const)(
    'G7 one that is left out as %s gives up reads and scans to others, sends never',
    async (why) => {
      await pass(2);
      const key = await keyOn('a');
      nodeOf('a').script(() => new Promise(() => undefined));
      const { read, scan, send } = await threeCalls(key);
      if (why === 'unhealthy') nodeOf('a').now.behind = 150;
      else nodeOf('a').now.slot -= 60;
      await pass(4);
      expect([(await read).status, (await scan).status]).toEqual([200, 200]);
      expect(await Promise.race([send, 'not yet'])).toBe('not yet');
    },
  );

  test('G7 one of another chain gives up all but sends', async () => {
    await pass(2);
    const key = await keyOn('a');
    nodeOf('a').script(() => new Promise(() => undefined));
    const scan = post(key, 'getProgramAccounts', ['x']);
    await arrived('a', 'getProgramAccounts');
    nodeOf('a').now.genesis = 'G2';
    await pass(30);
    expect((await scan).status).toBe(200);
  });

  test('G7 gets the reads that it lost again, as soon as it answers again', async () => {
    await pass(2);
    const key = await keyOn('a');
    await pass(2);
    for (const { now } of nodes) now.hangs = true;
    const reads = ['getEpochInfo', 'getBlockTime'].map((method) => post(key, method, [5]));
    const send = post(key, 'sendTransaction', ['x']);
    for (const method of ['getEpochInfo', 'getBlockTime', 'sendTransaction']) await arrived('a', method);
    const silent = 'sluice_gateway_backend_failures_total{backend="a",kind="probe"} 1';
    while (!(await gateway.gateway.metrics.text()).includes(silent)) await step(0.25);
    expect(await Promise.race([...reads, send, 'not yet'])).toBe('not yet');
    for (const { now } of nodes) now.hangs = false;
    await step(3);
    for (const read of reads) expect((await read).status).toBe(200);
    expect(await Promise.race([send, 'not yet'])).toBe('not yet');
    await step(20);
    expect((await send).status).toBe(504);
  });

  test('G7 with no other: a scan that it computes ends with its answer, although no probe is answered meanwhile; a new one is 503 (§2.6.3)', async () => {
    await pass(2);
    const key = await keyOn('a');
    await pass(2);
    const computed = Promise.withResolvers<void>();
    nodeOf('a').script((call) => {
      if (!call.text.includes('computed')) return new Promise(() => undefined);
      return computed.promise.then(() => result(call, '["computed"]'));
    });
    const scan = post(key, 'getProgramAccounts', ['computed']);
    await arrived('a', 'getProgramAccounts');
    for (const { now } of nodes) now.hangs = true;
    while (await isWell()) await step(0.25);
    const late = post(key, 'getProgramAccounts', ['late']);
    while ((await Promise.race([late, 'not yet'])) === 'not yet') await step(0.25);
    expect((await late).status).toBe(503);
    await step(20);
    expect(await Promise.race([scan, 'not yet'])).toBe('not yet');
    computed.resolve();
    expect(await (await scan).json()).toMatchObject({ result: ['computed'] });
  });

  test('G7 with no other: 503 when /health says so and within a second, for new calls and for those under way but scans, and all is well at once when it is back (§2.5 503, §2.6.3)', async () => {
    await pass(2);
    const key = await keyOn('a');
    await pass(2);
    // An answer that began to be an error, of which nothing has left.
    const started = (it: ReadableStreamDefaultController) => it.enqueue('{"jsonrpc":"2.0","error":{"co');
    const headers = { 'content-type': 'application/json' };
    nodeOf('a').script((call) => {
      if (call.method === 'getBlockTime')
        return new Response(new ReadableStream({ start: started }), { headers });
      return nodeOf('a').now.hangs ? new Promise(() => undefined) : result(call, '1');
    });
    const begun = post(key, 'getBlockTime', [5]);
    await arrived('a', 'getBlockTime');
    for (const { now } of nodes) now.hangs = true;
    const read = post(key, 'getEpochInfo', []);
    await arrived('a', 'getEpochInfo');
    let seconds = 0;
    let answeredAfter = Infinity;
    void Promise.race([read, begun]).then(() => (answeredAfter = seconds));
    for (; await isWell(); seconds += 0.25) await step(0.25);
    expect(seconds).toBeWithin(1, 4.5); // quiet for half a second, two looks of a second, and one at the host
    expect(seconds - Math.min(answeredAfter, seconds)).toBeLessThanOrEqual(1.25);
    await step(1);
    expect([(await read).status, (await begun).status]).toEqual([503, 503]);
    expect(await health()).toContain('no backend is well');
    const late = post(key, 'getSlot', []);
    await arrived('a', 'getSlot');
    await step(1);
    expect((await late).status).toBe(503);
    for (const { now } of nodes) now.hangs = false;
    expect((await post(key, 'getEpochInfo', [])).status).toBe(200);
    await step(3.25); // the next look, and the next at the host
    expect(await health()).toBe('ok\n');
  });
});

test('G7 a node that answers calls and is late with its probes is slow, and gives nothing up', async () => {
  await pass(2);
  const key = gateway.key();
  const read = () => gateway.post({ jsonrpc: '2.0', id: 1, method: 'getBalance', params: ['x'] }, key);
  for (const node of nodes) node.probed(() => new Promise(() => undefined));
  const held = Promise.withResolvers<void>();
  for (const node of nodes)
    node.script((call) =>
      call.method === 'getEpochInfo'
        ? held.promise.then(() => result(call, '1'))
        : result(call, '{"context":{"slot":1},"value":1}'),
    );
  const slow = gateway.post({ jsonrpc: '2.0', id: 1, method: 'getEpochInfo' }, key);
  for (let second = 0; second < 8; second++) {
    for (let quarter = 0; quarter < 4; quarter++) {
      clock.advance(250);
      await Bun.sleep(1); // turns of the loop, so that woken code has run
    }
    expect((await read()).status).toBe(200);
  }
  expect(await health()).toContain('no backend is well');
  held.resolve();
  expect((await slow).status).toBe(200);
});
