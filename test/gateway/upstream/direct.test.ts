import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Backend, HEALTHY, numberOf, preference } from '../../../gateway/upstream/backend.ts';
import { METHODS } from '../../../gateway/methods/table.ts';
import type { Reply } from '../../../gateway/upstream/forward.ts';
import type { HedgedCall } from '../../../gateway/upstream/hedge.ts';
import { CHUNKED, chunk, plain, type RawExchange, startRawBackend } from '../../fakes/raw-backend.ts';
import { ACCOUNT_ABC, backendOf, callOf, contextOf, forwardOf, routeTo, textOf } from './of.ts';
import { createVirtualClock } from '../virtual-clock.ts';

type Told = Readonly<{
  method?: string;
  params?: string;
  id?: string;
  accountId?: number;
  signal?: AbortSignal;
  acceptEncoding?: string;
}>;

const rpc = (id: string, result: string) => `{"jsonrpc":"2.0","result":${result},"id":${id}}`;
const at = (slot: number, value = 'null') =>
  `{"context":{"apiVersion":"3.0.0","slot":${slot}},"value":${value}}`;
const idOf = ({ text }: RawExchange) => /"id":("(?:[^"\\]|\\.)*"|[^,}]+)/.exec(text)?.[1] ?? '';
/** Resolves when it has happened, or should have long ago: what is expected then says what is missing. */
async function happened(has: () => boolean): Promise<void> {
  for (const endMs = Date.now() + 4_500; !has() && Date.now() < endMs;) await Bun.sleep(1);
}
/** Long enough for what must not happen on loopback to have happened. */
const nothingMore = () => Bun.sleep(30);

/**
 * Calls over the straight way to raw backends, of which the account prefers the first; hedged, when they are late by 5 ms, or
 * as late as the slowest three of the hundred before.
 */
function world(count = 1, isHedged = false, slowestMs = 1) {
  const { clock, advance } = createVirtualClock();
  const fakes = Array.from({ length: count }, () =>
    startRawBackend((exchange) => exchange.send(plain(rpc(idOf(exchange), '1')))),
  );
  const backends = fakes.map(({ url }, i) => backendOf({ name: 'abc'[i] ?? '', at: url, clock }));
  const begun: number[] = [];
  const failures: string[] = [];
  const hedges: string[] = [];
  const { direct, pool, hedge } = forwardOf(backends, clock, {
    ...(isHedged ? { onHedge: (outcome) => void hedges.push(outcome) } : {}),
    onResponseStart: (_, ms) => void begun.push(ms),
    onFailure: ({ config }, { kind }) => void failures.push(`${config.name} ${kind}`),
  });
  const routes = new Map<string, ReturnType<typeof routeTo>>();
  if (hedge !== undefined) {
    // Of a call that is over nothing else is read.
    const over = { isOver: true } as HedgedCall;
    for (let i = 0; i < 500; i++) hedge.watch(over);
    for (let i = 0; i < 100; i++) backends[0]?.latencies.state?.note(i < 97 ? 1 : slowestMs);
    hedge.tick();
  }

  function call({
    method = 'getAccountInfo',
    params = '["x"]',
    id = '1',
    ...rest
  }: Told = {}): Promise<Reply> {
    const route = routes.get(method) ?? routeTo(backends, method);
    routes.set(method, route);
    const context = contextOf({ accountId: ACCOUNT_ABC, ...rest });
    return new Promise((resolve) => {
      let replies = 0;
      direct(callOf(method, params, id), route, context, (reply) => {
        if (replies++ > 0) throw new Error('it replied twice');
        resolve(reply);
      });
    });
  }

  return {
    fakes,
    backends,
    advance,
    pool,
    begun,
    failures,
    hedges,
    call,
    text: async (told?: Told) => textOf(await call(told)),
    tick: () => backends.forEach(({ client }) => client.tick()),
    /** Lets the time come at which calls are late, until the second backend has what is sent to it; gives what it had before. */
    async late() {
      await happened(() => fakes[0]?.calls() === 1);
      advance(4);
      await nothingMore();
      const early = fakes[1]?.calls();
      const before = hedges.length;
      advance(1);
      await nothingMore();
      if (hedges.length > before) await happened(() => fakes[1]?.calls() === 1);
      return early;
    },
    inFlight: () => backends.map(({ inFlight }: Backend) => inFlight),
    /** Has a backend keep its calls waiting; gives them in their order. */
    held(backend = 0) {
      const exchanges: RawExchange[] = [];
      fakes[backend]?.script((exchange) => void exchanges.push(exchange));
      return exchanges;
    },
    [Symbol.dispose]() {
      for (const { client } of backends) client.close();
      for (const fake of fakes) fake[Symbol.dispose]();
    },
  };
}

