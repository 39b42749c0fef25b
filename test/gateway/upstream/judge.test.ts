import { describe, expect, test } from 'bun:test';
import { brotliCompressSync, constants, deflateSync } from 'node:zlib';
import { judge } from '../../../gateway/upstream/response-reader.ts';
import type { BodyEnd, HttpReply, ReplyBody } from '../../../gateway/upstream/http-connection.ts';
import type { Framing } from '../../../gateway/upstream/http-parser.ts';
import { textOfBody } from '../stream-body.ts';

const OK = '{"jsonrpc":"2.0","result":1,"id":1}\n';

type Fields = Readonly<{
  status?: number;
  isJson?: boolean;
  encoding?: string;
  /** By default the length of the whole body. */
  framing?: Framing;
  /** How it ends, when not completely. */
  cut?: Extract<BodyEnd, { kind: 'cut' }>['reason'];
  /** Whether all of it has come with the head. */
  ended?: boolean;
}>;

/** A reply as a backend might send it, its first piece with its head, and whether its body was thrown away. */
function reply(body: string | Uint8Array | readonly (string | Uint8Array)[], fields: Fields = {}) {
  const all = typeof body === 'string' || body instanceof Uint8Array ? [body] : body;
  const coming = all.map((piece) => Buffer.from(piece));
  const bytes = coming.reduce((sum, piece) => sum + piece.length, 0);
  const { cut } = fields;
  const pieces = coming.splice(0, 1);
  const last: BodyEnd = cut === undefined ? { kind: 'complete', bytes } : { kind: 'cut', reason: cut, bytes };
  let end = fields.ended === true ? last : undefined;
  const state = { cancelled: false };
  const made: HttpReply = {
    kind: 'reply',
    head: {
      status: fields.status ?? 200,
      isJson: fields.isJson ?? true,
      encoding: fields.encoding,
      framing: fields.framing ?? bytes,
      reusable: true,
    },
    body: {
      pieces,
      get end() {
        return end;
      },
      offer: () => undefined,
      cancel: () => void (state.cancelled = true),
      async more() {
        if (coming.length === 0) end = last;
        pieces.push(...coming.splice(0, 1));
      },
      async pipe(write) {
        for (const piece of [...pieces, ...coming]) if (!state.cancelled) await write(piece);
        return state.cancelled ? { kind: 'cut', reason: 'cancelled', bytes } : last;
      },
    },
  };
  return { made, state };
}

const CHUNKED: Framing = 'chunked';
const ALL = 'zstd, br, gzip, deflate';
const judgeOf = (made: HttpReply, accept: string, trustsEnd?: boolean, caller = new AbortController()) =>
  judge(made, Buffer.from('1'), accept, trustsEnd, caller.signal);
const judged = (body: Parameters<typeof reply>[0], fields?: Fields, accept = 'gzip', trustsEnd?: boolean) =>
  judgeOf(reply(body, fields).made, accept, trustsEnd);

describe('an answer', () => {
  test('of a small declared length is held whole, byte for byte', async () => {
    expect(await judged(OK)).toEqual({
      kind: 'whole',
      bytes: new Uint8Array(Buffer.from(OK)),
      encoding: undefined,
    });
  });

  test('that has come with its head is held whole, whatever its framing', async () => {
    expect((await judged(OK, { framing: CHUNKED, ended: true })).kind).toBe('whole');
    expect((await judged(OK, { framing: 'until-close', ended: true })).kind).toBe('whole');
  });

  test('up to 64 KiB is held, one byte more is streamed', async () => {
    const text = (bytes: number) => `{${' '.repeat(bytes - OK.length)}${OK.slice(1)}`;
    expect((await judged(text(65_536))).kind).toBe('whole');
    expect((await judged(text(65_537))).kind).toBe('stream');
  });

  test('that is compressed is passed on as it is, with its encoding', async () => {
    const bytes = Bun.gzipSync(OK);
    expect(await judged(bytes, { encoding: 'gzip' })).toEqual({
      kind: 'whole',
      bytes: new Uint8Array(bytes),
      encoding: 'gzip',
    });
  });

  test.each(['gzip', 'GZIP'])('may come as %s where that was asked for', async (encoding) => {
    const { made } = reply(Bun.gzipSync(OK), { encoding });
    expect(await judgeOf(made, 'br, gzip')).toMatchObject({ kind: 'whole', encoding: 'gzip' });
  });

  test('that says identity is not compressed', async () => {
    const arrived = await judged(OK, { encoding: 'identity' }, 'identity');
    expect(arrived).toMatchObject({ kind: 'whole', encoding: undefined });
  });

  test('may be surrounded by white space', async () => {
    expect((await judged(` \r\n\t${OK} \r\n`)).kind).toBe('whole');
  });
});

