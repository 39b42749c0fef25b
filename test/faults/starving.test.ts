import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { result, type SeenCall, startBackend, streamed } from '../fakes/backend.ts';
import { openCaller, postText, type RawCaller } from '../fakes/raw-caller.ts';
import { countedOf } from '../gateway/usage/counted.ts';
import { createVirtualClock } from '../gateway/virtual-clock.ts';
import { startGateway } from '../started/gateway.ts';
import { atRest } from './gateway-process.ts';

// Fifty megabytes of each test go through a machine that may be busy.
setDefaultTimeout(60_000);

const CONNECTIONS = 4;
const PLAN = { rps: 1_000_000, burst: 1_000_000, max_batch: 20 };

let backend: ReturnType<typeof startBackend>;
let gateway: Awaited<ReturnType<typeof startGateway>>;
let virtual: ReturnType<typeof createVirtualClock>;
let callers: RawCaller[];
/** What calls that are held wait for, before their answer or in the middle of it. */
let gate: PromiseWithResolvers<void>;
/** Megabytes that the backend has given away. */
let written = 0;

beforeEach(async () => {
  callers = [];
  gate = Promise.withResolvers();
  virtual = createVirtualClock();
  backend = startBackend(async (seen) => {
    const how = howOf(seen);
    if (how === 'held') await gate.promise;
    if (how === 'large') return streamed(seen, 13, () => void written++);
    if (how === 'gzip') return compressed(seen);
    if (how === 'long') return streamed(seen, 100, () => void written++);
    if (how === 'paused')
      return streamed(seen, 3, (megabytes) => (megabytes === 1 ? gate.promise : undefined));
    if (how === 'once' && backend.seen.filter(({ params }) => Bun.deepEquals(params, seen.params)).length > 1)
      return new Response('', { status: 500 });
    return how === 'block' || how === 'once' ? streamed(seen, 1) : result(seen, '7');
  });
  gateway = await startGateway(
    {
      backends: [{ name: 'a', url: backend.url, max_connections: CONNECTIONS }],
      plans: { trial: { ...PLAN, credits: 1_000 }, scale: PLAN },
      gateway: { probe_seconds: 60 }, // a second passes faster here than a probe is answered
    },
    virtual.clock,
  );
  gateway.maintain();
});
afterEach(async () => {
  gate.resolve();
  for (const caller of callers) caller[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

/** An answer of 13 MB in gzip, in chunks. */
const PACKED = gzipSync(`{"jsonrpc":"2.0","result":"${randomBytes(10 << 20).toString('base64')}`, {
  level: 0,
});
function compressed({ id }: SeenCall): Response {
  const packed = Buffer.concat([PACKED, gzipSync(`","id":${id}}\n`)]);
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      for (let at = 0; at < packed.length; at += 1 << 20, written++) {
        await controller.write(packed.subarray(at, at + (1 << 20)));
        await controller.flush();
      }
      controller.close();
    },
  };
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  return new Response(new ReadableStream(source), { headers });
}

const howOf = ({ params }: SeenCall) => (Array.isArray(params) ? params[0] : undefined);
let asked = 0;
/** A call that no other is the same as. */
const call = (how: string, method = 'getMultipleAccounts', id = 1) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: [how, ++asked],
});
const BALANCE = { jsonrpc: '2.0', id: 1, method: 'getBalance', params: ['x'] };

const status = () => gateway.gateway.status().backends[0];
const cuts = () => gateway.metric('streams_cut_total{backend="a",reason="evicted"}');

/** Calls on as many connections, which are not read when `isRead` is false; their answers come, or wait at the gateway. */
async function asking(
  key: string,
  calls: number,
  how: string,
  { isRead = false, inBatch = false } = {},
): Promise<readonly RawCaller[]> {
  const before = status()?.in_flight ?? 0;
  const asks = Array.from({ length: calls }, async () => {
    const caller = await openCaller(gateway.url);
    callers.push(caller);
    if (!isRead) caller.pause();
    const accepts = how === 'gzip' ? 'accept-encoding: gzip\r\n' : '';
    caller.send(postText(JSON.stringify(inBatch ? [call(how)] : call(how)), key, accepts));
    return caller;
  });
  const opened = await Promise.all(asks);
  while (status()?.in_flight !== before + calls) await Bun.sleep(1); // awaits their arrival
  await atRest(() => written);
  return opened;
}

