import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { type Backend, HEALTHY } from '../../../gateway/upstream/backend.ts';
import { CHUNKED, chunk, plain, type RawExchange } from '../../fakes/raw-backend.ts';
import { ACCOUNT_ABC, textOf } from './of.ts';
import { at, BUSY, ERROR, happened, nothingMore, rpc, world } from './straight-way.ts';

const inChunks = (text: string) => `${CHUNKED}${chunk(text)}0\r\n\r\n`;

describe('a read that is late, with hedging', () => {
  test('is sent to a second backend, whose answer is the answer; the first attempt is ended, and nobody has failed', async () => {
    using gateway = world(2, true);
    const exchanges = gateway.held();
    const text = gateway.text();
    expect(await gateway.late()).toBe(0);
    expect(await text).toBe(rpc('1', '1'));
    expect([gateway.begun.map(Math.floor), gateway.hedges]).toEqual([[5], ['made', 'won']]);
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
    expect(first[0]?.id).not.toBe(second[0]?.id);
    await first[0]?.send(plain(rpc('1', '7')));
    expect(await text).toBe(rpc('1', '7'));
    gateway.tick();
    await second[0]?.gone;
    expect([gateway.inFlight(), gateway.failures, gateway.hedges]).toEqual([[0, 0], [], ['made']]);
  });

  test("closes the connection over which the second answer was another call's: what follows may be too", async () => {
    using gateway = world(2, true);
    const [first, second] = [gateway.held(), gateway.held(1)];
    const text = gateway.text();
    await gateway.late();
    await second[0]?.send(plain(rpc('99', '1')));
    await second[0]?.gone;
    await first[0]?.send(plain(rpc('1', '7')));
    expect([await text, second.length]).toEqual([rpc('1', '7'), 1]);
  });

  test.each<[string, number, (text: string) => string]>([
    ['the second answer, in chunks', 1, inChunks],
    ['the answer of the first attempt that comes too late', 0, plain],
    ['the answer of the first attempt that comes too late, in chunks', 0, inChunks],
  ])("B12 closes the connection over which %s was another call's", async (_, which, framedAs) => {
    using gateway = world(2, true);
    const held = [gateway.held(), gateway.held(1)];
    const text = gateway.text();
    await gateway.late();
    const [late, other] = [held[which]?.[0], held[1 - which]?.[0]];
    if (which === 0) await other?.send(plain(rpc('1', '7')));
    if (which === 0) await text;
    await late?.send(framedAs(rpc('"ABCDEFGHIJKLMNOP"', '1')));
    await late?.gone;
    if (which === 1) await other?.send(plain(rpc('1', '7')));
    expect([await text, gateway.inFlight(), gateway.failures]).toEqual([rpc('1', '7'), [0, 0], []]);
  });

  test('B12 keeps the connection of the first attempt when its own answer comes too late', async () => {
    using gateway = world(2, true);
    const [first, second] = [gateway.held(), gateway.held(1)];
    const text = gateway.text();
    await gateway.late();
    await second[0]?.send(plain(rpc('1', '7')));
    await text;
    await first[0]?.send(plain(rpc('1', '1')));
    await happened(() => gateway.inFlight()[0] === 0);
    const next = gateway.text({ params: '["y"]' });
    await happened(() => first.length === 2);
    await first[1]?.send(plain(rpc('1', '2')));
    expect([await next, gateway.fakes[0]?.connections()]).toEqual([rpc('1', '2'), 1]);
  });

  test("B12 keeps the connection over which the second answer was the call's own error", async () => {
    using gateway = world(2, true);
    const [first, second] = [gateway.held(), gateway.held(1)];
    const text = gateway.text();
    await gateway.late();
    let isGone = false;
    void second[0]?.gone.then(() => (isGone = true));
    await second[0]?.send(plain(BUSY.replace('"id":1', `"id":${second[0].id}`)));
    await happened(() => gateway.inFlight()[1] === 0);
    await first[0]?.send(plain(rpc('1', '7')));
    expect(await text).toBe(rpc('1', '7'));
    await nothingMore();
    expect(isGone).toBe(false);
  });

  test.each<[string, (exchange: RawExchange) => unknown]>([
    ['breaks off', ({ reset }) => reset()],
    ['is an error', ({ send }) => send(plain(BUSY))],
    ['is large', (exchange) => exchange.send(plain(rpc(exchange.id, `"${'x'.repeat(3 << 20)}"`)))],
    ['is older than what was shown', (exchange) => exchange.send(plain(rpc(exchange.id, at(100))))],
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
    gateway.fakes[1]?.script((exchange) => exchange.send(plain(rpc(exchange.id, '7'))));
    first[0]?.reset();
    expect(await text).toBe(rpc('1', '7'));
    gateway.tick();
    await second[0]?.gone;
    expect([gateway.inFlight(), gateway.failures]).toEqual([[0, 0], ['a no-answer']]);
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
    const answerAll = (exchange: RawExchange) => exchange.send(plain(rpc(exchange.id, '7')));
    const SAVED = 10;
    const CALLS = 600;
    for (let sent = 0; sent < CALLS; sent += 20) {
      const exchanges = gateway.held();
      const texts = Array.from({ length: 20 }, (_, i) => gateway.text({ params: `[${sent + i}]` }));
      await gateway.fakes[0]?.called(sent + 20);
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
  plain: (exchange) => exchange.send(plain(rpc(exchange.id, at(7)))),
  old: (exchange) => exchange.send(plain(rpc(exchange.id, at(3)))),
  otherId: (exchange) => exchange.send(plain(rpc('99', '1'))),
  error: ({ send }) => send(plain(ERROR)),
  busy: ({ send }) => send(plain(BUSY)),
  later: ({ send }) => send(plain('{"jsonrpc":"2.0","error":{"code":-32014,"message":"x"},"id":1}')),
  null: (exchange) => exchange.send(plain(rpc(exchange.id, 'null'))),
  chunked: (exchange) => exchange.send(inChunks(rpc(exchange.id, '1'))),
  cut: async (exchange) => {
    await exchange.send(`${CHUNKED}${chunk('{"jsonrpc":"2.0","result":["')}`);
    exchange.end();
  },
  large: (exchange) => exchange.send(plain(rpc(exchange.id, `"${'x'.repeat(1 << 20)}"`))),
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
