import { describe, expect, test } from 'bun:test';
import type { LoadOptions } from '../../bench/arguments.ts';
import type { Reply } from '../../bench/connection.ts';
import { type LoadConnection, RESULT, runLoad } from '../../bench/load.ts';
import { createVirtualClock } from '../fakes/chain-clock.ts';
import { optionsOf } from './options.ts';

const never = new AbortController().signal;

const OPTIONS: LoadOptions = {
  ...optionsOf('calls', '--seconds', '2', '--connections', '1', '--warm-up', '0'),
  calls: undefined,
};

const ANSWER: Reply = {
  kind: 'reply',
  status: 200,
  retryAfter: undefined,
  bytes: 40,
  body: Buffer.from(''),
  isWhole: true,
};

/** What an endpoint does with request `n`: how long it takes, and its reply. */
type Behaviour = (n: number) => Readonly<{ ms: number; reply?: Reply }>;

/** Runs a load against an endpoint of this clock; gives what came of it and when each request was sent. */
async function loadOf(options: Partial<LoadOptions>, behave: Behaviour, abortAtMs?: number) {
  const clock = createVirtualClock();
  const startMs = clock.monotonic();
  const sentMs: number[] = [];
  const all = { ...OPTIONS, ...options };
  const stop = new AbortController();
  if (abortAtMs !== undefined) void clock.sleep(abortAtMs, never).then(() => stop.abort());
  const connections: LoadConnection[] = Array.from({ length: all.connections }, () => ({
    send(_, onReply) {
      const { ms, reply = ANSWER } = behave(sentMs.length);
      sentMs.push(clock.monotonic() - startMs);
      void clock.sleep(ms, never).then(() => onReply(reply));
    },
    tick: () => undefined,
    close: () => undefined,
  }));
  const running = runLoad(all, {
    clock,
    turn: () => clock.sleep(0.25, never),
    connections,
    next: (n) => ({ body: '', ids: [n] }),
    labels: [],
    judge: (reply) => [
      reply.kind === 'failure' ? reply.reason : reply.status === 200 ? RESULT : `HTTP ${reply.status}`,
    ],
    onProgress: () => undefined,
    signal: stop.signal,
  });
  let isOver = false;
  void running.then(() => (isOver = true));
  while (!isOver) await clock.advance(100);
  const loaded = await running;
  return { ...loaded, sentMs, timing: loaded.recorder.all.timing() };
}

describe('an open loop', () => {
  test('sends at the instants of its rate, whatever comes back', async () => {
    const { sentMs, recorder, late } = await loadOf({ perSecond: 100, connections: 8 }, () => ({ ms: 30 }));
    expect(recorder.answers).toBe(200);
    for (const [n, ms] of sentMs.entries()) expect(Math.abs(ms - 10 * n)).toBeLessThan(1);
    expect(late.at(1)).toBeLessThan(1);
  });

  test('charges an endpoint that stands still with all the calls that were due meanwhile', async () => {
    const standsStill: Behaviour = (n) => ({ ms: n === 50 ? 500 : 1 });
    const open = await loadOf({ perSecond: 100 }, standsStill);
    expect(open.recorder.answers).toBe(200);
    // 56 calls had to wait, the first of them for 500 ms: a tenth of all waited for more than 300.
    expect(open.timing.max).toBeWithin(499, 502);
    expect(open.timing.p90).toBeWithin(300, 322);
    const closed = await loadOf({ calls: 200, seconds: undefined }, standsStill);
    expect(closed.timing.max).toBeWithin(499, 502);
    expect(closed.timing.p99).toBeLessThan(2);
  });

  test('says what was due and never sent', async () => {
    const { recorder, unsent } = await loadOf({ perSecond: 100 }, () => ({ ms: 50 }));
    expect(recorder.answers + unsent).toBe(200);
    expect(recorder.answers).toBeWithin(39, 42);
  });

  test('counts neither calls nor time of the warm-up', async () => {
    const slowAtFirst: Behaviour = (n) => ({ ms: n < 50 ? 9 : 1 });
    const { timing, seconds, recorder } = await loadOf({ perSecond: 100, warmUpSeconds: 0.5 }, slowAtFirst);
    expect(recorder.answers).toBe(200);
    expect(timing.max).toBeLessThan(3);
    expect(seconds).toBeCloseTo(2, 1);
  });
});