/** Reads some megabytes on each connection, and then no more. */
async function readSome(readers: readonly RawCaller[]): Promise<void> {
  for (const reader of readers) {
    const before = reader.received();
    reader.resume();
    while (reader.received() < before + (6 << 20)) await Bun.sleep(1); // awaits what it reads
    reader.pause();
  }
  await atRest(() => written);
}

/** Lets time pass, a quarter of a second after the other. */
async function pass(seconds: number): Promise<void> {
  for (let i = 0; i < 4 * seconds; i++) {
    virtual.advance(250);
    await Bun.sleep(1); // a turn of the loop, so that woken code has run
  }
}

/** Whether an answer has come. */
async function isThere(answer: Promise<unknown>): Promise<boolean> {
  return Promise.race([answer.then(() => true), Bun.sleep(20).then(() => false)]);
}

describe('L23 while another account waits, an account that does not read holds no more than its share', () => {
  test('of a backend that is full of unread answers another account is answered at once, and the longest unread is cut', async () => {
    const greedy = gateway.key('trial', 100);
    const [first] = await asking(greedy, 1, 'large');
    await pass(1);
    await asking(greedy, CONNECTIONS - 1, 'large');
    await pass(1);
    // No time passes here.
    expect((await gateway.post(BALANCE, gateway.key())).status).toBe(200);
    expect(await cuts()).toBe(1);
    first?.resume();
    await first?.ended;
    expect(first?.received()).toBeLessThan(13 << 20);
    expect(status()).toMatchObject({ in: true, why: null, in_flight: CONNECTIONS - 1, recent_failed: 0 });
    // The place that was made is not its own again for three seconds.
    const own = gateway.post(BALANCE, greedy);
    await pass(2);
    expect(await isThere(own)).toBe(false);
    expect((await gateway.post(BALANCE, gateway.key())).status).toBe(200);
    expect(await cuts()).toBe(1);
    await pass(2);
    // Two credits for each, and one for this.
    expect((await own).headers.get('x-credits-left')).toBe('91');
  });

  test('its place goes to the account that is below its share, also when others came first', async () => {
    const greedy = gateway.key();
    await asking(greedy, CONNECTIONS, 'large');
    const more = [1, 2, 3].map(() => gateway.post(call('plain'), greedy));
    await pass(1);
    const answer = gateway.post(BALANCE, gateway.key());
    expect(await isThere(answer)).toBe(false);
    await pass(0.25); // until it is looked again
    expect((await answer).status).toBe(200);
    await pass(4);
    for (const each of more) expect((await each).status).toBe(200);
    expect(await cuts()).toBe(1);
  });

  test('one that waits already is answered a second after the last byte was read', async () => {
    await asking(gateway.key(), CONNECTIONS, 'large');
    const answer = gateway.post(BALANCE, gateway.key());
    expect(await isThere(answer)).toBe(false);
    await pass(0.75);
    expect(await isThere(answer)).toBe(false);
    await pass(0.25);
    expect((await answer).status).toBe(200);
  });

  test('as many are cut as wait, down to the share and not below it', async () => {
    await asking(gateway.key(), CONNECTIONS, 'large');
    await pass(1);
    const other = gateway.key();
    const held = [1, 2, 3].map(() => gateway.post(call('held'), other));
    while (backend.seen.filter((seen) => howOf(seen) === 'held').length < 2) await Bun.sleep(1); // awaits their arrival
    await pass(2);
    expect(await cuts()).toBe(2);
    expect(status()?.in_flight).toBe(CONNECTIONS);
    gate.resolve();
    for (const answer of held) expect((await answer).status).toBe(200);
  });

  test('three that take part have a third each, one at least', async () => {
    await asking(gateway.key(), 2, 'large');
    await asking(gateway.key(), 2, 'large');
    await pass(1);
    expect((await gateway.post(BALANCE, gateway.key())).status).toBe(200);
    expect(await cuts()).toBe(1);
  });

  test.each([
    ['of a batch whose turn has come', 'large', { inBatch: true }],
    ['that is compressed', 'gzip', {}],
  ])('an answer %s is cut as any other, and paid for', async (_which, how, options) => {
    const greedy = gateway.key('trial', 100);
    const answers = await asking(greedy, CONNECTIONS, how, options);
    await pass(1);
    expect((await gateway.post(BALANCE, gateway.key())).status).toBe(200);
    expect(await cuts()).toBe(1);
    expect(status()).toMatchObject({ in_flight: CONNECTIONS - 1, recent_failed: 0 });
    for (const caller of answers) caller.resume();
    await Promise.race(answers.map(({ ended }) => ended));
    expect((await gateway.post(BALANCE, greedy)).headers.get('x-credits-left')).toBe('91');
  });

  test('a call that waits for a second gets the place of an account that reads steadily but slower than its backend sends, if that is above its share', async () => {
    const slow = [
      ...(await asking(gateway.key(), CONNECTIONS - 1, 'long')),
      ...(await asking(gateway.key(), 1, 'long')),
    ];
    for (let i = 0; i < 2; i++) {
      await pass(0.75);
      await readSome(slow);
    }
    const answer = gateway.post(BALANCE, gateway.key());
    expect(await isThere(answer)).toBe(false);
    await pass(0.75);
    expect([await isThere(answer), await cuts()]).toEqual([false, 0]);
    await readSome(slow);
    await pass(0.25);
    expect((await answer).status).toBe(200);
    expect(await cuts()).toBe(1);
    expect(status()).toMatchObject({ in_flight: CONNECTIONS - 1, recent_failed: 0 });
    const [, , , modest] = slow;
    if (modest !== undefined) await readSome([modest]); // an account with no more than its share continues
  });

  test.each([
    ['block', 0],
    ['once', 1],
  ])(
    'answers of a batch whose turn has not come are requested again, and each is counted and paid for once, if it comes: %s',
    async (how, lost) => {
      const key = gateway.key('trial', 100);
      const ids = [0, 1, 2, 3];
      const batch = ids.map((id) => call(id === 0 ? 'held' : how, 'getBlock', id)); // each by itself, as light reads are not
      const whole = gateway.post(batch, key);
      await backend.called(4);
      await Bun.sleep(20); // their first bytes are at the gateway
      await pass(1);
      expect((await gateway.post(BALANCE, gateway.key())).status).toBe(200);
      expect(backend.seen.length).toBe(5);
      gate.resolve();
      const answers: { id: number; error?: unknown }[] = JSON.parse(await (await whole).text());
      expect(answers.map(({ id }) => id)).toEqual(ids);
      expect(answers.filter(({ error }) => error !== undefined)).toHaveLength(lost);
      expect(backend.seen.length).toBe(6);
      expect([await cuts(), status()?.recent_failed]).toEqual([0, lost]);
      const { getBlock } = countedOf(gateway, key);
      expect(getBlock).toMatchObject({ calls: 4, errors: lost, credits: 10 * (4 - lost) });
    },
  );
});

describe('L23 nothing is cut', () => {
  test('that is read, however slow its backend is, or that has not begun', async () => {
    await asking(gateway.key(), CONNECTIONS / 2, 'paused', { isRead: true });
    await asking(gateway.key(), CONNECTIONS / 2, 'held', { isRead: true });
    const answer = gateway.post(BALANCE, gateway.key());
    await pass(3);
    expect([await isThere(answer), await cuts()]).toEqual([false, 0]);
    gate.resolve();
    expect((await answer).status).toBe(200);
    for (const caller of callers) await caller.until('"id":1}');
    expect(await cuts()).toBe(0);
  });

  test('for a call of the same account', async () => {
    const key = gateway.key();
    await asking(key, CONNECTIONS, 'large');
    const answer = gateway.post(BALANCE, key);
    await pass(3);
    expect([await isThere(answer), await cuts()]).toEqual([false, 0]);
    callers[0]?.reset();
    expect((await answer).status).toBe(200);
  });

  test('while no other account waits', async () => {
    await asking(gateway.key(), CONNECTIONS - 1, 'large');
    await pass(3);
    expect((await gateway.post(BALANCE, gateway.key())).status).toBe(200);
    expect(await cuts()).toBe(0);
  });
});
