import { describe, expect, test } from 'bun:test';
import { BodyBudget, type Holder } from '../../../gateway/listener/body-budget.ts';
import { Exchange } from '../../../gateway/listener/exchange.ts';
import { readRequestHead } from '../../../gateway/http/request-head.ts';
import { openCaller, postText, type RawCaller } from '../../fakes/raw-caller.ts';
import { result, startBackend } from '../../fakes/backend.ts';
import { startGateway } from '../../started/gateway.ts';
import { get, open, text, turns } from './open-listener.ts';

const MIB = 1 << 20;
const HOLDERS: readonly Holder[] = ['keyless', 1, 'unknown', 2];
const CALL = '{"jsonrpc":"2.0","id":7,"method":"getSlot"}';

/** An exchange with a body to come, and what its memory is counted in. */
function exchangeOf(budget: BodyBudget, framing: string): Exchange {
  const read = readRequestHead(Buffer.from(`POST / HTTP/1.1\r\nhost: a\r\n${framing}\r\n\r\n`));
  if (read.kind !== 'head') throw new Error(read.kind);
  return new Exchange(read.head, { peer: null, readOn: () => undefined }, budget);
}

describe('F17 the memory of bodies under way (§2.5 503)', () => {
  test('F17 leaves room for another holder, whoever has taken what', () => {
    const budget = new BodyBudget(16 * MIB);
    const takeAll = (holder: Holder) => {
      const shares = [];
      for (let share = budget.share(); share(holder, 65_536); share = budget.share()) shares.push(share);
      return shares;
    };
    const taken = HOLDERS.map(takeAll);
    expect(taken[0]?.length).toBe(32);
    expect(taken.every(({ length }) => length > 2)).toBe(true);
    expect(budget.bytes).toBe(65_536 * taken.flat().length);
    expect(budget.bytes).toBeLessThan(16 * MIB);
    for (const share of taken.flat()) share(1, 0);
    expect([budget.bytes, takeAll(4).length]).toEqual([0, 192]);
  });

  test('F17 is what they hold on to, and not their bytes alone', async () => {
    const budget = new BodyBudget(16 * MIB);
    const exchange = exchangeOf(budget, 'content-length: 100000');
    void exchange.readBody(100_000, 1);
    // Little in the end of much, as it is where requests are sent ahead.
    const read = Buffer.alloc(500_000, 'a');
    exchange.receive(read.subarray(-20_000));
    expect(budget.bytes).toBe(20_000);
    for (let i = 0; i < 1_000; i++) exchange.receive(Buffer.from('a'));
    expect(budget.bytes).toBe(21_000);
    exchange.receive(read.subarray(0, 400_000).subarray(0, 79_000));
    expect(budget.bytes).toBeLessThan(110_000);
    exchange.release();
    expect(budget.bytes).toBe(0);
  });

  test('F17 counts from the first byte, also while its key is looked up, and no more after its refusal (§6 request bodies in progress)', () => {
    const budget = new BodyBudget(16 * MIB);
    const exchange = exchangeOf(budget, 'content-length: 5000000');
    exchange.receive(Buffer.alloc(1_000_000));
    exchange.count('unknown');
    expect(budget.bytes).toBe(1_000_000);
    exchange.receive(Buffer.alloc(1_500_000));
    expect(budget.bytes).toBe(2_500_000);
    // An eighth of all is less.
    expect(exchange.readBody(5_000_000)).toEqual({ kind: 'bodies-full' });
    expect(budget.bytes).toBe(0);
  });

  test('F17 of a body that fits nowhere the rest is read over, and its connection goes on', async () => {
    const { url } = open(
      async (request) => {
        const body = await request.readBody(MIB, 1);
        return text(body.kind, body.kind === 'body' ? 200 : 503);
      },
      undefined,
      { bodies_bytes: 2 * MIB },
    );
    const sized = (bytes: number) => `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${bytes}\r\n\r\n`;
    const half = 'x'.repeat(800_000);
    using first = await openCaller(url);
    using second = await openCaller(url);
    first.send(sized(MIB) + half);
    await turns();
    second.send(sized(MIB) + half);
    expect(await second.until('bodies-full')).toContain('HTTP/1.1 503 ');
    first.send('x'.repeat(MIB - half.length));
    expect(await first.until('body')).toContain('HTTP/1.1 200 ');
    second.send('x'.repeat(MIB - half.length));
    second.send(sized(MIB) + 'x'.repeat(MIB));
    expect(await second.until('\r\n\r\nbody')).toContain('HTTP/1.1 200 ');
  });

  test('F17 what is sent ahead of an answer counts too, and ends its connection where there is no room', async () => {
    const gate = Promise.withResolvers<void>();
    const { url } = open(
      async (request) => {
        await request.readBody(100);
        await gate.promise;
        return text('');
      },
      undefined,
      { bodies_bytes: 2 * MIB },
    );
    const callers = await Promise.all(Array.from({ length: 8 }, () => openCaller(url)));
    let over = 0;
    for (const caller of callers) {
      void caller.ended.then(() => over++);
      caller.send(get('/').repeat(8_000));
    }
    await turns(100);
    // An eighth of 2 MiB is room for three that hold more than 64 KB each, at which no more is read.
    expect(over).toBeGreaterThanOrEqual(5);
    expect(over).toBeLessThan(8);
    gate.resolve();
    for (const caller of callers) caller[Symbol.dispose]();
  });
});

describe('F17 a gateway', () => {
  test('F17 refuses with 503 and Retry-After what does not fit, an eighth of it without a key, and nobody else', async () => {
    await using backend = startBackend((seen) => result(seen, '1'));
    await using gateway = await startGateway({
      gateway: { bodies_bytes: 8 * MIB },
      backends: [{ name: 'a', url: backend.url }],
    });
    const [greedy, other] = [gateway.key(), gateway.key()];
    using callers = new DisposableStack();
    /** Opens uploads that stop before their end until one is refused; gives its answer and the number before it. */
    async function fill(key: string, bytes: number): Promise<readonly [string, number]> {
      let refused: RawCaller | undefined;
      for (let count = 0; ; count++) {
        const caller = callers.use(await openCaller(gateway.url));
        void caller.until('HTTP/1.1').then(() => (refused ??= caller));
        caller.send(postText(CALL.padEnd(bytes), key).slice(0, -1));
        await turns(10);
        if (refused !== undefined) return [await refused.until('}'), count];
      }
    }
    const [strangers, few] = await fill('sluice_nobody', 60_000);
    expect(strangers).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n[^]*"code":-503[^]*"id":null/);
    expect(few).toBe(17);
    const [refused, count] = await fill(greedy, 1_000_000);
    expect(refused).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: 1\r\n/);
    expect(refused).toContain('"message":"Too many request bodies under way"');
    expect(count).toBe(5);
    expect((await gateway.post(CALL.padEnd(300_000), other)).status).toBe(200);
    expect((await gateway.post(CALL, greedy)).status).toBe(200);
    callers.dispose();
    await turns();
    expect((await gateway.post(CALL.padEnd(1_000_000), greedy)).status).toBe(200);
  });
});
