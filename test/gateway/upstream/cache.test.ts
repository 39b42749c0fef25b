import { describe, expect, test } from 'bun:test';
import { Cache, withCache } from '../../../gateway/upstream/cache.ts';
import type { CallReply } from '../../../gateway/upstream/failover.ts';
import type { CallContext } from '../../../gateway/upstream/forward.ts';
import type { StreamBody, StreamEnd } from '../../../gateway/http/stream-body.ts';
import { callOf, contextOf, routeTo, streamOf, textOf, wholeOf } from './of.ts';

const bytesOf = (text: string) => new TextEncoder().encode(text);
const resultText = (json: string, id: string) => `{"jsonrpc":"2.0","result":${json},"id":${id}}\n`;
const COMPLETE = { kind: 'complete', bytes: 0 } as const;
const CUT = { kind: 'cut', reason: 'closed', bytes: 0 } as const;

/** A body in pieces of a length, whose memory is overwritten as soon as a piece was taken, as a connection's is. */
function bodyOf(text: string, pieceBytes: number, end: StreamEnd = COMPLETE): StreamBody {
  const bytes = bytesOf(text);
  return {
    cancel: () => undefined,
    async pipe(write) {
      const memory = Buffer.alloc(pieceBytes);
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        const part = bytes.subarray(at, at + pieceBytes);
        memory.set(part);
        const wait = write(memory.subarray(0, part.length));
        memory.fill('#');
        await wait;
      }
      return end;
    },
  };
}

type Given = Partial<CallContext> & { id?: string };

/** Calls through a cache to a backend that gives `reply`; slots up to 100 are finalized. */
function startCache(bytesMax = 1_048_576) {
  const cache = new Cache(bytesMax);
  const world = {
    cache,
    finality: { slot: 100, resets: 0 },
    /** Calls that reached the backend. */
    sent: 0,
    overs: 0,
    reply: (id: string): CallReply | Promise<CallReply> => wholeOf(resultText('{"blockhash":"h"}', id)),
    send,
    ask: async (method: string, params?: string, given?: Given) => textOf(await send(method, params, given)),
  };
  const forward = withCache(
    async ({ id }, _route, { onSettled }) => {
      world.sent++;
      onSettled?.();
      return world.reply(new TextDecoder().decode(id));
    },
    cache,
    { finality: () => world.finality },
  );

  function send(method: string, params: string | undefined, { id = '1', ...rows }: Given = {}) {
    const context = contextOf({ onSettled: () => void world.overs++, ...rows });
    return forward(callOf(method, params ?? null, id), routeTo([], method), context);
  }
  return world;
}

/** How many of two equal calls reach the backend. */
async function sentOfTwo(world: ReturnType<typeof startCache>, method: string, params?: string) {
  await world.ask(method, params);
  await world.ask(method, params);
  return world.sent;
}

