import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { startBackend, streamed } from '../fakes/backend.ts';
import { startRedis } from '../started/redis.ts';
import { type CrewOptions, startCrew } from './gateway-crew.ts';

const SCAN = '{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts"}';
const SCANS = 3;
const PROCESSES = 3;
const PLANS = `[plans.scanner]\nrps = 100000\nburst = 100000\nscans = ${SCANS}\n`;
const WAIT_MS = 10_000;

let backend: ReturnType<typeof startBackend>;
/** Scans that the backend works on now, and the most so far. */
let under = 0;
let most = 0;
let open = Promise.withResolvers<void>();
beforeEach(() => {
  [under, most, open] = [0, 0, Promise.withResolvers<void>()];
  backend = startBackend((seen) => {
    if (seen.method !== 'getProgramAccounts') return undefined;
    most = Math.max(most, ++under);
    return streamed(seen, 4, async (written) => {
      if (written === 2) await open.promise;
      if (written === 3) under--;
    });
  });
});
afterEach(() => backend[Symbol.asyncDispose]());

const start = (options: Partial<CrewOptions> = {}) =>
  startCrew({ backendUrl: backend.url, processes: PROCESSES, extra: PLANS, ...options });

async function until(is: () => boolean): Promise<void> {
  const limit = AbortSignal.timeout(WAIT_MS);
  while (!is()) {
    if (limit.aborted) throw new Error('it did not come to that');
    await Bun.sleep(5); // a real process is watched
  }
}

/** Asks for so many scans on connections of their own; the statuses of those that were answered whole. */
function ask(crew: Awaited<ReturnType<typeof start>>, key: string, calls: number): Promise<number[]> {
  return Promise.all(
    Array.from({ length: calls }, async () => {
      const answer = await crew.post(key, SCAN);
      await answer.text();
      return answer.status;
    }),
  );
}

describe.each(['the ledger of their host', 'a Redis'])('gateway processes that share by %s', (centre) => {
  test('have no more long scans under way together than the plan says, and one after the other all of them', async () => {
    const redis = centre === 'a Redis' ? await startRedis() : undefined;
    await using crew = await start({ storageLines: redis === undefined ? '' : `redis = "${redis.url}"\n` });
    const key = crew.key('scanner');
    const CALLS = 3 * SCANS;
    const answers = ask(crew, key, CALLS);
    await until(() => under >= SCANS);
    // All that would run too many have had the time to ask: more than a lease's renewal.
    await Bun.sleep(1_500);
    // On a busy machine Redis may not answer in time for a moment, and counts as away then.
    expect(most).toBeLessThanOrEqual(SCANS + (redis === undefined ? 0 : PROCESSES - 1));
    expect(under).toBeGreaterThanOrEqual(SCANS);
    open.resolve();
    expect(await answers).toEqual(Array.from({ length: CALLS }, () => 200));
    expect(most).toBeLessThanOrEqual(SCANS + (redis === undefined ? 0 : PROCESSES - 1));
    expect(backend.seen.length).toBe(CALLS);
    await redis?.[Symbol.asyncDispose]();
  }, 30_000);
});

test('with Redis dead there is one more for each other process at most, and not after it is back', async () => {
  await using redis = await startRedis();
  await using crew = await start({ storageLines: `redis = "${redis.url}"\n` });
  const key = crew.key('scanner');
  const first = ask(crew, key, SCANS);
  await until(() => under === SCANS);
  await redis.die();
  const others = ask(crew, key, 3 * SCANS);
  await Bun.sleep(2_000); // an outage, for longer than a message waits
  expect(most).toBeGreaterThanOrEqual(SCANS);
  expect(most).toBeLessThanOrEqual(SCANS + PROCESSES - 1);
  await redis.restart('with its data');
  open.resolve();
  expect([...(await first), ...(await others)].every((status) => status === 200)).toBe(true);
  await Bun.sleep(4_500); // a second to connect, two in which a centre that came back learns
  open = Promise.withResolvers<void>();
  [under, most] = [0, 0];
  const last = ask(crew, key, 3 * SCANS);
  await until(() => under >= SCANS);
  await Bun.sleep(1_000);
  expect(most).toBeLessThanOrEqual(SCANS + PROCESSES - 1);
  open.resolve();
  expect((await last).every((status) => status === 200)).toBe(true);
}, 40_000);
