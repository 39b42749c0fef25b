import { beforeEach, describe, expect, test } from 'bun:test';
import { result, type SeenCall, streamed } from '../fakes/backend.ts';
import type { RpcRequest } from '../../gateway/listener/rpc.ts';
import { openCaller, postText, type RawCaller } from '../fakes/raw-caller.ts';
import { errorText, pair } from './pair.ts';

const MAX = 3;
const PLAN = { rps: 1_000_000, burst: 1_000_000, max_batch: 20, scans: 8, in_flight: MAX };
const { backend, gateway } = await pair({
  plans: {
    three: PLAN,
    trial: { ...PLAN, credits: 1_000 },
    scanner: { ...PLAN, credits: 1_000, scans: 1, in_flight: 16 },
    one: { ...PLAN, in_flight: 1 },
  },
});
gateway.maintain(); // it notices callers who left
/** What calls that are held wait for. */
let gate: PromiseWithResolvers<void>;
/** Calls whose answer has not begun, and the most that were at once. */
let under = 0;
let most = 0;

beforeEach(() => {
  gate = Promise.withResolvers();
  most = 0;
  backend.script(async (seen) => {
    most = Math.max(most, ++under);
    try {
      return await answerTo(seen);
    } finally {
      under--;
    }
  });
});

async function answerTo(seen: SeenCall): Promise<Response> {
  const [how] = Array.isArray(seen.params) ? seen.params : [];
  const breakOff = (written: number) => {
    if (written === 2) throw new Error('the backend breaks off');
  };
  await new Promise(setImmediate); // so that calls sent together are seen together
  if (how === 'held') await gate.promise;
  if (how === 'long') return streamed(seen, 13);
  if (how === 'broken') return streamed(seen, 4, breakOff);
  if (how === 'failing') return new Response('', { status: 500 });
  return result(seen, how === 'rows' ? '[{"a":1},{"a":2}]' : '7');
}

let asked = 0;
/** A call that no other is the same as. */
const call = (how: string, method = 'getAccountInfo') => {
  return { jsonrpc: '2.0', id: 1, method, params: [how, ++asked] };
};
const SILENT = { jsonrpc: '2.0', method: 'getSlot' };
const REFUSED = errorText(-429, `Too many calls at once: at most ${MAX}`, 1);

/** So many calls that wait at the backend until the gate opens, each sent again until it is let in. */
async function holding(key: string, calls: number): Promise<readonly Promise<Response>[]> {
  const held: Promise<Response>[] = [];
  while (held.length < calls) {
    const body = call('held');
    const answer = gateway.post(body, key);
    let isRefused = false;
    void answer.then(({ status }) => (isRefused = status === 429));
    const hasArrived = () =>
      backend.seen.some(({ params }) => Array.isArray(params) && params[1] === body.params[1]);
    while (!hasArrived() && !isRefused) await Bun.sleep(1); // bounded by the test's own timeout
    if (!isRefused) held.push(answer);
  }
  return held;
}

/** The end of the last call at the backend. */
async function rest(): Promise<void> {
  while ((gateway.gateway.status().backends[0]?.in_flight ?? 0) > 0) await Bun.sleep(1);
  await Bun.sleep(1); // a turn of the loop, so that who waited for it has acted
}

/** The account has all its permits: no fewer calls are let in at once, and no more. */
async function expectAllFree(key: string): Promise<void> {
  gate = Promise.withResolvers();
  const held = await holding(key, MAX);
  const refused = await gateway.post(call('plain'), key);
  expect([refused.status, await refused.text()]).toEqual([429, REFUSED]);
  gate.resolve();
  for (const answer of held) expect((await answer).status).toBe(200);
}

const read = async (body: unknown, key: string) => (await gateway.post(body, key)).text();

/** Sends a body, and breaks the connection when so much has been seen of it. */
async function left(body: unknown, key: string, far: (caller: RawCaller) => unknown): Promise<void> {
  const caller = await openCaller(gateway.url);
  caller.send(postText(JSON.stringify(body), key));
  await far(caller);
  caller.reset();
}

/** Awaits the arrival of as many calls at the backend. */
function arrived(calls: number): () => Promise<void> {
  const before = backend.seen.length;
  return async () => {
    await backend.called(before + calls);
  };
}