describe('a closed loop', () => {
  test('sends on each connection when that has its answer', async () => {
    const { recorder, seconds, timing } = await loadOf({ connections: 4 }, () => ({ ms: 10 }));
    expect(recorder.answers).toBeWithin(796, 805);
    expect(seconds).toBeCloseTo(2, 1);
    expect(timing.p50).toBeCloseTo(10, 1);
  });

  test('ends after its calls', async () => {
    const { sentMs, recorder } = await loadOf({ calls: 7, seconds: undefined, connections: 3 }, () => ({
      ms: 10,
    }));
    expect([sentMs.length, recorder.answers]).toEqual([7, 7]);
  });

  test('leaves a connection that failed alone for a moment', async () => {
    const failing: Reply = { kind: 'failure', reason: 'connection closed' };
    const { recorder } = await loadOf({}, () => ({ ms: 1, reply: failing }));
    expect(recorder.failures).toBeWithin(30, 42);
    expect(recorder.outcomes).toEqual({ 'connection closed': recorder.failures });
    expect(recorder.all.timing().count).toBe(0);
  });

  test('ends at once when it is stopped, with what it has', async () => {
    const { recorder, seconds } = await loadOf({ seconds: 100 }, () => ({ ms: 10 }), 1_000);
    expect(recorder.answers).toBeWithin(98, 101);
    expect(seconds).toBeCloseTo(1, 0);
  });
});

describe('a load whose first hundred answers', () => {
  const status =
    (first: number, others: number): Behaviour =>
    (n) => ({ ms: 1, reply: { ...ANSWER, status: n === 0 ? first : others } });

  test.each([
    [undefined, 4],
    [1_000, 4],
  ])('are all denials ends; at a rate of %p', async (perSecond, connections) => {
    const ended = await loadOf({ seconds: 100, connections, perSecond }, status(401, 403));
    expect(ended.isDenied).toBe(true);
    expect(ended.sentMs.length).toBeWithin(100, 104);
  });

  test('are denials but one goes on', async () => {
    const { isDenied, sentMs } = await loadOf({ calls: 300, seconds: undefined }, status(200, 402));
    expect([isDenied, sentMs.length]).toEqual([false, 300]);
  });
});

describe('after an answer with Retry-After', () => {
  const refusal: Reply = { ...ANSWER, status: 429, retryAfter: 1 };
  const refuseThird: Behaviour = (n) => ({ ms: 1, ...(n === 2 && { reply: refusal }) });

  test('nothing is sent until then, on no connection', async () => {
    const load = { connections: 2, calls: 6, seconds: undefined };
    const { sentMs, heldBackMs, retryAfters, recorder } = await loadOf(load, refuseThird);
    expect(sentMs.filter((ms) => ms > 4 && ms < 1_000)).toEqual([]);
    expect(sentMs).toHaveLength(6);
    expect(heldBackMs).toBeCloseTo(1_000, 0);
    expect([retryAfters, recorder.failures, recorder.answers]).toEqual([1, 1, 5]);
  });

  test('what is held back during the warm-up, or after the end, does not count', async () => {
    const load = { warmUpSeconds: 0.4, seconds: 1.2, perSecond: 100 };
    // Refused at 20 ms for a second: 380 ms of it are warm-up.
    const { heldBackMs, retryAfters } = await loadOf(load, refuseThird);
    expect(heldBackMs).toBeWithin(615, 625);
    expect(retryAfters).toBe(0);
    // Once more at 1,100 ms: of that second, the last 500 are left.
    const twice: Behaviour = (n) => ({ ms: 1, ...((n === 2 || n === 3) && { reply: refusal }) });
    expect((await loadOf(load, twice)).heldBackMs).toBeWithin(1_190, 1_200);
    const early: Behaviour = (n) => ({ ms: 1, ...(n === 2 && { reply: { ...refusal, retryAfter: 0.3 } }) });
    expect((await loadOf(load, early)).heldBackMs).toBe(0);
  });

  test('the calls that were due in an open loop are late', async () => {
    const { timing } = await loadOf({ perSecond: 10 }, refuseThird);
    expect(timing.max).toBeWithin(850, 1_000);
  });

  test('all goes on at once where it is ignored', async () => {
    const { sentMs, heldBackMs } = await loadOf(
      { calls: 6, seconds: undefined, honoursRetryAfter: false },
      refuseThird,
    );
    expect(sentMs.at(-1)).toBeLessThan(20);
    expect(heldBackMs).toBe(0);
  });
});