test.each(['{"jsonrpc":"2.0","result":7,"id":"a\\"b"}', '{"jsonrpc":"2.0","result":7,"id":"a\\"b"}\n'])(
  'a plain small answer is given as its bytes are: %j',
  async (body) => {
    using gateway = world();
    gateway.fakes[0]?.script((exchange) => exchange.send(plain(body)));
    const reply = await gateway.call({ id: '"a\\"b"' });
    expect(reply).toMatchObject({ kind: 'whole', isResult: true, encoding: undefined });
    expect(await textOf(reply)).toBe(body);
    expect([gateway.inFlight(), gateway.begun.length, gateway.fakes[0]?.calls()]).toEqual([[0], 1, 1]);
  },
);

const ERROR = '{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid param"},"id":1}';
const BUSY = '{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is behind"},"id":1}';

test.each<[string, (exchange: RawExchange) => unknown, string]>([
  ['an error', ({ send }) => send(plain(ERROR)), ERROR],
  ['a chunked one', ({ send }) => send(`${CHUNKED}${chunk(rpc('1', '7'))}0\r\n\r\n`), rpc('1', '7')],
  [
    'one in pieces',
    async ({ send }) => {
      const bytes = plain(rpc('1', '7'));
      for (const piece of [bytes.slice(0, 40), bytes.slice(40, -3), bytes.slice(-3)]) {
        await send(piece);
        await Bun.sleep(5);
      }
    },
    rpc('1', '7'),
  ],
  [
    'a large one',
    ({ send }) => send(plain(rpc('1', `"${'x'.repeat(3 << 20)}"`))),
    rpc('1', `"${'x'.repeat(3 << 20)}"`),
  ],
])('%s is passed on as it came, by one attempt', async (_, script, wanted) => {
  using gateway = world(2);
  gateway.fakes[0]?.script(script);
  expect(await gateway.text()).toBe(wanted);
  expect(gateway.fakes.map((fake) => fake.calls())).toEqual([1, 0]);
  expect([gateway.inFlight(), gateway.begun.length, gateway.failures]).toEqual([[0, 0], 1, []]);
});

test.each<[string, (exchange: RawExchange) => unknown, string]>([
  ['a node that is behind', ({ send }) => send(plain(BUSY)), ''],
  ['a 503', ({ send }) => send('HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n'), 'a status'],
  ['no JSON', ({ send }) => send(plain('<html>')), 'a garbage'],
  ['JSON that is cut short', ({ send }) => send(plain('{"jsonrpc":"2.0","result":{"a":[1')), 'a garbage'],
  ['a broken connection', ({ reset }) => reset(), 'a no-answer'],
])(
  'after %s the call goes to another backend, and the first attempt is counted once',
  async (_, script, failure) => {
    using gateway = world(2);
    gateway.fakes[0]?.script(script);
    expect(await gateway.text()).toBe(rpc('1', '1'));
    expect(gateway.fakes.map((fake) => fake.calls())).toEqual([1, 1]);
    expect(gateway.failures).toEqual(failure === '' ? [] : [failure]);
    expect([gateway.inFlight(), gateway.begun.length]).toEqual([[0, 0], 1]);
    expect(gateway.backends[0]?.recent.sums().failed).toBe(1);
  },
);

test('a stream that is older is given all the same when no newer backend answers after all', async () => {
  using gateway = world(3);
  const [a, b, c] = gateway.fakes;
  const old = rpc('1', at(100, `"${'x'.repeat(3 << 20)}"`));
  a?.script((exchange) => exchange.send(plain(old)));
  b?.script((exchange) => exchange.send(plain(old)));
  c?.script(({ reset }) => reset());
  for (const backend of gateway.backends)
    gateway.pool.learn(backend, { accountId: ACCOUNT_ABC, commitment: 'finalized', slotMin: 0 }, 105);
  expect(await gateway.text()).toBe(old);
  expect([a?.calls(), b?.calls(), c?.calls(), gateway.inFlight()]).toEqual([2, 1, 1, [0, 0, 0]]);
});