test('L22 above its calls at once an account is refused, in every class together, and pays nothing (§2.4.5, §2.5 429)', async () => {
  const key = gateway.key('trial', 100);
  const classes = ['getAccountInfo', 'getProgramAccounts', 'getBlock'];
  const arrival = arrived(3);
  const held = classes.map((method) => gateway.post(call('held', method), key));
  await arrival();
  const refused = await gateway.post(call('plain', 'sendTransaction'), key);
  expect([refused.status, refused.headers.get('retry-after'), await refused.text()]).toEqual([
    429,
    '1',
    REFUSED,
  ]);
  const batch = await gateway.post([call('plain'), SILENT, call('plain')], key);
  expect([batch.status, await batch.text()]).toEqual([429, `[${REFUSED},${REFUSED}]`]);
  // Another account is not concerned.
  expect((await gateway.post(call('plain'), gateway.key('trial', 1))).status).toBe(200);
  gate.resolve();
  await Promise.all(held);
  // 1 + 50 + 10, and this one.
  expect((await gateway.post(call('plain'), key)).headers.get('x-credits-left')).toBe('38');
});

test('L21 L22 with no credits left it is refused for that, also when it has all its calls at once', async () => {
  const key = gateway.key('trial', MAX);
  const held = await holding(key, MAX);
  const out = await gateway.post(call('plain'), key);
  expect([out.status, out.headers.get('x-credits-left')]).toEqual([402, '0']);
  expect((await gateway.post([call('plain'), SILENT], key)).status).toBe(402);
  gate.resolve();
  await Promise.all(held);

  const scanning = gateway.key('scanner', 150);
  gate = Promise.withResolvers();
  const scans = Array.from({ length: 3 }, () => gateway.post(call('held', 'getProgramAccounts'), scanning));
  // Two wait for the permit of the third.
  const left = async () => (await gateway.post(SILENT, scanning)).headers.get('x-credits-left');
  while ((await left()) !== '0') await Bun.sleep(1);
  expect((await gateway.post(call('plain', 'getProgramAccounts'), scanning)).status).toBe(402);
  gate.resolve();
  await Promise.all(scans);
});

test('L22 what the gateway answers itself, and notifications, take no permit', async () => {
  const key = gateway.key('three');
  const held = await holding(key, MAX);
  expect(await read(call('plain', 'getNothing'), key)).toContain('-32601');
  expect(await read(SILENT, key)).toBe('');
  expect(await read([call('plain', 'getNothing'), SILENT, 7], key)).toContain('-32600');
  gate.resolve();
  await Promise.all(held);
});

const twenty = (act: () => Promise<unknown>) => Promise.all(Array.from({ length: 20 }, act));
const begun = (caller: RawCaller) => caller.until('aaaa');
const flushed = (caller: RawCaller) => caller.flushed();

describe('L22 a permit comes back', () => {
  test.each<readonly [string, (key: string) => Promise<unknown>]>([
    ['after a small answer', (key) => read(call('plain'), key)],
    ['after the last byte of a stream', (key) => read(call('long'), key)],
    ['when its backend breaks a stream off', (key) => read(call('broken'), key).catch(() => 'broken')],
    ['when no backend answers', (key) => read(call('failing'), key)],
    ['when the caller leaves before an answer', (key) => left(call('held'), key, arrived(1))],
    ['when the caller leaves a stream', (key) => left(call('long'), key, begun)],
    [
      'when the caller leaves a batch before an answer',
      (key) => left([call('held'), call('held')], key, arrived(2)),
    ],
    ['when callers send and are gone', (key) => twenty(() => left(call('long'), key, flushed))],
  ])('%s', async (_name, end) => {
    const key = gateway.key('three');
    // More often than there are permits.
    for (let i = 0; i <= MAX; i++) {
      await end(key);
      gate.resolve();
      await rest();
      gate = Promise.withResolvers();
    }
    await expectAllFree(key);
  });

  test('when the credits do not suffice, for a call and for a batch', async () => {
    const key = gateway.key('trial', 10);
    for (let i = 0; i <= MAX; i++) {
      expect((await gateway.post(call('plain', 'getProgramAccounts'), key)).status).toBe(402);
      expect((await gateway.post([call('plain', 'getProgramAccounts'), SILENT], key)).status).toBe(402);
    }
    await expectAllFree(key);
  });
});