describe('a stream', () => {
  const streamed = async (body: readonly string[], fields: Fields = {}, trustsEnd?: boolean) => {
    const arrived = await judged(body, { framing: CHUNKED, ...fields }, 'gzip', trustsEnd);
    return arrived.kind === 'stream' ? textOfBody(arrived.body) : arrived.kind;
  };
  const long: Framing = 100_000;

  test('of undeclared length passes byte for byte', async () => {
    expect(await streamed(['{"result":[', '1,2', '],"id":1}\n'])).toBe('{"result":[1,2],"id":1}\n');
  });

  test('of undeclared length that ends cleanly in the middle of its JSON is cut (Cloudbreak)', async () => {
    expect(await streamed(['{"a":[', '1,2'])).toBe('cut: bad-json');
  });

  test('of undeclared length is cut at the first byte that cannot be JSON', async () => {
    expect(await streamed(['{"a":[1,', 'upstream request timeout', ']}'])).toBe('cut: bad-json');
    expect(await streamed(['{"a":', '1}', '{"b":2}'])).toBe('cut: bad-json');
  });

  test('whose connection breaks says why', async () => {
    expect(await streamed(['{"a":['], { cut: 'closed' })).toBe('cut: closed');
    expect(await streamed(['{"a":['], { framing: long, cut: 'stalled' })).toBe('cut: stalled');
  });

  describe.each([CHUNKED, long])('that begins with its result, framed as %p', (framing) => {
    const passed = (body: readonly string[]) => streamed(body, { framing });
    const start = '{"jsonrpc":"2.0","result":{"a":[';
    const rest = '"x,\\"id\\":1}","{\\"jsonrpc\\":",{"id":1},{"id":1}]},"id":1}';

    test('passes byte for byte, wherever its pieces are cut', async () => {
      const text = `${start}${rest} \r\n`;
      for (let cut = start.length; cut < start.length + rest.length; cut++)
        expect(await passed([text.slice(0, cut), text.slice(cut, cut + 3), text.slice(cut + 3)])).toBe(text);
      expect(await passed([start, ...rest])).toBe(start + rest);
      expect(await passed([start, `"${'x'.repeat(500)}`, `"]},"id":1}${' '.repeat(90)}`])).toEndWith(' ');
    });

    test('may hold objects that begin as an answer does, wherever its pieces are cut', async () => {
      const objects = '{"jsonrpc":1},{"jsonrpc":[{"jsonrpc":{"jsonrpc":null}}]}]},"id":1}';
      for (let cut = 0; cut < objects.length; cut++)
        expect(await passed([start, objects.slice(0, cut), objects.slice(cut)])).toBe(start + objects);
      expect(await passed([start, ...objects])).toBe(start + objects);
    });

    test('and ends cleanly before its id is cut, wherever it ends', async () => {
      for (let end = 0; end < rest.length; end++)
        expect(await passed([start, rest.slice(0, end)])).toBe('cut: bad-json');
    });

    test('is cut when another object begins behind it, wherever its pieces are cut', async () => {
      const text = `${rest}\n${OK}`;
      for (let cut = 0; cut < text.length; cut++)
        expect(await passed([start, text.slice(0, cut), text.slice(cut)])).toBe('cut: bad-json');
      expect(await passed([start, ...text])).toBe('cut: bad-json');
    });

    test('and ends in the id of another call is cut', async () => {
      for (const id of ['2', '11', '"1"', 'null'])
        expect(await passed([start, `]},"id":${id}}`])).toBe('cut: bad-json');
    });

    test('and whose id a node may write otherwise is followed by its structure', async () => {
      const { made } = reply([start, ']},"id":"a"}'], { framing: CHUNKED });
      const arrived = await judge(made, Buffer.from('"\\u0061"'), 'gzip', undefined, AbortSignal.any([]));
      expect(arrived.kind === 'stream' && (await textOfBody(arrived.body))).toBe(`${start}]},"id":"a"}`);
    });
  });

  test('of declared length ends in the id of its call or begins in it; its structure is trusted, unless the config says otherwise', async () => {
    for (const text of ['{"id":1,"result":["', '{"result":[,"id":1}']) {
      expect(await streamed([text], { framing: long })).toBe(text);
      expect(await streamed([text], { framing: long }, false)).toBe('cut: bad-json');
      expect(await streamed([text], {}, true)).toBe(text);
    }
    expect(await streamed(['{"a":[1]}'], { framing: long })).toBe('cut: bad-json');
  });

  const inner = '[{"id":2},{"a":{"id":"\\"id\\":2","b":["id"]}}]';
  test.each([CHUNKED, long])('B11 has one id, wherever its pieces are cut, framed as %p', async (framing) => {
    const cutAnywhere = async (text: string) => {
      const ends = new Set<string>();
      for (let cut = 1; cut < text.length; cut++)
        ends.add(
          await streamed([text.slice(0, cut), text.slice(cut, cut + 5), text.slice(cut + 5)], { framing }),
        );
      return [...ends];
    };
    const long = `"${'x'.repeat(600)}"`;
    for (const own of [
      `{"jsonrpc":"2.0","result":${inner},"id":1}`,
      `{"jsonrpc":"2.0","result":[${long},${inner}],"id":1}\n`,
      `{"id":1,"result":[${inner},${long},${inner}]}`,
      `{"result":[${inner},${long}],"id":1,"jsonrpc":"2.0"}`,
    ])
      expect([own, 'whole']).toEqual(expect.arrayContaining(await cutAnywhere(own)));
    for (const two of [
      `{"jsonrpc":"2.0","result":${inner},"id":2,"id":1}`,
      `{"jsonrpc":"2.0","result":[${inner},${long}],"id":2,"x":${long},"id":1}`,
      `{"id":1,"result":[${inner},${long}],"id":2,"x":1}`,
      `{"id":1,"result":[${inner},${long}]}{"id":2,"result":[${inner},${long}]}`,
      `{"result":[${inner},${long}],"id":2}\n{"result":[${inner},${long}],"id":1}`,
    ])
      expect(['cut: bad-json', 'garbage']).toEqual(expect.arrayContaining(await cutAnywhere(two)));
  });

  test('that is compressed and cannot be decoded is cut', async () => {
    expect(await streamed(['\x1f\x8b'], { encoding: 'gzip' })).toBe('cut: bad-json');
    expect(await streamed(['\x1f\x8b', 'and no more of it', ' '], { encoding: 'gzip' })).toBe(
      'cut: bad-json',
    );
  });

  test('that does not begin as an object is no answer', async () => {
    for (const framing of [CHUNKED, 'until-close', long] as const) {
      const { made, state } = reply(['\n<html>', '</html>'], { framing });
      expect((await judgeOf(made, 'gzip', true)).kind).toBe('garbage');
      expect(state.cancelled).toBe(true);
    }
  });

  test('says the slot that it was read at when its first bytes do', async () => {
    const arrived = await judged(
      ['{"jsonrpc":"2.0","result":{"context":{"slot":7},"value":[', ']},"id":1}'],
      {
        framing: CHUNKED,
      },
    );
    expect(arrived).toMatchObject({ kind: 'stream', slot: 7 });
  });
});

