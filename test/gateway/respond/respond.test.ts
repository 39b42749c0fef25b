import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'bun:test';
import type { Forward, Reply } from '../../../gateway/upstream/forward.ts';
import type { Charging } from '../../../gateway/limits/charge.ts';
import { createCallPermits } from '../../../gateway/limits/calls.ts';
import { createScanPermits } from '../../../gateway/limits/scans.ts';
import { priceOf } from '../../../gateway/limits/charge.ts';
import { readEnvelope } from '../../../gateway/request/envelope.ts';
import { createSend, planCall } from '../../../gateway/respond/planned-call.ts';
import { createRespond } from '../../../gateway/respond/respond.ts';
import { createRouter } from '../../../gateway/upstream/selection.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import { backendOf, directBy } from '../upstream/of.ts';
import { createVirtualClock } from '../virtual-clock.ts';

const PLAN = { rps: 5, burst: 10, credits: 100, batchMax: 100, scans: 1, inFlight: 16 };
const PRICES = { default: 1, methods: new Map([['getProgramAccounts', 50]]) };
const CALLER = {
  keyId: keyIdOf(hashOf(makeApiKey((bytes) => new Uint8Array(bytes)))),
  accountId: 1,
  plan: 'trial',
  creditsGranted: 100,
};

const whole = (text: string, encoding?: string): Reply => ({
  kind: 'whole',
  bytes: new TextEncoder().encode(text),
  encoding,
});

type Sent = Readonly<{ method: string; acceptEncoding: string; signal: AbortSignal }>;

/** Answers a body that was let in, with the replies of a scripted `forward`. */
async function answered(
  body: string,
  replyTo: (method: string) => Reply,
  {
    headers = {},
    signal,
    paid = false,
  }: { headers?: Record<string, string>; signal?: AbortSignal; paid?: boolean } = {},
) {
  const [sent, refunds, calls]: [Sent[], number[], string[]] = [[], [], []];
  const [rate, outcomes]: [number[], string[]] = [[], []];
  const counted: string[] = [];
  const usage = {
    answered: (place: number, bytes: number) =>
      void counted.push(`${place}: answered`, `${place}: ${bytes} bytes`),
    bytes: (place: number, bytes: number) => void counted.push(`${place}: ${bytes} bytes`),
    error: (place: number) => void counted.push(`${place}: error`),
    refund: (place: number) => void counted.push(`${place}: refund`),
  };
  const forward: Forward = async (call, _route, { acceptEncoding, signal: callerSignal, onSettled }) => {
    onSettled?.();
    sent.push({ method: call.method, acceptEncoding, signal: callerSignal });
    return replyTo(call.method);
  };
  const charging: Charging = {
    charge: () => ({ kind: 'credits-unavailable' }),
    outOfCredits: () => undefined,
    creditsLeft: () => (paid ? undefined : 7),
    refund: (caller, plan, price) => {
      if (price.calls > 0) rate.push(price.calls);
      if (price.credits > 0) refunds.push(caller.accountId * price.credits * (plan === PLAN ? 1 : -1));
    },
  };
  const timeouts: number[] = [];
  const respond = createRespond({
    send: createSend(
      directBy(forward),
      forward,
      createScanPermits(),
      createVirtualClock().clock,
      (...[call, route, context]) => forward(call, route, context),
    ),
    codings: [],
    backendNames: undefined,
    charging,
    permits: createCallPermits(),
    onCall: (method, outcome) => void calls.push(`${method}: ${outcome}`),
    onOutcome: (outcome) => void outcomes.push(outcome),
    gather: (signal) => createVirtualClock().clock.sleep(1, signal),
    beat: (signal) => createVirtualClock().clock.sleep(1, signal),
  });
  const envelope = readEnvelope(Buffer.from(body), 100);
  if (envelope.kind === 'malformed') throw new Error(envelope.reason);
  const routeOf = createRouter([backendOf()]);
  const planned = envelope.elements.map((element) => planCall(element, routeOf, PRICES));
  const request = new Request('http://gateway/', {
    method: 'POST',
    headers,
    ...(signal === undefined ? {} : { signal }),
  });
  const charge = {
    kind: 'charged',
    rate: { plan: PLAN, tokens: 3.5 },
  } as const;
  const response = await respond({
    request,
    peers: { timeout: (_, seconds) => void timeouts.push(seconds) },
    envelope,
    planned,
    caller: CALLER,
    plan: PLAN,
    credits: priceOf(planned).credits,
    charge,
    usage,
  });
  // A batch whose caller has left breaks off; nobody reads it then.
  const text = await response.text().catch((error: Error) => error.name);
  return { response, text, sent, refunds, rate, outcomes, calls, counted, timeouts };
}

