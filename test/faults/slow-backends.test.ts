import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { result, type SeenCall, startBackend } from '../fakes/backend.ts';
import { startGateway } from '../started/gateway.ts';

const PLAN = { rps: 1_000_000, burst: 1_000_000 };
const STEP_MS = 250;

/** Two backends behind a gateway that runs on the test's clock, and an account that prefers each. */
async function startTwins(gatewayRows: Record<string, unknown> = {}) {
  const clock = createVirtualClock();
  const stop = new AbortController();
  const twins = [startBackend(), startBackend()] as const;
  const gateway = await startGateway(
    {
      gateway: gatewayRows,
      backends: twins.map(({ url }, i) => ({ name: 'ab'[i], url })),
      plans: { scale: PLAN, trial: { ...PLAN, credits: 1_000_000 } },
    },
    clock.clock,
  );
  gateway.maintain();
  let [calls, waiting, held] = [0, 0, 0];
  /** A call that is waited for, until its answer's head has come. */
  const post = (key: string, method = 'getBalance') => {
    waiting++;
    return gateway
      .post({ jsonrpc: '2.0', id: ++calls, method, params: [`account ${calls}`] }, key)
      .finally(() => waiting--);
  };

  /** A key whose account prefers the first of the twins. */
  async function keyOnFirst(plan = 'scale'): Promise<string> {
    for (;;) {
      const key = gateway.key(plan, plan === 'trial' ? 1_000_000 : 0);
      const before = twins[0].seen.length;
      await (await post(key)).text();
      if (twins[0].seen.length > before) return key;
    }
  }

  return {
    clock,
    twins,
    gateway,
    post,
    keyOnFirst,
    /** Answers after so long on the test's clock; `undefined`: never. */
    after: (ms: number | undefined) => async (call: SeenCall) => {
      held++;
      if (ms === undefined) return new Promise<Response>(() => undefined);
      await clock.clock.sleep(ms, stop.signal);
      held--;
      return result(call, '1');
    },
    lines: () => gateway.lines.filter((line) => JSON.stringify(line).includes('a backend is')),
    /** Lets time go by, a look of the gateway at a time, with what `each` does in it. */
    async pass(ms: number, each: () => unknown = () => undefined) {
      for (let passed = 0; passed < ms; passed += STEP_MS) {
        each();
        while (waiting > held) await Bun.sleep(1); // until whatever is not held is answered
        clock.advance(STEP_MS);
        await Bun.sleep(1); // a turn of the loop, so that woken code has run
      }
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await gateway[Symbol.asyncDispose]();
      for (const twin of twins) await twin[Symbol.asyncDispose]();
    },
  };
}

let world: Awaited<ReturnType<typeof startTwins>>;
const start = async (rows?: Record<string, unknown>) => (world = await startTwins(rows));
beforeEach(() => start());
afterEach(() => world[Symbol.asyncDispose]());

/** Calls to one of the twins among those that `act` makes. */
async function callsTo(i: 0 | 1, act: () => Promise<unknown>): Promise<number> {
  const before = world.twins[i].seen.length;
  await act();
  return world.twins[i].seen.length - before;
}

describe('G13 a backend that answers in three seconds while its twin does at once', () => {
  const PER_STEP = 2;

  test('G13 gets one light call in twenty from 15 s on, keeps its sends, and has its callers back within 45 s of its recovery', async () => {
    const key = await world.keyOnFirst();
    const underWay: Promise<number>[] = [];
    const load = () => {
      for (let i = 0; i < PER_STEP; i++) underWay.push(world.post(key).then(({ status }) => status));
    };
    expect(await callsTo(0, () => world.pass(5_000, load))).toBe((PER_STEP * 5_000) / STEP_MS);

    world.twins[0].script(world.after(3_000));
    await world.pass(15_000, load);
    const late = (PER_STEP * 30_000) / STEP_MS;
    expect(await callsTo(0, () => world.pass(30_000, load))).toBeWithin(1, late / 20 + 1);
    expect(world.gateway.gateway.status().backends).toMatchObject([
      { name: 'a', in: true, why: 'slow' },
      { name: 'b', in: true, why: null },
    ]);
    expect(world.gateway.gateway.health()).toEqual({ ok: true, sentence: 'ok' });
    expect(
      await callsTo(0, async () => {
        const send = world.post(key, 'sendTransaction');
        await world.pass(3_500);
        expect((await send).status).toBe(200);
      }),
    ).toBe(1);

    world.twins[0].script(() => undefined);
    await world.pass(45_000, load);
    expect(await callsTo(0, () => world.pass(1_000, load))).toBe((PER_STEP * 1_000) / STEP_MS);
    expect(world.gateway.gateway.status().backends).toMatchObject([{ why: null }, { why: null }]);
    expect(world.lines().length).toBe(2);
    await world.pass(4_000);
    expect(new Set(await Promise.all(underWay))).toEqual(new Set([200]));
  }, 30_000);
});

describe('G14 with gateway.hedge a light read that is late', () => {
  const metric = (name: string) => world.gateway.metric(name);
  /** Enough calls that it is known what is late, and that one may be hedged. */
  const warmUp = async (key: string) => {
    for (let i = 0; i < 120; i++) await (await world.post(key)).text();
    await world.pass(STEP_MS);
  };

  test('G14 is answered by a second backend, and counted and paid for once', async () => {
    await world[Symbol.asyncDispose]();
    await start({ hedge: true });
    const key = await world.keyOnFirst('trial');
    await warmUp(key);
    const before = (await world.post(key)).headers.get('x-credits-left');
    const counted = await metric('calls_total{method="getBalance",outcome="answered"}');
    world.twins[0].script(world.after(undefined));
    const answered = world.post(key);
    const { length } = world.twins[0].seen;
    await world.twins[0].called(length + 1);
    world.clock.advance(5);
    const answer = await answered;
    expect([answer.status, Number(before) - Number(answer.headers.get('x-credits-left'))]).toEqual([200, 1]);
    expect(await answer.text()).toContain('answer to getBalance');
    expect(await metric('calls_total{method="getBalance",outcome="answered"}')).toBe(counted + 1);
    expect([
      await metric('hedges_total{outcome="made"}'),
      await metric('hedges_total{outcome="won"}'),
    ]).toEqual([1, 1]);
    await world.pass(STEP_MS);
    for (const name of ['a', 'b']) {
      expect(await metric(`backend_calls_in_flight{backend="${name}"}`)).toBe(0);
      expect(await metric(`backend_failures_total{backend="${name}",kind="no-answer"}`)).toBe(0);
    }
  });

  test('G14 is not sent twice by default', async () => {
    const key = await world.keyOnFirst();
    await warmUp(key);
    world.twins[0].script(world.after(undefined));
    const answered = world.post(key);
    expect(await callsTo(1, () => world.pass(9_000))).toBe(0);
    await world.pass(2_000);
    expect((await answered).status).toBe(200);
  });
});