/** By default it takes half a second for 200 KB. */
const FAST = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const PACKED = {
  gzip: Bun.gzipSync,
  br: (text: string | Buffer) => brotliCompressSync(text, FAST),
  deflate: deflateSync,
  zstd: Bun.zstdCompressSync,
};

describe.each(['gzip', 'br', 'deflate', 'zstd'] as const)('an answer in %s', (encoding) => {
  const digits = Array.from({ length: 20_000 }, (_, i) => Bun.hash(String(i)).toString(36)).join(' ');
  const came = async (text: string, behind = '') => {
    const packed = Buffer.concat([PACKED[encoding](Buffer.from(text)), Buffer.from(behind)]);
    const pieces = Array.from({ length: Math.ceil(packed.length / 10_000) }, (_, i) =>
      packed.subarray(10_000 * i, 10_000 * (i + 1)),
    );
    const { made } = reply(pieces, { encoding });
    const arrived = await judgeOf(made, ALL);
    const body = arrived.kind === 'stream' ? await textOfBody(arrived.body) : arrived.kind;
    return body.startsWith('cut') ? body : arrived.kind;
  };

  test.each([
    ['held', digits.slice(0, 6_000), 'whole', 'garbage'],
    ['streamed', digits, 'stream', 'cut: bad-json'],
  ])('and %s is looked into for the ids that it begins and ends with', async (_, result, good, bad) => {
    for (const own of [
      `{"jsonrpc":"2.0","result":"${result}","id":1}\n`,
      `{"id":1,"result":"${result}"}`,
      `{"result":"${result}","id":1,"jsonrpc":"2.0"}`,
    ]) {
      expect(await came(own)).toBe(good);
      expect(await came(own.replace('"id":1', '"id":2'))).toBe(bad);
    }
  });

  test.each([
    ['short', '7', 'garbage'],
    ['held', digits.slice(0, 6_000), 'garbage'],
    ['streamed', digits, 'cut: bad-json'],
  ])("and %s is none when two answers stand in it, whichever is the call's", async (_, result, bad) => {
    const forms = [
      [`{"jsonrpc":"2.0","result":"${result}","id":1}`, '{"jsonrpc":"2.0","result":666,"id":2}'],
      [`{"id":1,"result":"${result}"}`, '{"id":2,"result":666}'],
      [`{"result":"${result}","id":1,"jsonrpc":"2.0"}`, '{"result":666,"id":2,"jsonrpc":"2.0"}'],
    ] as const;
    for (const [own, foreign] of forms)
      for (const between of ['', '\n'])
        for (const text of [own + between + foreign, foreign + between + own, own + between + own])
          expect(await came(text)).toBe(bad);
    expect(await came(`[${forms[0].join(',')}]`)).toBe(bad);
  });

  test('B11 is none when its coding ends cleanly and the answer in it does not', async () => {
    const own = (result: string) => [`{"jsonrpc":"2.0","result":["${result}`, `{"id":1,"result":["${result}`];
    for (const cut of own('7')) {
      const { made } = reply(Buffer.from(PACKED[encoding](cut)), { encoding, framing: CHUNKED });
      const arrived = await judgeOf(made, ALL);
      expect(arrived.kind === 'stream' && (await textOfBody(arrived.body))).toBe('cut: bad-json');
    }
    for (const cut of own(digits.slice(0, 6_000))) expect(await came(cut)).toBe('garbage');
    for (const cut of own(digits)) expect(await came(cut)).toBe('cut: bad-json');
  });

  test.each([
    ['held', digits.slice(0, 6_000), 'whole', 'garbage'],
    ['streamed', digits, 'stream', 'cut: bad-json'],
  ])('and %s with bytes behind its end is judged by what can be decoded', async (_, result, good, bad) => {
    const own = `{"jsonrpc":"2.0","result":"${result}","id":1}`;
    for (const behind of ['\n', '\0', 'x'.repeat(100), 'x'.repeat(60_000)]) {
      // A gzip member may stand behind another one: more than a byte that is none cannot be decoded.
      expect(await came(own, behind)).toBe(encoding === 'gzip' && behind.length > 1 ? bad : good);
      expect(await came(own.replace('"id":1', '"id":2'), behind)).toBe(bad);
    }
  });

  test.each([
    ['short', '7', 'garbage'],
    ['held', digits.slice(0, 6_000), 'garbage'],
    ['streamed', digits, 'cut: bad-json'],
  ])('B11 and %s is none when its coding ends too early', async (_, result, bad) => {
    const packed = PACKED[encoding](`{"jsonrpc":"2.0","result":"${result}","id":1}`);
    for (const missing of [1, 4, 8, 9, 12]) {
      const cut = Buffer.from(packed.subarray(0, packed.length - missing));
      const { made } = reply(cut.length > 70_000 ? [cut.subarray(0, 50_000), cut.subarray(50_000)] : [cut], {
        encoding,
      });
      const arrived = await judgeOf(made, ALL);
      expect(arrived.kind === 'stream' ? await textOfBody(arrived.body) : arrived.kind).toBe(bad);
    }
  });

  test.each([
    ['held', digits.slice(0, 6_000), 'garbage'],
    ['streamed', digits, 'cut: bad-json'],
  ])('B11 and %s is none when the id is neither its first nor its last member', async (_, result, bad) => {
    for (const text of [
      `{"jsonrpc":"2.0","result":"${result}","id":777,"x":1}`,
      `{"result":"${result}","id":777,"jsonrpc":"2.0","x":1}`,
      `{"jsonrpc":"2.0","result":"${result}","\\u0069d":777}`,
      `{"jsonrpc":"2.0","result":"${result}"}`,
      `{"jsonrpc":"2.0","result":"${result}","id":1}\n{"id":777,"jsonrpc":"2.0","result":"x"}`,
    ])
      expect(await came(text)).toBe(bad);
  });

  test.each(['held', 'streamed'])('and %s to an id of any length and form passes', async (kind) => {
    const result = kind === 'held' ? digits.slice(0, 6_000) : digits;
    for (const [id, written] of [
      [`"${'a'.repeat(600)}"`, `"${'a'.repeat(600)}"`],
      [`"${'\u00e9'.repeat(300)}"`, `"${'\\u00e9'.repeat(300)}"`],
    ] as const)
      for (const text of [
        `{"jsonrpc":"2.0","result":"${result}","id":${written}}`,
        `{"id":${written},"result":"${result}"}`,
      ]) {
        const { made } = reply([Buffer.from(PACKED[encoding](text))], { encoding });
        const arrived = await judge(made, Buffer.from(id), ALL, undefined, AbortSignal.any([]));
        const body = arrived.kind === 'stream' ? await textOfBody(arrived.body) : arrived.kind;
        expect([arrived.kind, body.startsWith('cut')]).toEqual([kind === 'held' ? 'whole' : 'stream', false]);
      }
  });
});

