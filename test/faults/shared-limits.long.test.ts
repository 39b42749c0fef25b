import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { startBackend, streamed } from '../fakes/backend.ts';
import { CHUNKED, chunk, plain, startRawBackend } from '../fakes/raw-backend.ts';
import { openCaller, postText } from '../fakes/raw-caller.ts';
import { startRedis } from '../started/redis.ts';
import { until } from '../started/stack.ts';
import { CALL, type CrewOptions, startCrew } from '../started/crew.ts';

const SCANS = 3;
const PROCESSES = 3;
const PLANS =
  '[plans.prepaid]\nrps = 100000\nburst = 100000\ncredits = 100000\nscans = 8\n' +
  `[plans.scanner]\nrps = 100000\nburst = 100000\nscans = ${SCANS}\n`;
const SCAN = CALL.replace('getBlockHeight', 'getProgramAccounts');

setDefaultTimeout(30_000);

let backend: ReturnType<typeof startBackend>;
beforeEach(() => void (backend = startBackend()));
afterEach(() => backend[Symbol.asyncDispose]());

const start = (options: Partial<CrewOptions> = {}) =>
  startCrew({ backendUrl: backend.url, processes: PROCESSES, extra: PLANS, ...options });
type Crew = Awaited<ReturnType<typeof start>>;

/** A kept connection, which one of the processes has. */
async function connected(crew: Crew, key: string) {
  const caller = await openCaller(crew.url);
  let asked = 0;
  return {
    /** The status and the credits left of one answer. */
    async ask() {
      caller.send(postText(CALL, key));
      const text = await caller.until('"id":1}', ++asked);
      const answer = text.split('HTTP/1.1 ').at(-1) ?? '';
      const [, left] = /^x-credits-left: (\d+)/im.exec(answer) ?? [];
      return { status: Number.parseInt(answer, 10), left: Number(left) };
    },
    [Symbol.dispose]: () => caller[Symbol.dispose](),
  };
}

describe.each(['the ledger of their host', 'a Redis'])('gateway processes that share by %s', (centre) => {
  test('L20 L21 report on every connection the credits left, and 402 from every process once there are none', async () => {
    const redis = centre === 'a Redis' ? await startRedis() : undefined;
    await using crew = await start({ storageLines: redis === undefined ? '' : `redis = "${redis.url}"\n` });
    const CREDITS = 150;
    const key = crew.key('prepaid', CREDITS);
    using connections = new DisposableStack();
    const callers = await Promise.all(Array.from({ length: 24 }, () => connected(crew, key)));
    for (const caller of callers) connections.use(caller);
    const reported = callers.map((): number[] => []);
    for (let [spent, turn] = [0, 0]; spent < CREDITS; turn++) {
      const at = turn % callers.length;
      const { status, left } = (await callers[at]?.ask()) ?? {};
      expect([200, 429, 503]).toContain(Number(status));
      // The last credits may lie with another process, which gives them back within a second.
      if (status !== 200) await Bun.sleep(50);
      else {
        spent++;
        reported[at]?.push(Number(left));
        expect(left).toBeLessThanOrEqual(CREDITS - spent);
        // What a process was granted for a call whose caller has left is not reported as left.
        expect(left).toBeGreaterThanOrEqual(CREDITS - spent - 12);
      }
    }
    for (const each of reported) expect(each).toEqual(each.toSorted((a, b) => b - a));
    expect(crew.charged().size).toBe(3);
    for (let round = 0; round < 20; round++) {
      const answers = await Promise.all(callers.map((caller) => caller.ask()));
      expect(new Set(answers.map(({ status, left }) => `${status} ${left}`))).toEqual(new Set(['402 0']));
    }
    const batch = await crew.post(key, `[${CALL},${CALL}]`);
    expect([batch.status, batch.headers.get('x-credits-left')]).toEqual([402, '0']);
    await redis?.[Symbol.asyncDispose]();
  });

  test('have no more long scans in flight together than the plan allows, and one after the other all of them', async () => {
    const redis = centre === 'a Redis' ? await startRedis() : undefined;
    await using crew = await start({ storageLines: redis === undefined ? '' : `redis = "${redis.url}"\n` });
    const key = crew.key('scanner');
    const open = Promise.withResolvers<void>();
    let [under, most] = [0, 0];
    backend.script((seen) => {
      most = Math.max(most, ++under);
      return streamed(seen, 4, async (written) => {
        if (written === 2) await open.promise;
        if (written === 3) under--;
      });
    });
    const statuses = Array.from({ length: 3 * SCANS }, async () => {
      const answer = await crew.post(key, SCAN);
      await answer.text();
      return answer.status;
    });
    await until(async () => under >= SCANS);
    // Longer than the renewal of a lease: every scan had the time to ask.
    await Bun.sleep(1_500);
    // On a busy machine Redis may not answer in time for a moment, and counts as away then.
    const bound = SCANS + (redis === undefined ? 0 : PROCESSES - 1);
    expect([under >= SCANS, most <= bound]).toEqual([true, true]);
    open.resolve();
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
    expect([most <= bound, backend.seen.length]).toEqual([true, 3 * SCANS]);
    await redis?.[Symbol.asyncDispose]();
  });
});

test.each([1, 3])(
  'L20 returned credits are not reported before as many are spent, added ones at once, by %p processes',
  async (processes) => {
    const cut = Promise.withResolvers<void>();
    using raw = startRawBackend(async ({ text, send, reset }) => {
      if (!text.includes('getProgramAccounts')) return send(plain('{"jsonrpc":"2.0","result":1,"id":1}'));
      await send(`${CHUNKED}${chunk(`{"jsonrpc":"2.0","result":["${'x'.repeat(100_000)}`)}`);
      await cut.promise;
      reset();
    });
    await using crew = await start({ backendUrl: raw.url, processes });
    const key = crew.key('prepaid', 1_000);
    using connections = new DisposableStack();
    const callers = await Promise.all(Array.from({ length: 12 }, () => connected(crew, key)));
    for (const caller of callers) connections.use(caller);
    const reported: number[][] = callers.map(() => []);
    const askAll = async () => {
      for (const [i, caller] of callers.entries()) {
        const { status, left } = await caller.ask();
        // The credits may lie with another process, which gives them back within a second.
        if (status !== 200) await Bun.sleep(50);
        else reported[i]?.push(left);
      }
    };
    await askAll();
    const scans = await Promise.all(Array.from({ length: 4 }, () => crew.post(key, SCAN)));
    expect(scans.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await askAll();
    cut.resolve();
    for (const scan of scans) await expect(scan.text()).rejects.toThrow();
    for (let round = 0; round < 4; round++) await askAll();
    for (const each of reported) expect(each).toEqual(each.toSorted((a, b) => b - a));
    const least = Math.min(...reported.flat());
    crew.accounts.run('UPDATE accounts SET credits_granted = 2000');
    await Bun.sleep(1_000); // accounts are read again within this time
    const { left } = await (callers[0] ?? (await connected(crew, key))).ask();
    expect(left).toBeGreaterThan(least + 1_000 + 100);
  },
);