describe('a result that never changes', () => {
  test.each(['18446744073709551615', 'null', String.raw`"\u0061\"\\"`])(
    'is answered from memory byte for byte, with the id %s of its own caller',
    async (id) => {
      const world = startCache();
      await world.ask('getBlock', '[5]', { id: '"first"' });
      expect(await world.ask('getBlock', '[5]', { id })).toBe(resultText('{"blockhash":"h"}', id));
      expect([world.sent, world.overs]).toEqual([1, 2]);
      expect(world.cache.counts).toMatchObject({ hits: 1, misses: 1 });
    },
  );

  test.each([
    ['getBlock', '[100]'],
    ['getBlock', '[ 100 , {"commitment":"confirmed"}]'],
    ['getBlockTime', '[100]'],
    ['getGenesisHash', undefined],
    ['getEpochSchedule', '[]'],
  ])('is one of %s %p', async (method, params) => {
    expect(await sentOfTwo(startCache(), method, params)).toBe(1);
  });

  test.each([
    ['getBlock', '[101]'],
    ['getBlock', '[1e1]'],
    ['getBlock', '{"slot":5}'],
    ['getBlock', '[5,{"commitment":"processed"}]'],
    ['getBlock', String.raw`[5,{"commitment":"proce\u0073sed"}]`],
    ['getBlock', `[5,{"encoding":"${'x'.repeat(1_024)}"}]`],
    ['getBlocks', '[5,6]'],
    ['getBalance', '["a"]'],
  ])('is none of %s %p', async (method, params) => {
    expect(await sentOfTwo(startCache(), method, params)).toBe(2);
  });

  test('is not one of the same slot with other options', async () => {
    const world = startCache();
    for (const params of ['[5]', '[5,{}]', '[5,{"rewards":false}]', '[ 5]'])
      await world.ask('getBlock', params);
    await world.ask('getBlockTime', '[5]');
    expect([world.sent, world.cache.counts.hits]).toEqual([5, 0]);
  });

  test('is kept only when its slot was finalized before the call was sent', async () => {
    const world = startCache();
    world.finality = { slot: 0, resets: 0 };
    expect(await sentOfTwo(world, 'getGenesisHash')).toBe(2);
    world.reply = (id) => {
      world.finality = { slot: 101, resets: 0 };
      return wholeOf(resultText('{}', id));
    };
    world.finality = { slot: 100, resets: 0 };
    expect(await sentOfTwo(world, 'getBlock', '[101]')).toBe(4);
    expect(await sentOfTwo(world, 'getBlock', '[101]')).toBe(4);
  });

  test.each([
    ['{"blockTime":1,"meta":{"logs":["\\"slot\\":1,"],"slot":1},"slot":100,"transaction":{}}', 1],
    ['{"slot":100}', 1],
    ['{"slot":100,"meta":{"slot":101}}', 2],
    ['{"blockTime":1,"meta":{"slot":1},"slot":101,"transaction":{}}', 2],
    ['{"meta":{"logs":["\\"slot\\":1,"]}}', 2],
    ['{"slot":"100"}', 2],
    ['{"slot":1e9}', 2],
  ])('is a transaction when all slots that it names are finalized: %s', async (json, sent) => {
    const world = startCache();
    world.reply = (id) => wholeOf(resultText(json, id));
    expect(await sentOfTwo(world, 'getTransaction', '["s"]')).toBe(sent);
  });

  test.each<[string, (id: string) => CallReply]>([
    ['a null', (id) => wholeOf(resultText('null', id))],
    ['a null after a space', (id) => wholeOf(resultText(' null', id))],
    ['a skipped slot', (id) => wholeOf(`{"jsonrpc":"2.0","error":{"code":-32007,"message":"m"},"id":${id}}`)],
    ['another id', () => wholeOf(resultText('1', '"another"'))],
    ['a caller who left', () => ({ kind: 'caller-left' })],
    ['a cut stream', (id) => streamOf(bodyOf(resultText('1', id), 9, CUT))],
  ])('is not %s', async (_, reply) => {
    const world = startCache();
    world.reply = reply;
    expect(await sentOfTwo(world, 'getBlock', '[5]')).toBe(2);
    expect(world.cache.counts.bytes).toBe(0);
  });

  test('is forgotten when another chain shows itself, and none that was under way is kept', async () => {
    const world = startCache();
    await world.ask('getBlock', '[5]');
    world.finality = { slot: 100, resets: 1 };
    await world.ask('getBlock', '[5]');
    expect(world.sent).toBe(2);
    world.reply = (id) => {
      world.finality = { slot: 100, resets: 2 };
      return wholeOf(resultText('{}', id));
    };
    await world.ask('getBlock', '[6]');
    await world.ask('getBlock', '[6]');
    expect(world.sent).toBe(4);
  });
});