test('an id of several bytes a character passes where a piece of its coding ends within one', async () => {
  const text = Buffer.from('{"id":"\u00e9","result":1}');
  const at = text.indexOf('\u00e9') + 1;
  const packed = [text.subarray(0, at), text.subarray(at)].map((piece) => Bun.gzipSync(piece));
  const { made } = reply(packed, { encoding: 'gzip', framing: CHUNKED });
  const arrived = await judge(made, Buffer.from('"\u00e9"'), ALL, undefined, AbortSignal.any([]));
  expect(arrived.kind === 'stream' && (await textOfBody(arrived.body)).startsWith('cut')).toBe(false);
});

describe('an answer of undeclared length', () => {
  const kindOf = async (pieces: readonly string[], fields: Fields = {}) =>
    (await judged(pieces, { framing: CHUNKED, ...fields })).kind;

  test.each([
    ['that is complete before its framing ends', [OK, ' ']],
    ['that is an error, in pieces', ['{"jsonrpc":"2.0","error":{"code":-32005', ',"message":""},"id":1}']],
    ['that is a null, in pieces', ['{"id":1,"result":nu', 'll,"jsonrpc":"2.0"}']],
    ['whose null is followed by an error', ['{"result":null,', '"error":{"code":1,"message":""}}']],
  ])('%s is held whole', async (_name, pieces) => {
    expect(await kindOf(pieces)).toBe('whole');
    expect(await kindOf(pieces, { framing: 'until-close' })).toBe('whole');
  });

  test.each([
    ['that is a result, from its first byte', ['{"jsonrpc":"2.0","result":{', '},"id":1}']],
    ['that does not tell yet', ['{"jso', 'nrpc":"2.0","result":1,"id":1}']],
    ['whose error is longer than what is held', [`{"error":{"message":"${'x'.repeat(65_536)}`, '"},"id":1}']],
    ['that goes on longer than what is held after it was complete', ['{"id":1,"a":1}', ' '.repeat(65_536)]],
  ])('%s is streamed', async (_name, pieces) => {
    const arrived = await judged(pieces, { framing: CHUNKED });
    expect(arrived.kind === 'stream' ? await textOfBody(arrived.body) : arrived.kind).toBe(pieces.join(''));
  });

  test.each([
    ['breaks off', ['{"error":{"code":1'], { cut: 'closed' }, 'no-answer'],
    ['ends in its middle', ['{"error":{"code":1'], {}, 'garbage'],
    ['can be no JSON', ['{"error":{"code":<html>'], {}, 'garbage'],
    ['is complete, and then breaks off', [OK], { cut: 'closed' }, 'no-answer'],
    ['is complete, and then goes on', [OK, OK], {}, 'garbage'],
  ] as const)('that %s while it is held is none', async (_name, pieces, fields, kind) => {
    expect(await kindOf(pieces, fields)).toBe(kind);
  });

  test.each(['gzip', 'br', 'deflate', 'zstd'] as const)(
    'that is all of a short %s body is held whole, a longer one passes',
    async (encoding) => {
      const fields = { encoding, framing: CHUNKED };
      const short = Buffer.from(PACKED[encoding](OK.trim()));
      expect((await judged(short, fields, ALL)).kind).toBe('whole');
      expect((await judged(short.subarray(0, -1), fields, ALL)).kind).toBe('stream');
      expect((await judged(Buffer.from(PACKED[encoding](`{${' '.repeat(5_000)}}`)), fields, ALL)).kind).toBe(
        'stream',
      );
    },
  );
});