test('an exchange ends when all who wait for it have left, and not before', async () => {
  using gateway = world();
  const exchanges = gateway.held();
  const callers = [new AbortController(), new AbortController()];
  const replies = callers.map(({ signal }, i) => gateway.call({ signal, accountId: i }));
  await happened(() => exchanges.length === 1);
  callers[0]?.abort();
  gateway.tick();
  expect(gateway.inFlight()).toEqual([1]);
  callers[1]?.abort();
  gateway.tick();
  expect(await Promise.all(replies)).toEqual([
    { kind: 'caller-left' },
    { kind: 'caller-left', unsent: true },
  ]);
  await exchanges[0]?.gone;
  const { failed } = gateway.backends[0]?.recent.sums() ?? {};
  expect([gateway.fakes[0]?.calls(), gateway.inFlight(), gateway.failures, failed]).toEqual([1, [0], [], 0]);
});

test('a read is not given up for backends that hang or are of another chain', async () => {
  using gateway = world(3);
  const [a, b, c] = gateway.backends;
  const exchanges = gateway.held();
  const text = gateway.text();
  await happened(() => exchanges.length === 1);
  if (b !== undefined) b.isSilent = true;
  if (c !== undefined) c.health = { ...HEALTHY, excludedBecause: 'of another chain' };
  a?.client.abandon('reads');
  await exchanges[0]?.send(plain(rpc('1', '7')));
  expect(await text).toBe(rpc('1', '7'));
  expect([gateway.failures, gateway.inFlight()]).toEqual([[], [0, 0, 0]]);
});

const ANSWER = plain(rpc('1', '"from one that hangs"'));
describe.each<[string, string]>([
  ['whose head has come', ANSWER.slice(0, ANSWER.indexOf('{'))],
  ['half of which has come', ANSWER.slice(0, -20)],
  ['that began to be an error', `${CHUNKED}${chunk('{"jsonrpc":"2.0","error":{"code"')}`],
])('a small answer %s', (_, begun) => {
  test('goes to another backend when its own is given up', async () => {
    using gateway = world(2);
    gateway.fakes[0]?.script((exchange) => exchange.send(begun));
    const text = gateway.text();
    await happened(() => gateway.fakes[0]?.calls() === 1);
    expect(await Promise.race([text, nothingMore()])).toBeUndefined();
    gateway.backends[0]?.client.abandon('reads');
    expect([await text, gateway.failures]).toEqual([rpc('1', '1'), ['a no-answer']]);
  });

  test('is asked for again when its backend lost it', async () => {
    using gateway = world();
    gateway.fakes[0]?.script((exchange) => exchange.send(begun));
    const text = gateway.text();
    await happened(() => gateway.fakes[0]?.calls() === 1);
    await nothingMore();
    gateway.fakes[0]?.script((exchange) => exchange.send(plain(rpc(idOf(exchange), '1'))));
    gateway.backends[0]?.client.abandon('lost');
    expect(await text).toBe(rpc('1', '1'));
    expect(gateway.inFlight()).toEqual([0]);
  });
});

test('a backend whose end is not trusted is checked to the last byte of a small answer', async () => {
  using gateway = world(2);
  const [first] = gateway.backends;
  if (first !== undefined) Object.assign(first.config, { trustsEnd: false });
  gateway.fakes[0]?.script((exchange) => exchange.send(plain('{"jsonrpc":"2.0","result":{"a":[1,"id":1}')));
  expect(await gateway.text()).toBe(rpc('1', '1'));
  expect(gateway.failures).toEqual(['a garbage']);
});

