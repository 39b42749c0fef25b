import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { HEALTHY, numberOf, preference } from '../../../gateway/upstream/backend.ts';
import { CHUNKED, chunk, plain, type RawExchange } from '../../fakes/raw-backend.ts';
import { ACCOUNT_ABC, textOf } from './of.ts';
import { at, BUSY, ERROR, happened, nothingMore, rpc, type Told, world } from './straight-way.ts';

test.each(['', '\n'])('a plain small answer is given as its bytes are, with a %j at its end', async (end) => {
  using gateway = world();
  gateway.fakes[0]?.script((exchange) => exchange.send(plain(rpc(exchange.id, '7') + end)));
  const reply = await gateway.call({ id: '"a\\"b"' });
  expect(reply).toMatchObject({ kind: 'whole', code: undefined });
  expect(await textOf(reply)).toBe(`${rpc('"a\\"b"', '7')}${end}`);
  expect([gateway.inFlight(), gateway.begun.length, gateway.fakes[0]?.calls()]).toEqual([[0], 1, 1]);
});

test.each<[string, (exchange: RawExchange) => unknown, string]>([
  ['an error', ({ send }) => send(plain(ERROR)), ERROR],
  ['a chunked one', ({ send }) => send(`${CHUNKED}${chunk(rpc('1', '7'))}0\r\n\r\n`), rpc('1', '7')],
  [
    'one in pieces',
    async ({ send, id }) => {
      const bytes = plain(rpc(id, '7'));
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
    gateway.fakes[0]?.script((exchange) => exchange.send(plain(rpc(exchange.id, '1'))));
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
  test('share one attempt: each caller gets the answer under its own id, byte for byte, and its own reply (§2.3.8)', async () => {
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
          await gateway.fakes[0]?.called(1);
          await exchanges[0]?.send(plain(`${rpc(exchanges[0].id, at(7, value))}${end}`));
          expect(await Promise.all(texts)).toEqual(ids.map((id) => `${rpc(id, at(7, value))}${end}`));
          const { fakes, begun, inFlight } = gateway;
          expect([fakes[0]?.calls(), begun.length, inFlight()]).toEqual([1, ids.length, [0]]);
        },
      ),
      { numRuns: 40 },
    );
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

  test('are whole for those who wait, whose answers are made before the first caller takes the memory (§2.3.8)', async () => {
    using gateway = world();
    const exchanges = gateway.held();
    // One byte shorter than the id of the send, so that the end moves onto itself.
    const ids = [`"${'x'.repeat(15)}"`, '2'];
    const texts = ids.map((id) => gateway.text({ id }));
    await happened(() => exchanges.length === 1);
    await exchanges[0]?.send(plain(`${rpc('1', '1')}\n`));
    expect(await Promise.all(texts)).toEqual(ids.map((id) => `${rpc(id, '1')}\n`));
  });

  test('give no caller an older slot than it has been shown: it asks for itself (§2.3.7)', async () => {
    using gateway = world();
    const exchanges = gateway.held();
    const leader = gateway.text();
    await happened(() => exchanges.length === 1);
    // Meanwhile another read has shown slot 101 of the same node.
    const [backend] = gateway.backends;
    if (backend === undefined) throw new Error('there is one');
    gateway.pool.learn(backend, { accountId: 2, commitment: 'finalized', slotMin: 0 }, 101);
    const follower = gateway.text({ id: '2', accountId: 2 });
    gateway.fakes[0]?.script((exchange) => exchange.send(plain(rpc(exchange.id, at(102)))));
    await exchanges[0]?.send(plain(rpc('1', at(100))));
    expect(await Promise.all([leader, follower])).toEqual([rpc('1', at(100)), rpc('2', at(102))]);
    expect(gateway.fakes[0]?.calls()).toBe(2);
  });

  test('go once more to their backend, each on a new connection, when the kept one of the first closes, and then elsewhere', async () => {
    using gateway = world(2);
    const warm = gateway.held();
    const before = ['a', 'b', 'c', 'd'].map((params) => gateway.text({ params: `["${params}"]` }));
    await happened(() => warm.length === before.length);
    for (const exchange of warm) await exchange.send(plain(rpc(exchange.id, '7')));
    await Promise.all(before);
    const [first, second] = gateway.fakes;
    const connections = first?.connections() ?? 0;
    first?.script(({ reset }) => reset());
    const texts = ['1', '2', '3'].map((id) => gateway.text({ id }));
    expect(await Promise.all(texts)).toEqual(['1', '2', '3'].map((id) => rpc(id, '1')));
    expect([first?.calls(), first?.connections(), second?.calls()]).toEqual([4 + 1 + 3, connections + 3, 3]);
    expect(gateway.inFlight()).toEqual([0, 0]);
  });

  test('are joined only within 100 ms, so that an answer is no older than that', async () => {
    using gateway = world();
    const exchanges = gateway.held();
    const texts = [gateway.text()];
    gateway.advance(99.9);
    texts.push(gateway.text());
    gateway.advance(0.2);
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
    await gateway.fakes[0]?.called(1);
    await exchanges[0]?.send(plain(rpc('1', '7')));
    expect(await own).toBe(rpc('1', '7'));
  });

  test('are not those that only have the same place: of hundreds that come together each has its own answer', async () => {
    using gateway = world();
    gateway.fakes[0]?.script((exchange) => {
      const number = /"params":\[(\d+)\]/.exec(exchange.text)?.[1];
      return exchange.send(plain(rpc(exchange.id, number ?? '')));
    });
    const numbers = Array.from({ length: 400 }, (_, i) => String(1_000 + i));
    const texts = numbers.map((number) => gateway.text({ params: `[${number}]` }));
    expect(await Promise.all(texts)).toEqual(numbers.map((number) => rpc('1', number)));
  });

  test.each<[string, Told, Told]>([
    ['parameters in other words', { params: '["x"]' }, { params: '[ "x"]' }],
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