test('a reader is not waited for while a compressed answer is decoded', async () => {
  const random = crypto.getRandomValues(new Uint8Array(200_000)).toHex();
  const { made } = reply(Bun.gzipSync(`{"jsonrpc":"2.0","result":"${random}","id":1}`), { encoding: 'gzip' });
  const notes: string[] = [];
  const body: ReplyBody = {
    ...made.body,
    noteRead: () => void notes.push('read'),
    noteUnread: () => void notes.push('unread'),
  };
  const arrived = await judgeOf({ ...made, body }, 'gzip');
  if (arrived.kind !== 'stream') throw new Error(arrived.kind);
  const end = await arrived.body.pipe(() => void notes.push('written'));
  expect([end.kind, ...notes]).toEqual(['complete', 'read', 'unread', 'written']);
});

test('an answer that is held is let go of when its caller leaves, or has left', async () => {
  const caller = new AbortController();
  for (const leave of [() => caller.abort(), () => undefined]) {
    const cut = Promise.withResolvers<void>();
    let end: BodyEnd | undefined;
    const body: ReplyBody = {
      pieces: [Buffer.from('{"error":')],
      get end() {
        return end;
      },
      more: () => cut.promise,
      offer: () => undefined,
      cancel() {
        end = { kind: 'cut', reason: 'cancelled', bytes: 9 };
        cut.resolve();
      },
      pipe: () => Promise.reject(new Error('nobody reads it')),
    };
    const outcome = judgeOf({ ...reply('', { framing: CHUNKED }).made, body }, 'gzip', undefined, caller);
    leave();
    expect(await outcome).toEqual({ kind: 'no-answer', reason: 'a body cut short: cancelled' });
  }
});

