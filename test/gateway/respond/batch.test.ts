import { describe, expect, test } from 'bun:test';
import { type Beat, type Part, type Start, spliceBatch } from '../../../gateway/respond/batch.ts';
import { createVirtualClock } from '../virtual-clock.ts';
import { streamBodyOf } from '../stream-body.ts';

const bytes = (text: string): Part => ({ kind: 'bytes', bytes: new TextEncoder().encode(text) });

/** A part whose chunks come when the test pushes them. */
function pushed() {
  const state: { cancelled: boolean; controller?: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> } =
    {
      cancelled: false,
    };
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => void (state.controller = controller),
    cancel: () => void (state.cancelled = true),
  });
  return {
    part: { kind: 'stream', body: streamBodyOf(body) } satisfies Part,
    state,
    push: (text: string) => state.controller?.enqueue(new TextEncoder().encode(text)),
    end: () => state.controller?.close(),
    fail: (message: string) => state.controller?.error(new Error(message)),
  };
}

const streamOf = (...texts: readonly string[]): Part => {
  const source = pushed();
  for (const text of texts) source.push(text);
  source.end();
  return source.part;
};

/** Starts that are noted when they are called and begin when the test says so. */
function gated(count: number) {
  const slots = Array.from({ length: count }, () => Promise.withResolvers<Part>());
  const launched: number[] = [];
  const starts = slots.map(({ promise }, i): Start => () => {
    launched.push(i);
    return promise;
  });
  return { starts, launched, begin: (i: number, part: Part) => slots[i]?.resolve(part) };
}

const untilAborted: Beat = (signal) => createVirtualClock().clock.sleep(1, signal);

/** The batch's body, while no time passes. */
const batchOf = (
  starts: readonly Start[],
  abort: AbortController,
  onCut: (place: number) => void = () => undefined,
) => spliceBatch(starts, abort, onCut, untilAborted, untilAborted);

const read = async (body: ReturnType<typeof spliceBatch>) => new Response(await body).text();
const settled = () => new Promise(setImmediate);

describe('a batch', () => {
  test('is an array of its answers, spliced as bytes', async () => {
    const parts = [
      bytes('{"id":1}\n'),
      streamOf('{"id"', ':18446744073709551615', '}\n'),
      bytes('{"id":"é"}'),
    ];
    expect(
      await read(
        batchOf(
          parts.map((part) => async () => part),
          new AbortController(),
        ),
      ),
    ).toBe('[{"id":1}\n,{"id":18446744073709551615}\n,{"id":"é"}]');
  });

  test('of one is an array too', async () => {
    expect(await read(batchOf([async () => bytes('{}')], new AbortController()))).toBe('[{}]');
  });

  test('keeps the order of its calls when later answers come first', async () => {
    const { starts, begin } = gated(3);
    const text = read(batchOf(starts, new AbortController()));
    begin(2, bytes('2'));
    begin(1, streamOf('1'));
    await settled();
    begin(0, bytes('0'));
    expect(await text).toBe('[0,1,2]');
  });

  test('of a thousand answers in any order is in order', async () => {
    const starts = Array.from({ length: 1_000 }, (_, i): Start => async () => {
      for (let wait = 0; wait < (i * 7) % 5; wait++) await Promise.resolve();
      return i % 3 === 0 ? streamOf(String(i)) : bytes(String(i));
    });
    expect(JSON.parse(await read(batchOf(starts, new AbortController())))).toEqual(Array.from(starts.keys()));
  });
});