const call = (method: string, id = '1') => `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`;
const NOTIFICATION = '{"jsonrpc":"2.0","method":"getSlot"}';
const OK = '{"jsonrpc":"2.0","result":1,"id":1}\n';
const noBackend = (id: string) =>
  `{"jsonrpc":"2.0","error":{"code":-503,"message":"No backend available"},"id":${id}}`;

describe('what a caller waited for is timed once for each answer, before its bytes', () => {
  test('that is small', async () => {
    const { counted } = await answered(call('getSlot'), () => whole(OK));
    expect(counted).toEqual(['0: answered', `0: ${OK.length} bytes`]);
  });
  test('of a batch, as its turn comes; not for a call that no backend could answer', async () => {
    const body = `[${call('getBlock')},${call('getSlot', '2')},${NOTIFICATION},${call('getNothing', '3')}]`;
    const { counted } = await answered(body, (method) =>
      method === 'getSlot' ? whole(OK) : { kind: 'no-backend' },
    );
    expect(counted.filter((each) => each.endsWith('answered'))).toEqual(['1: answered', '3: answered']);
  });
  test('and for none of a single call that is refused', async () => {
    const { counted } = await answered(call('getSlot'), () => ({ kind: 'no-backend' }));
    expect(counted.filter((each) => each.endsWith('answered'))).toEqual([]);
  });
});

describe('one call', () => {
  test("is answered with the backend's own bytes, its price and what is left", async () => {
    const { response, text, calls, refunds } = await answered(call('getProgramAccounts'), () => whole(OK));
    expect([response.status, text]).toEqual([200, OK]);
    expect(Object.fromEntries(response.headers)).toEqual({
      'content-type': 'application/json; charset=utf-8',
      'x-credits-cost': '50',
      'x-credits-left': '7',
      ratelimit: '"calls";r=3;t=2',
      'ratelimit-policy': '"calls";q=10;w=2',
    });
    expect([calls, refunds]).toEqual([['getProgramAccounts: answered'], []]);
  });

  test('on a plan without credits does not speak of what is left', async () => {
    const { response } = await answered(call('getSlot'), () => whole(OK), { paid: true });
    expect(response.headers.has('x-credits-left')).toBe(false);
    expect(response.headers.get('x-credits-cost')).toBe('1');
  });

  test("keeps the encoding of its answer, which was the caller's to ask for", async () => {
    const headers = { 'accept-encoding': 'zstd, gzip' };
    const { response, sent } = await answered(call('getSlot'), () => whole('…', 'zstd'), { headers });
    expect(sent[0]?.acceptEncoding).toBe('zstd, gzip');
    expect(response.headers.get('content-encoding')).toBe('zstd');
    expect(response.headers.get('vary')).toBe('accept-encoding');
  });

  test('that is an error is counted as one, compressed or not', async () => {
    const error = '{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"},"id":1}';
    const bytes = new Uint8Array(gzipSync(error));
    for (const reply of [whole(error), { kind: 'whole', bytes, encoding: 'gzip' } as const])
      expect((await answered(call('getSlot'), () => reply)).counted).toContain('0: error');
    expect((await answered(call('getSlot'), () => whole(OK))).counted).not.toContain('0: error');
  });

  test('of a caller who says nothing of encodings is asked for plain', async () => {
    expect((await answered(call('getSlot'), () => whole(OK))).sent[0]?.acceptEncoding).toBe('identity');
  });

  test('that no backend could answer is a 503, and its credits go back', async () => {
    const { response, text, refunds, rate, outcomes, calls } = await answered(
      call('getProgramAccounts', '"a"'),
      () => ({
        kind: 'no-backend',
      }),
    );
    expect([response.status, text]).toEqual([503, noBackend('"a"')]);
    expect(response.headers.get('retry-after')).toBe('1');
    expect([refunds, calls]).toEqual([[50], ['getProgramAccounts: no-backend']]);
    // The request as a whole is refused: it takes no rate, and is counted as what it is.
    expect([rate, outcomes]).toEqual([[1], ['no-backend']]);
    expect(response.headers.get('ratelimit-policy')).toBe('"calls";q=10;w=2');
  });

  test('whose caller left is paid for', async () => {
    const { refunds, calls } = await answered(call('getSlot'), () => ({ kind: 'caller-left' }));
    expect([refunds, calls]).toEqual([[], ['getSlot: caller-left']]);
  });

  test('of a method that nobody serves is answered and counted under no name', async () => {
    const { response, text, sent, calls } = await answered(call('getNothing'), () => whole(OK));
    expect([response.status, text]).toEqual([
      200,
      '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}',
    ]);
    expect([sent, calls]).toEqual([[], []]);
    expect(response.headers.get('x-credits-cost')).toBe('1');
  });
});