describe('L22 a batch needs a permit for its first call alone', () => {
  test('and its other calls have one after the other, in their order', async () => {
    const calls = ['plain', 'long', 'plain', 'long', 'plain'].map((how, id) => ({ ...call(how), id }));
    const answers: { id: number }[] = JSON.parse(await read(calls, gateway.key('one')));
    expect(answers.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4]);
    expect(most).toBe(1);
  });

  test('and waits for the others of its account', async () => {
    const key = gateway.key('three');
    const held = await holding(key, MAX - 1);
    const calls = [1, 2, 3, 4, 5].map(() => call('plain'));
    expect(JSON.parse(await read(calls, key)).length).toBe(5);
    expect(most).toBe(MAX);
    gate.resolve();
    await Promise.all(held);
  });

  test('and calls that wait when their caller leaves wait no longer', async () => {
    const key = gateway.key('three');
    const held = await holding(key, MAX - 1);
    await left([call('held'), call('plain'), call('plain')], key, arrived(1));
    gate.resolve();
    await Promise.all(held);
    await expectAllFree(key);
  });
});

describe('L25 a permit is held until the last byte of the answer has been sent', () => {
  /** Asks for an answer that stays unsent until `sent` is called. */
  async function unsent(body: unknown, key: string) {
    const then: (() => void)[] = [];
    const request: RpcRequest = {
      method: 'POST',
      url: '/',
      headers: new Headers({ 'content-type': 'application/json', 'x-token': key }),
      address: '127.0.0.1',
      signal: new AbortController().signal,
      onSent: (each) => void then.push(each),
      readBody: () => ({ kind: 'body', bytes: Buffer.from(JSON.stringify(body)) }),
    };
    const { status, body: answered } = await gateway.gateway.answer(request);
    if (answered !== undefined && !(answered instanceof Uint8Array)) await answered.pipe(() => undefined);
    return { status, sent: () => then.splice(0).forEach((each) => each()) };
  }
  const ids = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...call('plain', 'getNothing'), id: 'i'.repeat(2_000) + i }));

  test.each<readonly [string, () => unknown]>([
    ['a call', () => call('plain')],
    ['a call that no backend answers', () => call('failing')],
    ['a batch', () => [call('plain'), SILENT, call('plain')]],
    [
      'a batch of more calls than there are permits',
      () => ids(19).map((_, i) => ({ ...call('plain'), id: i })),
    ],
    ['a batch of more than 16 KB of errors', () => ids(9)],
    ['a refusal of more than 16 KB', () => ids(21)],
  ])('L25 of %s', async (_name, body) => {
    const key = gateway.key('one');
    for (let i = 0; i < 3; i++) {
      const first = await unsent(body(), key);
      expect(first.status).not.toBe(429);
      expect((await unsent(call('plain'), key)).status).toBe(429);
      first.sent();
    }
    const last = await unsent(call('plain'), key);
    expect(last.status).toBe(200);
    last.sent();
  });

  test('L25 of a scan too', async () => {
    const key = gateway.key('scanner', 1_000);
    const begun: (() => void)[] = [];
    const scan = async () => void begun.push((await unsent(call('rows', 'getProgramAccounts'), key)).sent);
    const scans = [scan(), scan(), scan()];
    for (let i = 1; i <= scans.length; i++) {
      while (begun.length < i) await Bun.sleep(1); // bounded by the test's own timeout
      await rest();
      expect(begun.length).toBe(i);
      begun[i - 1]?.();
    }
    await Promise.all(scans);
  });

  test('L25 a refusal that is longer, with all permits taken, is one object', async () => {
    const key = gateway.key('one');
    const first = await unsent(call('plain'), key);
    const refused = await gateway.post(ids(21), key);
    expect(await refused.text()).toBe(errorText(-32600, 'Batch too large; max 20'));
    first.sent();
    expect(JSON.parse(await (await gateway.post(ids(21), key)).text())).toHaveLength(21);
  });
});