describe('what is under way at once', () => {
  test('is at most 8 calls, begun in order', async () => {
    const { starts, launched, begin } = gated(20);
    const text = read(batchOf(starts, new AbortController()));
    await settled();
    expect(launched).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    begin(5, bytes('5'));
    await settled();
    expect(launched.length).toBe(9);
    begin(0, bytes('0'));
    begin(1, bytes('1'));
    await settled();
    expect(launched.length).toBe(11);
    for (let i = 0; i < 20; i++) begin(i, bytes(String(i)));
    expect(JSON.parse(await text)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  test('includes a stream until its last byte has gone', async () => {
    const { starts, launched, begin } = gated(9);
    const slow = pushed();
    const text = read(batchOf(starts, new AbortController()));
    await settled();
    begin(0, slow.part);
    slow.push('"a');
    await settled();
    expect(launched.length).toBe(8);
    slow.push('b"');
    slow.end();
    await settled();
    await settled();
    expect(launched.length).toBe(9);
    for (let i = 1; i < 9; i++) begin(i, bytes(String(i)));
    expect(await text).toBe('["ab",1,2,3,4,5,6,7,8]');
  });

  test('includes streams that have begun out of turn, so that no more than 8 backends are held', async () => {
    const { starts, launched, begin } = gated(10);
    const text = read(batchOf(starts, new AbortController()));
    await settled();
    for (let i = 1; i < 8; i++) begin(i, streamOf(String(i)));
    await settled();
    expect(launched.length).toBe(8);
    begin(0, bytes('0'));
    begin(8, bytes('8'));
    begin(9, bytes('9'));
    expect(await text).toBe('[0,1,2,3,4,5,6,7,8,9]');
    expect(launched.length).toBe(10);
  });
});

describe('a batch that is cut', () => {
  test('by a stream that fails after its first byte leaves the caller with a broken body, and ends every call', async () => {
    const abort = new AbortController();
    const breaking = pushed();
    breaking.push('"half');
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      reusePort: false,
      fetch: async () =>
        new Response(await batchOf([async () => bytes('0'), async () => breaking.part], abort)),
      development: false,
    });
    const reader = (await fetch(server.url)).body?.getReader();
    let text = '';
    const reading = (async () => {
      for (;;) {
        const chunk = await reader?.read();
        if (chunk === undefined || chunk.done) return 'ended';
        text += new TextDecoder().decode(chunk.value);
        if (text.includes('0')) breaking.fail('reset');
      }
    })().catch(() => 'failed');
    expect(await reading).toBe('failed');
    expect(text).not.toContain(']');
    expect(abort.signal.aborted).toBe(true);
    await server.stop(true);
  });

  test('by the caller ends every call under way', async () => {
    const abort = new AbortController();
    const slow = pushed();
    const { starts, begin } = gated(2);
    const aborted = Promise.withResolvers<void>();
    abort.signal.addEventListener('abort', () => aborted.resolve());
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      reusePort: false,
      development: false,
      fetch: async () => new Response(await batchOf(starts, abort)),
    });
    begin(0, bytes('0'));
    begin(1, slow.part);
    slow.push('"begun');
    const caller = new AbortController();
    const reader = (await fetch(server.url, { signal: caller.signal })).body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    caller.abort();
    await aborted.promise;
    expect(abort.signal.aborted).toBe(true);
    await server.stop(true);
  });
});

describe('the answers of a batch', () => {
  /** A batch of two, that is gathered until the test says so. */
  function gathering() {
    const { starts, begin } = gated(2);
    const gather = Promise.withResolvers<void>();
    const body = spliceBatch(
      starts,
      new AbortController(),
      () => undefined,
      () => gather.promise,
      untilAborted,
    );
    return { begin, stop: gather.resolve, body };
  }

  test('are one body when they are small and come soon, so that it has a length', async () => {
    const { begin, body } = gathering();
    begin(1, bytes('1'));
    begin(0, bytes('0'));
    expect(Buffer.from((await body) as Uint8Array).toString()).toBe('[0,1]'); // a stream has no text
  });

  test('are told of as sent once, when all are', async () => {
    const { begin, body } = gathering();
    const sent: string[] = [];
    const told = (text: string): Part => ({ ...bytes(text), onSent: () => void sent.push(text) }) as Part;
    begin(0, told('0'));
    await settled();
    expect(sent).toEqual([]);
    begin(1, told('1'));
    await body;
    expect(sent).toEqual(['0', '1']);
  });

  test('are passed on as they come when one of them is late', async () => {
    const { begin, stop, body } = gathering();
    begin(0, bytes('"first"'));
    await settled();
    stop();
    const reader = ((await body) as ReadableStream<Uint8Array>).getReader(); // bytes have no reader
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toStartWith('["first"');
    begin(1, bytes('"late"'));
    let rest = '';
    for (let read = await reader.read(); !read.done; read = await reader.read())
      rest += Buffer.from(read.value).toString();
    expect(rest).toEndWith('"late"]');
  });

  test.each<[string, Part]>([
    ['large one', streamOf('"a"')],
    ['quarter of a megabyte', bytes(JSON.stringify('a'.repeat(262_144)))],
  ])('are a stream from the first %s on', async (_, part) => {
    const { begin, body } = gathering();
    begin(0, part);
    begin(1, bytes('1'));
    expect(await body).toBeInstanceOf(ReadableStream);
    expect(JSON.parse(await read(body))).toHaveLength(2);
  });
});

test('a batch that waits for an answer gives a sign of life, which is white space between its elements', async () => {
  const { starts, begin } = gated(2);
  const beats: PromiseWithResolvers<void>[] = [];
  const beat: Beat = (signal) => {
    const next = Promise.withResolvers<void>();
    beats.push(next);
    signal.addEventListener('abort', () => next.resolve(), { once: true });
    return next.promise;
  };
  const text = read(
    spliceBatch(
      starts,
      new AbortController(),
      () => undefined,
      () => Promise.resolve(),
      beat,
    ),
  );
  await settled();
  for (let i = 0; i < 3; i++) {
    beats.at(-1)?.resolve();
    await settled();
  }
  begin(0, bytes('{"id":0}'));
  begin(1, bytes('{"id":1}'));
  const whole = await text;
  expect(whole).toBe('[   {"id":0},{"id":1}]');
  expect(JSON.parse(whole)).toEqual([{ id: 0 }, { id: 1 }]);
});