test('a notification, or a batch of them, is answered with nothing and sent nowhere', async () => {
  for (const body of [NOTIFICATION, `[${NOTIFICATION},${NOTIFICATION}]`]) {
    const { response, text, sent } = await answered(body, () => whole(OK));
    expect([response.status, text, sent.length]).toEqual([200, '', 0]);
    expect(response.headers.get('x-credits-cost')).toBe('0');
  }
});

test('the listener waits for a scan as long as its deadline says, and for nothing else', async () => {
  expect((await answered(call('getProgramAccounts'), () => whole(OK))).timeouts).toEqual([0, 255]);
  expect((await answered(call('getSlot'), () => whole(OK))).timeouts).toEqual([]);
});

describe('a batch', () => {
  test('is 200 whatever its calls say, and a call that no backend could answer has its own error and its own refund', async () => {
    const body = `[${call('getSlot')},${call('getProgramAccounts', '2')},${NOTIFICATION},${call('getNothing', '3')},7]`;
    const { response, text, refunds, rate, calls } = await answered(body, (method) =>
      method === 'getSlot' ? whole(OK) : { kind: 'no-backend' },
    );
    expect(response.status).toBe(200);
    expect(text).toBe(
      `[${OK},${noBackend('2')},` +
        '{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":3},' +
        '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: not an object"},"id":null}]',
    );
    expect([refunds, rate]).toEqual([[50], [1]]);
    expect(calls.toSorted()).toEqual(['getProgramAccounts: no-backend', 'getSlot: answered']);
    expect(response.headers.get('x-credits-cost')).toBe('2');
  });

  test('is asked for plain, because compressed answers cannot be spliced', async () => {
    const headers = { 'accept-encoding': 'gzip' };
    const { sent, response } = await answered(`[${call('getSlot')},${call('getSlot')}]`, () => whole(OK), {
      headers,
    });
    expect(sent.map(({ acceptEncoding }) => acceptEncoding)).toEqual(['identity', 'identity']);
    expect(response.headers.has('content-encoding')).toBe(false);
  });

  test('whose caller leaves ends its calls, also when he left before they began', async () => {
    const left = await answered(`[${call('getSlot')},${call('nope')}]`, () => ({ kind: 'caller-left' }), {
      signal: AbortSignal.abort(),
    });
    expect([left.sent, left.refunds, left.counted]).toEqual([[], [1, 1], ['0: refund', '1: refund']]);
    const leaving = new AbortController();
    const { sent } = await answered(`[${call('getSlot')}]`, () => whole(OK), { signal: leaving.signal });
    expect(sent[0]?.signal.aborted).toBe(false);
    leaving.abort();
    expect(sent[0]?.signal.aborted).toBe(true);
  });
});