describe('identical reads that are under way', () => {
  test('share one attempt: each caller gets the answer under its own id, byte for byte, and its own reply', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof(fc.integer(), fc.string()).map((id) => JSON.stringify(id)),
          { minLength: 2, maxLength: 6 },
        ),
        fc.json(),
        fc.constantFrom('', '\n'),
        async (ids, value, end) => {
          using gateway = world();
          const exchanges = gateway.held();
          const texts = ids.map((id, i) => gateway.text({ id, accountId: i }));
          while (exchanges.length === 0) await Bun.sleep(1);
          await exchanges[0]?.send(plain(`${rpc(ids[0] ?? '', at(7, value))}${end}`));
          expect(await Promise.all(texts)).toEqual(ids.map((id) => `${rpc(id, at(7, value))}${end}`));
          const { fakes, begun, inFlight } = gateway;
          expect([fakes[0]?.calls(), begun.length, inFlight()]).toEqual([1, ids.length, [0]]);
        },
      ),
      { numRuns: 40 },
    );
  });

  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['breaks off', ({ reset }) => reset()],
    ['is an error', ({ send }) => send(plain(ERROR))],
  ])('go each their own way when the attempt %s', async (_, script) => {
    using gateway = world(2);
    const exchanges = gateway.held();
    const texts = ['1', '2', '3'].map((id) => gateway.text({ id }));
    await happened(() => exchanges.length === 1);
    await nothingMore();
    expect(exchanges.length).toBe(1);
    gateway.fakes[0]?.script((exchange) => exchange.send(plain(rpc(idOf(exchange), '"own"'))));
    const [first] = exchanges;
    if (first !== undefined) await script(first);
    const [, second, third] = await Promise.all(texts);
    expect(second).toMatch(/^\{"jsonrpc":"2.0","result":("own"|1),"id":2\}$/);
    expect(third).toMatch(/^\{"jsonrpc":"2.0","result":("own"|1),"id":3\}$/);
    expect(gateway.inFlight()).toEqual([0, 0]);
  });

  test('all go to another backend when theirs is left out, which has failed once', async () => {
    using gateway = world(2);
    const exchanges = gateway.held();
    const texts = ['1', '2', '3'].map((id) => gateway.text({ id }));
    await happened(() => exchanges.length === 1);
    gateway.backends[0]?.client.abandon('reads');
    expect(await Promise.all(texts)).toEqual(['1', '2', '3'].map((id) => rpc(id, '1')));
    expect([gateway.fakes[0]?.calls(), gateway.failures]).toEqual([1, ['a no-answer']]);
    expect(gateway.backends[0]?.recent.sums()).toEqual({ answered: 0, failed: 1 });
  });

  test('give no caller an older slot than it has been shown: it asks for itself', async () => {
    using gateway = world();
    const exchanges = gateway.held();
    const leader = gateway.text();
    await happened(() => exchanges.length === 1);
    // Meanwhile another read has shown slot 101 of the same node.
    const [backend] = gateway.backends;
    if (backend === undefined) throw new Error('there is one');
    gateway.pool.learn(backend, { accountId: 2, commitment: 'finalized', slotMin: 0 }, 101);
    const follower = gateway.text({ id: '2', accountId: 2 });
    gateway.fakes[0]?.script((exchange) => exchange.send(plain(rpc(idOf(exchange), at(102)))));
    await exchanges[0]?.send(plain(rpc('1', at(100))));
    expect(await Promise.all([leader, follower])).toEqual([rpc('1', at(100)), rpc('2', at(102))]);
    expect(gateway.fakes[0]?.calls()).toBe(2);
  });

  test('are joined only within 100 ms, so that an answer is no older than that', async () => {
    using gateway = world();
    const exchanges = gateway.held();
    const texts = [gateway.text()];
    gateway.advance(100);
    texts.push(gateway.text());
    gateway.advance(1);
    texts.push(gateway.text());
    await happened(() => exchanges.length === 2);
    await nothingMore();
    expect(exchanges.length).toBe(2);
    for (const exchange of exchanges) await exchange.send(plain(rpc('1', at(7))));
    await Promise.all(texts);
  });

  test('are not shared with an account that reads from another backend: it does not wait for that one', async () => {
    using gateway = world(2);
    const exchanges = gateway.held();
    const own = gateway.text();
    const isOther = (id: number) => preference(id, numberOf('b')) > preference(id, numberOf('a'));
    const accountId = [...Array(1_000).keys()].find(isOther) ?? 0;
    expect(await gateway.text({ id: '2', accountId })).toBe(rpc('2', '1'));
    while (exchanges.length === 0) await Bun.sleep(1); // until it has arrived
    await exchanges[0]?.send(plain(rpc('1', '7')));
    expect(await own).toBe(rpc('1', '7'));
  });

  test.each<[string, Told, Told]>([
    ['other parameters', { params: '["x"]' }, { params: '["y"]' }],
    ['parameters in other words', { params: '["x"]' }, { params: '[ "x"]' }],
    ['another encoding', { acceptEncoding: 'identity' }, { acceptEncoding: 'gzip' }],
    ['a method that is not shared', { method: 'getEpochInfo' }, { method: 'getEpochInfo' }],
    ['parameters above 1 KB', { params: `["${'x'.repeat(1_100)}"]` }, { params: `["${'x'.repeat(1_100)}"]` }],
  ])('are not those with %s', async (_, one, other) => {
    using gateway = world();
    const exchanges = gateway.held();
    const both = [gateway.call(one), gateway.call(other)];
    await happened(() => exchanges.length === 2);
    await nothingMore();
    expect(exchanges.length).toBe(2);
    for (const exchange of exchanges) await exchange.send(plain(rpc('1', at(7))));
    await Promise.all(both);
  });

  test('are never sends, statuses, or what has another rule of its own', () => {
    const ruled = ['sendTransaction', 'getSignatureStatuses', 'getHealth', 'getProgramAccounts'];
    for (const method of ruled) expect([method, METHODS.get(method)?.direct]).toEqual([method, false]);
    for (const [name, { direct, shared = false, class: kind }] of METHODS)
      if (shared) expect([name, direct, ['light', 'meta'].includes(kind)]).toEqual([name, true, true]);
  });
});