describe('a stream', () => {
  const long = `"${'0123456789'.repeat(20_000)}"`;
  const streaming = (pieceBytes: number) => (id: string) =>
    streamOf(bodyOf(resultText(long, id), pieceBytes));

  test.each([1_000, 199_999])('in pieces of %d bytes is kept as it was', async (pieceBytes) => {
    const world = startCache(8_388_608);
    world.reply = streaming(pieceBytes);
    expect(await world.ask('getBlock', '[5]')).toBe(resultText(long, '1'));
    expect(await world.ask('getBlock', '[5]', { id: '"me"' })).toBe(resultText(long, '"me"'));
    expect([world.sent, world.overs]).toEqual([1, 2]);
    expect(world.cache.counts.bytes).toBeLessThan(long.length + 1_000);
  });

  test('that is read by many at once is copied once, and a slow reader delays nobody', async () => {
    const world = startCache(8_388_608);
    world.reply = streaming(65_536);
    const slow = await world.send('getBlock', '[5]');
    if (slow.kind !== 'stream') throw new Error('no stream');
    const open = Promise.withResolvers<void>();
    const reading = slow.body.pipe(() => open.promise);
    await Promise.all([world.ask('getBlock', '[5]'), world.ask('getBlock', '[5]')]);
    // One piece, and room to join it.
    expect(world.cache.counts.bytes).toBe(2 * (65_536 + 256));
    open.resolve();
    await reading;
    expect(world.sent).toBe(3);
    expect(await world.ask('getBlock', '[5]', { id: '2' })).toBe(resultText(long, '2'));
    expect(world.sent).toBe(3);
  });

  test('that is longer than a sixteenth of the memory passes whole and is not kept', async () => {
    const world = startCache(16 * 199_000);
    world.reply = streaming(65_536);
    expect(await world.ask('getBlock', '[5]')).toBe(resultText(long, '1'));
    expect(world.cache.counts.bytes).toBe(0);
  });

  test('from memory ends for a caller who leaves, and its memory counts until then', async () => {
    const world = startCache(8_388_608);
    world.reply = streaming(65_536);
    await world.ask('getBlock', '[5]');
    const caller = new AbortController();
    const begun = await world.send('getBlock', '[5]', { signal: caller.signal });
    if (begun.kind !== 'stream') throw new Error('no stream');
    const never = new Promise<void>(() => undefined);
    const ended = begun.body.pipe(() => never);
    world.finality = { slot: 100, resets: 1 };
    world.reply = (id) => wholeOf(resultText('null', id));
    await world.ask('getBlock', '[6]');
    expect(world.cache.counts.bytes).toBeGreaterThan(long.length);
    expect(world.overs).toBe(2);
    caller.abort();
    expect(await ended).toMatchObject({ kind: 'cut', reason: 'cancelled' });
    expect([world.cache.counts.bytes, world.overs]).toEqual([0, 3]);
    const unread = await world.send('getBlock', '[7]');
    expect(unread.kind).toBe('whole');
  });
});

describe('the bound', () => {
  test('drops nothing for a stream that is wanted once, and keeps one that is wanted again', async () => {
    const world = startCache(4_194_304);
    const text = `"${'z'.repeat(200_000)}"`;
    world.reply = (id) => streamOf(bodyOf(resultText(text, id), 65_536));
    for (let slot = 0; slot < 60; slot++) await world.ask('getBlock', `[${slot}]`);
    await world.ask('getBlock', '[0]');
    expect(world.sent).toBe(60);
    for (let i = 0; i < 3; i++) await world.ask('getBlock', '[59]');
    expect(world.sent).toBe(61);
  });

  test('drops what was used longest ago', async () => {
    const world = startCache(20_000);
    world.reply = (id) => wholeOf(resultText(`"${'x'.repeat(700)}"`, id));
    const ask = (slot: number) => world.ask('getBlock', `[${slot}]`);
    for (let slot = 0; slot < 19; slot++) await ask(slot);
    await ask(0);
    expect(world.sent).toBe(19);
    for (let slot = 19; slot < 30; slot++) await ask(slot);
    await ask(0);
    await ask(29);
    expect(world.sent).toBe(30);
    await ask(1);
    expect(world.sent).toBe(31);
  });

  test('holds for entries, copies and what slow readers still read, and all of it is given back', async () => {
    const bytesMax = 16_777_216;
    const world = startCache(bytesMax);
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    world.reply = (id) => {
      const text = resultText(`"${'y'.repeat(random(1_200_000))}"`, id);
      return streamOf(bodyOf(text, 65_536));
    };
    const open: (() => void)[] = [];
    const reads: Promise<unknown>[] = [];
    let most = 0;
    for (let i = 0; i < 600; i++) {
      const reply = await world.send('getBlock', `[${random(40)}]`);
      if (reply.kind === 'stream') {
        const until = Promise.withResolvers<void>();
        if (random(3) === 0) open.push(until.resolve);
        else until.resolve();
        const read = reply.body.pipe(() => until.promise);
        if (random(10) === 0) reply.body.cancel();
        reads.push(read);
      }
      await new Promise(setImmediate);
      if (random(4) === 0) open.splice(random(open.length + 1), 1).forEach((resolve) => resolve());
      most = Math.max(most, world.cache.counts.bytes);
    }
    expect(most).toBeLessThanOrEqual(bytesMax);
    expect(most).toBeGreaterThan(bytesMax / 2);
    for (const resolve of open) resolve();
    await Promise.all(reads);
    world.finality = { slot: 100, resets: 1 };
    world.reply = (id) => wholeOf(resultText('null', id));
    await world.ask('getBlock', '[99]');
    expect(world.cache.counts.bytes).toBe(0);
  });
});
