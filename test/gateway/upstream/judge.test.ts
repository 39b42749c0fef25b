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
  const bytes = new Uint8Array(Buffer.from(` \r\n\t${OK} \r\n`));
  const gzipped = new Uint8Array(Bun.gzipSync(OK));

  test.each<[string, Uint8Array<ArrayBuffer>, Fields, string | undefined]>([
    ['of a small declared length', bytes, {}, undefined],
    ['that has come with its head in chunks', bytes, { framing: CHUNKED, ended: true }, undefined],
    ['that has come with its end', bytes, { framing: 'until-close', ended: true }, undefined],
    ['that says identity', bytes, { encoding: 'identity' }, undefined],
    ['that is compressed as it was requested', gzipped, { encoding: 'GZIP' }, 'gzip'],
  ])('%s is held whole, byte for byte', async (_, body, fields, encoding) => {
    expect(await judged(body, fields, 'br, gzip')).toEqual({ kind: 'whole', bytes: body, encoding });
  });

  test('up to 64 KiB is held, one byte more is streamed', async () => {
    const text = (length: number) => `{${' '.repeat(length - OK.length)}${OK.slice(1)}`;
    expect((await judged(text(65_536))).kind).toBe('whole');
    expect((await judged(text(65_537))).kind).toBe('stream');
  });
});