test('a slow backend is tried by one call alone: others of the same read do not wait for that', async () => {
  using gateway = world(2);
  const [first] = gateway.backends;
  for (let i = 0; i < 200; i++) first?.latencies.state?.note(3_000);
  for (let i = 0; i < 5; i++) gateway.backends[1]?.latencies.state?.note(1);
  gateway.pool.compareLatencies();
  const exchanges = gateway.held();
  gateway.advance(25_000);
  const trial = gateway.text();
  expect(await gateway.text({ id: '2' })).toBe(rpc('2', '1'));
  expect(gateway.fakes.map((fake) => fake.calls())).toEqual([1, 1]);
  await exchanges[0]?.send(plain(rpc('1', '7')));
  expect(await trial).toBe(rpc('1', '7'));
});

describe('a read that is late, with hedging', () => {
  test('is sent to a second backend, whose answer is the answer; the first attempt is ended, and nobody has failed', async () => {
    using gateway = world(2, true);
    const exchanges = gateway.held();
    const text = gateway.text();
    expect(await gateway.late()).toBe(0);
    expect(await text).toBe(rpc('1', '1'));
    expect([gateway.begun, gateway.hedges]).toEqual([[5], ['made', 'won']]);
    gateway.tick();
    await exchanges[0]?.gone;
    expect([gateway.inFlight(), gateway.failures]).toEqual([[0, 0], []]);
    expect(gateway.backends.map(({ recent }) => recent.sums())).toEqual([
      { answered: 0, failed: 0 },
      { answered: 1, failed: 0 },
    ]);
  });

  test('G14 is late when 99 of 100 of its lane had begun sooner, and not before', async () => {
    using gateway = world(2, true, 50);
    const exchanges = gateway.held();
    const text = gateway.text();
    await happened(() => exchanges.length === 1);
    gateway.advance(45);
    await nothingMore();
    expect([gateway.hedges, gateway.fakes[1]?.calls()]).toEqual([[], 0]);
    gateway.advance(15);
    expect(await text).toBe(rpc('1', '1'));
    expect(gateway.hedges).toEqual(['made', 'won']);
  });

  test('takes the first answer when that comes after all, and drops the second', async () => {
    using gateway = world(2, true);
    const [first, second] = [gateway.held(), gateway.held(1)];
    const text = gateway.text();
    await gateway.late();
    expect([first.length, second.length]).toEqual([1, 1]);
    await first[0]?.send(plain(rpc('1', '7')));
    expect(await text).toBe(rpc('1', '7'));
    gateway.tick();
    await second[0]?.gone;
    expect([gateway.inFlight(), gateway.failures, gateway.hedges]).toEqual([[0, 0], [], ['made']]);
  });

  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['breaks off', ({ reset }) => reset()],
    ['is an error', ({ send }) => send(plain(BUSY))],
    ['is large', (exchange) => exchange.send(plain(rpc(idOf(exchange), `"${'x'.repeat(3 << 20)}"`)))],
    ['is older than what was shown', (exchange) => exchange.send(plain(rpc(idOf(exchange), at(100))))],
    ["is another call's", ({ send }) => send(plain(rpc('99', '1')))],
  ])('waits for the first when the second %s, which is no failure', async (_, script) => {
    using gateway = world(2, true);
    const [a] = gateway.backends;
    if (a === undefined) throw new Error('there is one');
    gateway.pool.learn(a, { accountId: ACCOUNT_ABC, commitment: 'finalized', slotMin: 0 }, 105);
    const exchanges = gateway.held();
    gateway.fakes[1]?.script(script);
    const text = gateway.text();
    await gateway.late();
    await happened(() => gateway.inFlight()[1] === 0);
    expect([gateway.fakes[1]?.calls(), gateway.inFlight()]).toEqual([1, [1, 0]]);
    await exchanges[0]?.send(plain(rpc('1', at(106))));
    expect(await text).toBe(rpc('1', at(106)));
    expect([gateway.inFlight(), gateway.failures, gateway.hedges]).toEqual([[0, 0], [], ['made']]);
    expect(gateway.backends[1]?.recent.sums().failed).toBe(0);
  });

  test('goes on as if alone when the first fails while the second is out', async () => {
    using gateway = world(2, true);
    const [first, second] = [gateway.held(), gateway.held(1)];
    const text = gateway.text();
    await gateway.late();
    gateway.fakes[1]?.script((exchange) => exchange.send(plain(rpc(idOf(exchange), '7'))));
    first[0]?.reset();
    expect(await text).toBe(rpc('1', '7'));
    gateway.tick();
    await second[0]?.gone;
    expect([gateway.inFlight(), gateway.failures]).toEqual([[0, 0], ['a no-answer']]);
  });

  test('answers all who share it, each under its own id', async () => {
    using gateway = world(2, true);
    gateway.held();
    const texts = ['1', '2', '3'].map((id) => gateway.text({ id }));
    await gateway.late();
    expect(await Promise.all(texts)).toEqual(['1', '2', '3'].map((id) => rpc(id, '1')));
    expect(gateway.fakes.map((fake) => fake.calls())).toEqual([1, 1]);
  });

  test('is given up when its caller leaves, at both', async () => {
    using gateway = world(2, true);
    const both = [gateway.held(), gateway.held(1)];
    const caller = new AbortController();
    const reply = gateway.call({ signal: caller.signal });
    await gateway.late();
    caller.abort();
    gateway.tick();
    expect(await reply).toEqual({ kind: 'caller-left' });
    await Promise.all(both.map(([exchange]) => exchange?.gone));
    expect([gateway.inFlight(), gateway.failures]).toEqual([[0, 0], []]);
  });

  test('ends at the deadline of one call, although it was sent twice', async () => {
    using gateway = world(2, true);
    const both = [gateway.held(), gateway.held(1)];
    const reply = gateway.call();
    await gateway.late();
    gateway.advance(29_995);
    gateway.tick();
    await happened(() => both[1]?.length === 2);
    // Both are cut; the call goes on elsewhere, as after any attempt.
    expect(both.map((exchanges) => exchanges.length)).toEqual([1, 2]);
    gateway.advance(30_000);
    gateway.tick();
    expect(await reply).toMatchObject({ kind: 'no-backend' });
    expect(gateway.inFlight()).toEqual([0, 0]);
  });

  test.each<[string, (backend: Backend) => void]>([
    ['left out', (backend) => (backend.health = { ...HEALTHY, excludedBecause: 'lagging' })],
    ['slow', ({ latencies }) => latencies.state !== undefined && (latencies.state.isSlow = true)],
    ['full', (backend) => (backend.inFlight = 512)],
    ['for shorter requests', ({ config }) => Object.assign(config, { bodyBytesMax: 10 })],
  ])('is sent once when the second backend is %s', async (_, make) => {
    using gateway = world(2, true);
    const exchanges = gateway.held();
    const [, second] = gateway.backends;
    if (second !== undefined) make(second);
    const text = gateway.text();
    await gateway.late();
    await exchanges[0]?.send(plain(rpc('1', '7')));
    expect([await text, gateway.hedges, gateway.fakes[1]?.calls()]).toEqual([rpc('1', '7'), [], 0]);
  });

  test('is one of fifty calls at most, and no burst of them', async () => {
    using gateway = world(2, true);
    const answerAll = (exchange: RawExchange) => exchange.send(plain(rpc(idOf(exchange), '7')));
    const SAVED = 10;
    const CALLS = 600;
    for (let sent = 0; sent < CALLS; sent += 20) {
      const exchanges = gateway.held();
      const texts = Array.from({ length: 20 }, (_, i) => gateway.text({ params: `[${sent + i}]` }));
      while (exchanges.length < 20) await Bun.sleep(1); // until all have arrived
      gateway.advance(5);
      await Bun.sleep(1); // a turn of the loop, so that whoever slept has acted
      for (const exchange of exchanges) await answerAll(exchange);
      await Promise.all(texts);
    }
    const made = gateway.hedges.filter((outcome) => outcome === 'made').length;
    expect(made).toBeWithin(SAVED, SAVED + CALLS / 50 + 1);
  }, 30_000);
});