describe('no answer', () => {
  test.each([201, 204, 301, 307, 400, 401, 403, 404, 413, 429, 500, 502, 503, 504])(
    'a status of %p, and its body is thrown away',
    async (status) => {
      const { made, state } = reply(OK, { status, framing: CHUNKED });
      expect(await judgeOf(made, 'gzip')).toEqual({ kind: 'status', status });
      expect(state.cancelled).toBe(true);
    },
  );

  test('a 200 of another type, and its body is thrown away', async () => {
    const { made, state } = reply('<html>', { isJson: false });
    expect((await judgeOf(made, 'gzip')).kind).toBe('garbage');
    expect(state.cancelled).toBe(true);
  });

  test.each(['', ' ', '\n', '{', '}', 'null', '"{}"', '<html></html>', '{"a":1', '{"a":1}x', 'x{}'])(
    'a 200 of JSON by its type whose body is %p',
    async (body) => {
      expect((await judged(body)).kind).toBe('garbage');
    },
  );

  test('a compressed 200 that was not asked for, streamed or not', async () => {
    for (const framing of [100_000, CHUNKED, undefined] as const) {
      const fields = { encoding: 'gzip', ...(framing === undefined ? {} : { framing }) };
      const { made, state } = reply(Bun.gzipSync(OK), fields);
      expect((await judgeOf(made, 'identity')).kind).toBe('garbage');
      expect(state.cancelled).toBe(true);
    }
  });

  test.each(['br', 'br, deflate', 'identity'])('gzip where %s was asked for', async (asked) => {
    const { made } = reply(Bun.gzipSync(OK), { encoding: 'gzip' });
    expect((await judgeOf(made, asked)).kind).toBe('garbage');
  });

  test('a small body that breaks off', async () => {
    expect(await judged(OK, { cut: 'closed' })).toEqual({
      kind: 'no-answer',
      reason: 'a body cut short: closed',
    });
  });
});