describe('a stream', () => {
  const streamed = async (body: readonly string[], fields: Fields = {}, trustsEnd?: boolean) => {
    const arrived = await judged(body, { framing: CHUNKED, ...fields }, 'gzip', trustsEnd);
    return arrived.kind === 'stream' ? textOfBody(arrived.body) : arrived.kind;
  };
  const long: Framing = 100_000;

  const start = '{"jsonrpc":"2.0","result":{"a":[';
  const inner = '[{"id":2},{"a":{"id":"\\"id\\":2","b":["id"]}}]';
  const filler = `"${'x'.repeat(600)}"`;
  const OWN = [
    `${start}"x,\\"id\\":1}","{\\"jsonrpc\\":",{"id":1},{"id":1}]},"id":1} \r\n`,
    `${start}{"jsonrpc":1},{"jsonrpc":[{"jsonrpc":{"jsonrpc":null}}]}]},"id":1}`,
    `${start}${filler}]},"id":1}${' '.repeat(90)}`,
    `{"jsonrpc":"2.0","result":${inner},"id":1}`,
    `{"jsonrpc":"2.0","result":[${filler},${inner}],"id":1}\n`,
    `{"id":1,"result":[${inner},${filler},${inner}]}`,
    `{"result":[${inner},${filler}],"id":1,"jsonrpc":"2.0"}`,
  ];
  const FOREIGN = [
    ...['2', '11', '"1"', 'null'].map((id) => `${start}]},"id":${id}}`),
    `${start}"x,\\"id\\":1}",{"id":1}]},"id":1}\n${OK}`,
    `{"jsonrpc":"2.0","result":${inner},"id":2,"id":1}`,
    `{"jsonrpc":"2.0","result":[${inner},${filler}],"id":2,"x":${filler},"id":1}`,
    `{"id":1,"result":[${inner},${filler}],"id":2,"x":1}`,
    `{"id":1,"result":[${inner},${filler}]}{"id":2,"result":[${inner},${filler}]}`,
    `{"result":[${inner},${filler}],"id":2}\n{"result":[${inner},${filler}],"id":1}`,
  ];
  describe.each([CHUNKED, long])('framed as %p, wherever its pieces are cut', (framing) => {
    const cutAnywhere = async (text: string) => {
      const ends = new Set<string>([await streamed([...text], { framing })]);
      for (let cut = 1; cut < text.length; cut++) {
        const pieces = [text.slice(0, cut), text.slice(cut, cut + 5), text.slice(cut + 5)];
        ends.add(await streamed(pieces, { framing }));
      }
      return [...ends];
    };

    test('passes byte for byte when it has the id of its call', async () => {
      for (const text of OWN)
        expect([text, 'whole']).toEqual(expect.arrayContaining(await cutAnywhere(text)));
    });

    test('B11 is no answer when it has the id of another call, or two', async () => {
      for (const text of FOREIGN)
        expect(['cut: bad-json', 'garbage']).toEqual(expect.arrayContaining(await cutAnywhere(text)));
    });

    test('and ends cleanly before its id is cut, wherever it ends', async () => {
      const [text = ''] = OWN;
      for (let end = start.length; end < text.trim().length; end++)
        expect(await streamed([start, text.slice(start.length, end)], { framing })).toBe('cut: bad-json');
    });
  });

  test('that does not begin as an object is no answer', async () => {
    for (const framing of [CHUNKED, 'until-close', long] as const) {
      const { made, state } = reply(['\n<html>', '</html>'], { framing });
      expect((await judgeOf(made, 'gzip', true)).kind).toBe('garbage');
      expect(state.cancelled).toBe(true);
    }
  });

  test('of declared length is trusted in its structure, but not in its id, unless the config says otherwise', async () => {
    for (const text of ['{"id":1,"result":["', '{"result":[,"id":1}']) {
      expect(await streamed([text], { framing: long })).toBe(text);
      expect(await streamed([text], { framing: long }, false)).toBe('cut: bad-json');
      expect(await streamed([text], {}, true)).toBe(text);
    }
    expect(await streamed(['{"a":[1]}'], { framing: long })).toBe('cut: bad-json');
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

const DIGITS = Array.from({ length: 20_000 }, (_, i) => Bun.hash(String(i)).toString(36)).join(' ');

describe.each(['gzip', 'br', 'deflate', 'zstd'] as const)('an answer in %s', (encoding) => {
  /** What becomes of bytes in pieces of 10 KB: how it is judged, and how its stream is cut. */
  const cameAs = async (packed: Buffer, fields: Fields = {}, id = '1') => {
    const count = Math.max(1, Math.ceil(packed.length / 10_000));
    const pieces = Array.from({ length: count }, (_, i) => packed.subarray(10_000 * i, 10_000 * (i + 1)));
    const { made } = reply(pieces, { encoding, ...fields });
    const arrived = await judge(made, Buffer.from(id), ALL, undefined, AbortSignal.any([]));
    const body = arrived.kind === 'stream' ? await textOfBody(arrived.body) : arrived.kind;
    return body.startsWith('cut') ? body : arrived.kind;
  };
  const pack = (text: string) => Buffer.from(PACKED[encoding](Buffer.from(text)));
  const came = (text: string, behind = '') => cameAs(Buffer.concat([pack(text), Buffer.from(behind)]));
  /** The forms of an answer, with the id first or last. */
  const formsOf = (result: string, id = '1') => [
    `{"jsonrpc":"2.0","result":"${result}","id":${id}}`,
    `{"id":${id},"result":"${result}"}`,
    `{"result":"${result}","id":${id},"jsonrpc":"2.0"}`,
  ];

  describe.each([
    ['short', '7', 'whole', 'garbage'],
    ['held', DIGITS.slice(0, 6_000), 'whole', 'garbage'],
    ['streamed', DIGITS, 'stream', 'cut: bad-json'],
  ])('that is %s', (kind, result, good, bad) => {
    test('is looked into for the ids that it begins and ends with', async () => {
      for (const own of formsOf(result)) expect(await came(`${own}\n`)).toBe(good);
      for (const foreign of formsOf(result, '2')) expect(await came(foreign)).toBe(bad);
    });

    test("is none when two answers stand in it, whichever is the call's", async () => {
      const foreign = formsOf('666', '2');
      for (const [i, own] of formsOf(result).entries())
        for (const all of [
          [own, foreign[i]],
          [foreign[i], own],
          [own, own],
        ])
          for (const between of ['', '\n']) expect(await came(all.join(between))).toBe(bad);
      expect(await came(`[${formsOf(result).join(',')}]`)).toBe(bad);
    });

    test('B11 is none when its coding ends too early', async () => {
      const packed = pack(formsOf(result)[0] ?? '');
      for (const missing of [1, 4, 8, 9, 12])
        expect(await cameAs(packed.subarray(0, packed.length - missing))).toBe(bad);
    });

    test('B11 is none when its coding ends cleanly and the answer in it does not', async () => {
      for (const own of formsOf(result)) {
        const cut = own.slice(0, own.indexOf(result) + result.length);
        expect(await came(cut)).toBe(bad);
        expect(await cameAs(pack(cut), { framing: CHUNKED })).toBe('cut: bad-json');
      }
    });

    test('B11 is none when the id is neither its first nor its last member', async () => {
      for (const text of [
        `{"jsonrpc":"2.0","result":"${result}","id":777,"x":1}`,
        `{"result":"${result}","id":777,"jsonrpc":"2.0","x":1}`,
        `{"jsonrpc":"2.0","result":"${result}","\\u0069d":777}`,
        `{"jsonrpc":"2.0","result":"${result}"}`,
        `{"jsonrpc":"2.0","result":"${result}","id":1}\n{"id":777,"jsonrpc":"2.0","result":"x"}`,
      ])
        expect(await came(text)).toBe(bad);
    });

    test('is judged by what can be decoded when bytes stand behind its end', async () => {
      const [own = ''] = formsOf(result);
      for (const behind of ['\n', '\0', 'x'.repeat(100), ...(kind === 'short' ? [] : ['x'.repeat(60_000)])]) {
        // A gzip member may stand behind another one: more than a byte that is none cannot be decoded.
        const isCut = encoding === 'gzip' && behind.length > 1;
        expect(await came(own, behind)).toBe(isCut ? bad : good);
        expect(await came(own.replace('"id":1', '"id":2'), behind)).toBe(bad);
      }
    });

    test('passes to an id of any length and form', async () => {
      for (const [id, written] of [
        [`"${'a'.repeat(600)}"`, `"${'a'.repeat(600)}"`],
        [`"${'\u00e9'.repeat(300)}"`, `"${'\\u00e9'.repeat(300)}"`],
      ] as const)
        for (const text of formsOf(result, written)) expect(await cameAs(pack(text), {}, id)).toBe(good);
    });
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
  test.each(['', ' ', '{', '}', 'null', '"{}"', '<html></html>', '{"a":1', '{"a":1}x', 'x{}'])(
    'a 200 of JSON by its type whose body is %p',
    async (body) => expect((await judged(body)).kind).toBe('garbage'),
  );

  test('a small body that breaks off', async () => {
    const failure = { kind: 'no-answer', reason: 'a body cut short: closed' } as const;
    expect(await judged(OK, { cut: 'closed' })).toEqual(failure);
  });
});