const OUTCOMES: Readonly<Record<string, (exchange: RawExchange) => unknown>> = {
  plain: (exchange) => exchange.send(plain(rpc(idOf(exchange), at(7)))),
  old: (exchange) => exchange.send(plain(rpc(idOf(exchange), at(3)))),
  otherId: (exchange) => exchange.send(plain(rpc('99', '1'))),
  error: ({ send }) => send(plain(ERROR)),
  busy: ({ send }) => send(plain(BUSY)),
  later: ({ send }) => send(plain('{"jsonrpc":"2.0","error":{"code":-32014,"message":"x"},"id":1}')),
  null: (exchange) => exchange.send(plain(rpc(idOf(exchange), 'null'))),
  chunked: (exchange) => exchange.send(`${CHUNKED}${chunk(rpc(idOf(exchange), '1'))}0\r\n\r\n`),
  cut: async (exchange) => {
    await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":["')}`);
    exchange.end();
  },
  large: (exchange) => exchange.send(plain(rpc(idOf(exchange), `"${'x'.repeat(1 << 20)}"`))),
  garbage: ({ send }) => send(plain('<html>')),
  unavailable: ({ send }) => send('HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n'),
  reset: ({ reset }) => reset(),
  end: ({ end }) => end(),
  stall: () => undefined,
};

test.each([
  ['once', false],
  ['twice when they are late', true],
])(
  'whatever becomes of calls that are sent %s, each has one reply and every permit comes back',
  async (_, isHedged) => {
    const kinds = Object.keys(OUTCOMES);
    const one = fc.record({
      kind: fc.constantFrom(...kinds),
      // Few different reads, so that some are shared.
      params: fc.nat(2),
      leaves: fc.boolean(),
      isStream: fc.constantFrom('read', 'cancel'),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(one, { minLength: 1, maxLength: 12 }),
        fc.infiniteStream(fc.constantFrom(...kinds)),
        async (calls, outcomes) => {
          using gateway = world(2, isHedged);
          for (const fake of gateway.fakes) {
            fake.script((exchange) => {
              const { value } = outcomes.next();
              return OUTCOMES[value ?? 'plain']?.(exchange);
            });
          }
          const callers: AbortController[] = [];
          let replied = 0;
          const all = calls.map(async ({ params, leaves, isStream }, i) => {
            const caller = new AbortController();
            if (leaves) callers.push(caller);
            const reply = await gateway.call({
              params: `[${params}]`,
              id: `${i}`,
              accountId: i % 3,
              signal: caller.signal,
            });
            replied++;
            if (reply.kind === 'stream' && isStream === 'cancel') return reply.body.cancel();
            await textOf(reply);
          });
          const done = Promise.all(all).then(() => true);
          for (let turn = 0; turn < 400; turn++) {
            if (await Promise.race([done, Bun.sleep(1)])) break;
            if (turn === 3) callers.forEach((caller) => caller.abort());
            if (isHedged && turn % 4 === 1) gateway.advance(5);
            if (turn % 4 === 3) gateway.advance(20_000);
            gateway.tick();
          }
          expect(replied).toBe(calls.length);
          // What lost against a second attempt ends with the next looks.
          for (let look = 0; look < 20 && gateway.inFlight().some((count) => count > 0); look++) {
            gateway.tick();
            await Bun.sleep(1);
          }
          expect(gateway.inFlight()).toEqual([0, 0]);
        },
      ),
      { numRuns: 60 },
    );
  },
  30_000,
);
