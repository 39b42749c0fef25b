import { describe, expect, test } from 'bun:test';
import { gzipSync, zstdCompressSync } from 'bun';
import fc from 'fast-check';
import { judge } from '../../../gateway/upstream/response-reader.ts';
import type { StreamEnd } from '../../../gateway/http/stream-body.ts';
import type { HttpReply, ReplyBody } from '../../../gateway/upstream/http-connection.ts';
import type { Framing } from '../../../gateway/http/body-decoder.ts';
import { jsonText } from '../json/json-text.ts';
import { textOfBody } from '../stream-body.ts';
import { type Fields, type Pieces, reply } from './replies.ts';

/** What the call was sent under, and a caller's id that looks like a name. */
const SENT = '"7AJQ2MZXW4KBTNVC"';
const OWN = '"id"';
const OK = `{"jsonrpc":"2.0","result":1,"id":${SENT}}\n`;
const withOwn = (text: string, own = OWN) => text.replace(SENT, own);

const CHUNKED: Framing = 'chunked';
const NEVER = new AbortController().signal;
const judgeOf = (made: HttpReply, isTrusted = false, signal = NEVER, own = OWN) =>
  judge(
    made,
    { slotIn: 'context', sentId: Buffer.from(SENT), callerId: Buffer.from(own) },
    isTrusted,
    signal,
  );

type Judged = Awaited<ReturnType<typeof judge>>;
async function textOf(judged: Judged): Promise<string> {
  if (judged.kind === 'whole') return Buffer.from(judged.bytes).toString();
  return judged.kind === 'stream' ? textOfBody(judged.body) : judged.kind;
}

/** What the caller gets: the bytes, or `none` where it is refused or cut. */
async function given(body: Pieces, fields: Fields = {}, own = OWN): Promise<string> {
  const text = await textOf(await judgeOf(reply(body, fields).made, false, NEVER, own));
  return text.startsWith('{') ? text : 'none';
}
const kindOf = async (body: Pieces, fields?: Fields) => (await judgeOf(reply(body, fields).made)).kind;

describe('an answer', () => {
  test.each<[string, string, Fields]>([
    ['of a small declared length', ` \r\n\t${OK} \r\n`, {}],
    ['that has come with its head in chunks', OK, { framing: CHUNKED, ended: true }],
    ['that has come with its end', OK, { framing: 'until-close', ended: true }],
    ['that says identity', OK, { encoding: 'identity' }],
  ])("%s is held whole, byte for byte but for its id, which is the caller's", async (_, text, fields) => {
    expect(await judgeOf(reply(text, fields).made)).toEqual({
      kind: 'whole',
      bytes: Buffer.from(withOwn(text)),
      code: undefined,
      slot: 0,
    });
  });

  test('up to 64 KiB is held, one byte more is streamed, and its length is what the caller gets', async () => {
    const text = (length: number) => `{${' '.repeat(length - OK.length)}${OK.slice(1)}`;
    expect(await kindOf(text(65_536))).toBe('whole');
    for (const own of ['1', SENT, `"${'\\u0022'.repeat(6_000)}"`]) {
      const judged = await judgeOf(reply(text(65_537)).made, false, NEVER, own);
      expect(judged).toMatchObject({ kind: 'stream', length: 65_537 + own.length - SENT.length });
      expect((await textOf(judged)).length).toBe(65_537 + own.length - SENT.length);
    }
  });
});

test.each<[string, number | undefined, number]>([
  [`{"id":${SENT},"result":{"context":{"slot":314},"value":"`, undefined, 314],
  [`{"jsonrpc":"2.0","id":${SENT},"error":{"code":-32005,"message":"`, 0, 0],
])('a stream that begins as %s is judged by that, however it is divided', async (begun, code, slot) => {
  const text = `${begun}${'x'.repeat(65_536)}"}}`;
  for (const cut of [1, 9, begun.length - 1, text.length]) {
    const judged = await judgeOf(reply([text.slice(0, cut), text.slice(cut)], {}).made);
    expect(judged).toMatchObject({ kind: 'stream', code, slot });
  }
});

/** Answers in every form a node may write, as text before, behind and around the id. */
const space = fc.constantFrom('', '', ' ', '\n\t');
const OTHER_ID = '"IDZXW4KBTNVC7AJQ"';
const dataText = fc.oneof(
  jsonText,
  fc.constantFrom(
    '"id"',
    '{"id":7}',
    `[{"id":${OTHER_ID}},"id",${OTHER_ID}]`,
    '"\\"id\\":\\"7AJQ\\""',
    '"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1}"',
    '{"jsonrpc":"2.0","result":[{"jsonrpc":1},{"jsonrpc":{"jsonrpc":null}}]}',
    `{"error":null,"value":"id"}`,
    `${'['.repeat(100)}${']'.repeat(100)}`,
  ),
);
const answerText = fc
  .record({ data: dataText, form: fc.nat({ max: 4 }), gap: space, end: fc.constantFrom('', '\n', ' \r\n') })
  .map(({ data, form, gap, end }) => {
    const version = `"jsonrpc"${gap}:${gap}"2.0"`;
    const result = `"result"${gap}:${gap}${data}`;
    const id = `"id"${gap}:${gap}${SENT}`;
    const forms = [
      [version, result, id],
      [version, id, result],
      [id, result],
      [result, id, version],
      [id, result, version],
    ];
    return `{${gap}${(forms[form] ?? []).join(`${gap},${gap}`)}${gap}}${end}`;
  });

const callerId = fc.oneof(
  fc.constantFrom('"id"', '"\\u0069d"', 'null', '0', '18446744073709551615', '9007199254740993', '""', SENT),
  fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
  fc.constantFrom(
    '"\\"id\\":1}"',
    '"\\/\\b\\f\\n\\r\\t\\\\\\ud800"',
    `"${'\\u0069'.repeat(6_000)}"`,
    '"{\\"jsonrpc\\":"',
  ),
);

/** The ways in which a body may come: framed and divided. */
function* arrivals(bytes: Buffer): Iterable<readonly [readonly Uint8Array[], Fields]> {
  for (const framing of [bytes.length, CHUNKED, 'until-close'] as const) {
    yield [[bytes], { framing, ended: true }];
    yield [[bytes], { framing }];
    yield [[...bytes].map((byte) => Buffer.from([byte])), { framing }];
  }
  for (let cut = 1; cut < bytes.length; cut++)
    yield [
      [bytes.subarray(0, cut), bytes.subarray(cut, cut + 5), bytes.subarray(cut + 5)],
      { framing: CHUNKED },
    ];
}

async function allGiven(text: string | Uint8Array, own?: string): Promise<readonly string[]> {
  const ends = new Set<string>();
  for (const [pieces, fields] of arrivals(Buffer.from(text))) ends.add(await given(pieces, fields, own));
  return [...ends];
}

describe('however it is framed and divided', () => {
  test("an answer passes byte for byte with the caller's id, whatever the id and its data are", async () => {
    await fc.assert(
      fc.asyncProperty(answerText, callerId, async (text, own) => {
        const [wanted, ...more] = await allGiven(text, own);
        expect([wanted, more]).toEqual([text.split(SENT).join(own), []]);
      }),
      { numRuns: 30 },
    );
  });

  test('what a byte more or less makes of it is judged as one, and never passes where it is no JSON', async () => {
    const mutation = fc.record({
      at: fc.double({ min: 0, max: 1, noNaN: true }),
      less: fc.nat({ max: 2 }),
      more: fc.constantFrom(
        '',
        '',
        '"',
        ',',
        '}',
        ']',
        '{',
        '[',
        '1',
        '-',
        '.',
        '\\',
        '\n',
        'l',
        '"id":1,',
        '\u0001',
      ),
    });
    await fc.assert(
      fc.asyncProperty(answerText, mutation, async (text, { at, less, more }) => {
        const i = Math.floor(at * text.length);
        const changed = text.slice(0, i) + more + text.slice(i + less);
        const [one = '', ...others] = await allGiven(changed, '1');
        expect([changed, others]).toEqual([changed, []]);
        if (one !== 'none') expect(one).toBe(changed.replace(SENT, '1'));
        if (one !== 'none') expect(JSON.parse(one)).toBeDefined();
      }),
      { numRuns: 80 },
    );
  });

  const inner = '[{"id":2},{"a":{"id":"\\"id\\":2","b":["id"]}}]';
  const foreign = '{"jsonrpc":"2.0","result":666,"id":2}';
  test.each([
    ...['2', '1', '"1"', OTHER_ID, SENT.slice(1, -1), SENT.toLowerCase(), `[${SENT}]`].map(
      (id) => `{"jsonrpc":"2.0","result":7,"id":${id}}`,
    ),
    `{"jsonrpc":"2.0","result":7}`,
    `{"jsonrpc":"2.0","result":7,"id":null}`,
    `{"jsonrpc":"2.0","id":${SENT}}`,
    `{"jsonrpc":"2.0","result":${inner},"id":2,"id":${SENT}}`,
    `{"jsonrpc":"2.0","result":${inner},"id":${SENT},"id":${SENT}}`,
    `{"jsonrpc":"2.0","result":${inner},"\\u0069d":2,"id":${SENT}}`,
    `{"jsonrpc":"2.0","result":7,"id":${SENT},"x":1}`,
    `{"jsonrpc":"2.0","result":7,"\\u0069d":${SENT}}`,
    `{"id":${SENT},"result":${inner},"id":2}`,
    `{"id":${SENT},"result":${inner},"id":2,"x":1}`,
    `${foreign}${OK}`,
    `${foreign}\n${OK}`,
    `${OK}${foreign}`,
    `${OK}${OK}`,
    `${foreign.replace('"id":2', '"x":2')}${OK}`,
    `{"id":${SENT},"result":7}{"id":2,"result":7}`,
    `[${OK}]`,
    `{"jsonrpc":"2.0","result":{"id":${SENT}}}`,
    `{"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":2}`,
  ])('B11 %s is no answer to the call', async (text) => {
    expect(await allGiven(text)).toEqual(['none']);
    expect(await allGiven(text, '2')).toEqual(['none']);
  });

  test.each([
    ['{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"},"id":null}', '"id":null', '"id":"id"'],
    ['{"error":{"code":-32600,"message":"x","data":{"id":9}}}\n', '}\n', ',"id":"id"}\n'],
    [`{"error":{"code":1,"message":"x","data":{"id":${SENT}}} }`, ' }', ' ,"id":"id"}'],
    [`{"jsonrpc":"2.0","error":{"code":1,"message":"x"},"id":${SENT},"trace":7}`, SENT, OWN],
  ])("an error without an id or with its own gets the caller's: %s", async (text, from, to) => {
    const at = text.lastIndexOf(from);
    expect(await allGiven(text)).toEqual([text.slice(0, at) + to + text.slice(at + from.length)]);
  });
});

describe('a stream', () => {
  const long: Framing = 200_000;
  const filler = `"${'x'.repeat(70_000)}"`;
  const start = '{"jsonrpc":"2.0","result":{"a":[';
  const inner = '[{"id":2},{"a":{"id":"\\"id\\":2","b":["id"]}}]';
  const GOOD = [
    `${start}"x,\\"id\\":1}","{\\"jsonrpc\\":",{"id":1},{"id" : ${OTHER_ID}},"id",${filler}]},"id":${SENT}} \r\n`,
    `${start}${filler},{"jsonrpc":1},{"jsonrpc":[{"jsonrpc":{"jsonrpc":null}}]}]},"id":${SENT}}`,
    `${start}${filler}]},"id":${SENT}}${' '.repeat(90)}`,
    `{"jsonrpc":"2.0","result":[${filler},${inner}],"id":${SENT}}\n`,
    `{"id":${SENT},"result":[${inner},${filler},${inner}]}`,
    `{"jsonrpc" : "2.0", "id" : ${SENT}, "result":[${inner},${filler},${inner}]}\n`,
    `{"result":[${inner},${filler}],"id":${SENT},"jsonrpc":"2.0"}`,
    `{"jsonrpc":"2.0","result":[${filler},{"data":{"id":${SENT}}}],"id":${SENT}}\n`,
  ];
  const BAD = [
    ...['2', '"1"', 'null', OTHER_ID].map((id) => `${start}${filler}]},"id":${id}}`),
    `${start}"x,\\"id\\":1}",{"id":1},${filler}]},"id":2}\n${OK}`,
    `${start}${filler}]},"id":2}\n${OK}`,
    `${start}${filler}]}}\n${OK}`,
    `${start}${filler}]},"id":${SENT}}\n${OK}`,
    `{"jsonrpc":"2.0","result":[${filler},${inner}],"id":2,"id":${SENT}}`,
    `{"jsonrpc":"2.0","result":[${filler},${inner}],"id" :2,"x":${filler},"id":${SENT}}`,
    `{"jsonrpc":"2.0","result":[${filler}],"id":${SENT},"x":${filler}}`,
    `{"jsonrpc":"2.0","result":[${filler}],"id":${SENT},"x":1}`,
    `{"id":${SENT},"result":[${inner},${filler}],"id":2,"x":1}`,
    `{"id":${SENT},"result":[${inner},${filler}]}{"id":2,"result":[${inner},${filler}]}`,
    `{"id":${SENT},"result":[${inner},${filler}`,
    `{"id":2,"result":[${inner},${filler}]}`,
    `{"result":[${inner},${filler}],"id":2}\n{"result":[${inner},${filler}],"id":${SENT}}`,
    `{"jsonrpc":"2.0","result":[${filler}],"id":${SENT}`,
    `{"jsonrpc":"2.0","result":[${filler}]`,
  ];

  /** Cut anywhere in both ends, and around what stands between: a piece of five bytes begins or ends at each of them. */
  async function cutAnywhere(text: string, framing: Framing): Promise<readonly string[]> {
    const ends = new Set<string>([
      await given(text, { framing, ended: true }),
      await given(text, { framing }),
    ]);
    for (let cut = 1; cut < text.length; cut += cut === 151 ? text.length - 320 : 2)
      ends.add(await given([text.slice(0, cut), text.slice(cut, cut + 5), text.slice(cut + 5)], { framing }));
    return [...ends];
  }

  describe.each([CHUNKED, long])('framed as %p, wherever its pieces are cut', (framing) => {
    test("passes byte for byte with the caller's id", async () => {
      for (const text of GOOD) {
        const at = text.startsWith('{"jsonrpc":"2.0","result"') ? text.lastIndexOf(SENT) : text.indexOf(SENT);
        const wanted = text.slice(0, at) + OWN + text.slice(at + SENT.length);
        const all = await cutAnywhere(text, framing);
        expect(all.map((each) => each === wanted)).toEqual([true]);
      }
    });

    test('B11 is no answer when it has the id of another call, or two, or no end (§2.2.3)', async () => {
      for (const text of BAD)
        expect([text.slice(-60), await cutAnywhere(text, framing)]).toEqual([text.slice(-60), ['none']]);
    });
  });

  test('whose structure must be followed is trusted to end with its framing where the config says so', async () => {
    const broken = `{"id":${SENT},"result":[${filler}`;
    expect(await textOf(await judgeOf(reply(broken).made))).toBe('cut: bad-json');
    expect(await textOf(await judgeOf(reply(broken).made, true))).toBe(withOwn(broken));
    expect(await textOf(await judgeOf(reply(`{"a":[${filler}]}`).made, true))).toBe('cut: bad-json');
    // A short one is not.
    const short = [`{"id":${SENT},"result":["`, ''];
    expect(await textOf(await judgeOf(reply(short, { framing: CHUNKED }).made, true))).toBe('cut: bad-json');
  });

  test('that does not begin as an object is no answer', async () => {
    for (const framing of [CHUNKED, 'until-close', long] as const) {
      const { made, state } = reply(['\n<html>', '</html>'], { framing });
      expect((await judgeOf(made, true)).kind).toBe('garbage');
      expect(state.cancelled).toBe(true);
    }
  });

  test('passes from the first byte of its result on, and nothing of it behind what may be its id before that ends', async () => {
    const written: string[] = [];
    const pieces = [
      '{"jsonrpc":"2.0","result":"a',
      'b\\"c',
      `","id":${SENT.slice(0, 9)}`,
      `${SENT.slice(9)}}`,
      '\n',
    ];
    const judged = await judgeOf(reply(pieces, { framing: CHUNKED }).made);
    if (judged.kind !== 'stream') throw new Error(judged.kind);
    await judged.body.pipe((piece) => void written.push(piece.toString()));
    expect(written).toEqual(['{"jsonrpc":"2.0","result":"a', 'b\\"c', '",', '"id":"id"}\n']);
  });
});

const DIGITS = Array.from({ length: 20_000 }, (_, i) => Bun.hash(String(i)).toString(36)).join(' ');
const PACKED = { gzip: gzipSync, 'x-gzip': gzipSync, zstd: zstdCompressSync };

describe.each(['gzip', 'zstd'] as const)('an answer in %s', (encoding) => {
  const pack = (text: string) => Buffer.from(PACKED[encoding](Buffer.from(text)));
  /** What the caller gets of bytes in pieces of so many. */
  const came = async (packed: Buffer, pieceBytes = 10_000, fields: Fields = {}) => {
    const count = Math.max(1, Math.ceil(packed.length / pieceBytes));
    const pieces = Array.from({ length: count }, (_, i) =>
      packed.subarray(pieceBytes * i, pieceBytes * (i + 1)),
    );
    return given(pieces, { encoding, ...fields });
  };

  describe.each([
    ['short', '7'],
    ['held', `"${DIGITS.slice(0, 6_000)}"`],
    ['streamed', `"${DIGITS}"`],
  ])('that is %s', (_, result) => {
    const forms = (id: string) => [
      `{"jsonrpc":"2.0","result":${result},"id":${id}}`,
      `{"id":${id},"result":${result}}\n`,
      `{"result":${result},"id":${id},"jsonrpc":"2.0"}`,
    ];

    test("is decoded, and passes with the caller's id, in however many parts and pieces it comes", async () => {
      for (const text of forms(SENT))
        for (const packed of [pack(text), Buffer.concat([pack(text.slice(0, 30)), pack(text.slice(30))])])
          for (const [pieceBytes, fields] of [
            [10_000, {}],
            [10_000, { framing: CHUNKED }],
            [1_000_000, { ended: true }],
            [packed.length < 100 ? 1 : 999, { framing: 'until-close' }],
          ] as const)
            expect((await came(packed, pieceBytes, fields)) === withOwn(text)).toBe(true);
    });

    test('B11 is none when it has the id of another call, or another stands before or behind it', async () => {
      const [own = ''] = forms(SENT);
      for (const foreign of forms('2'))
        for (const text of [foreign, own + foreign, foreign + own, `${own}\n${foreign}`])
          for (const packed of [pack(text), Buffer.concat([pack(text.slice(0, 9)), pack(text.slice(9))])])
            expect(await came(packed)).toBe('none');
    });

    test('B11 is none when its coding or the answer in it ends too early', async () => {
      const [own = ''] = forms(SENT);
      const packed = pack(own);
      for (const missing of [1, 4, 8, 9, 12])
        for (const framing of [CHUNKED, packed.length - missing] as const)
          expect(await came(packed.subarray(0, packed.length - missing), 10_000, { framing })).toBe('none');
      expect(await came(pack(own.slice(0, -20)))).toBe('none');
    });
  });

  test('is let go of when it decodes to more than its reader takes, of a few bytes', async () => {
    const packed = pack(`{"jsonrpc":"2.0","result":"${' '.repeat(64 << 20)}","id":${SENT}}`);
    const { made, state } = reply([packed], { encoding });
    const judged = await judgeOf(made);
    if (judged.kind !== 'stream') throw new Error(judged.kind);
    let bytes = 0;
    const end = await judged.body.pipe((piece) => {
      bytes += piece.length;
      judged.body.cancel();
      return new Promise(() => undefined);
    });
    expect([end.kind, state.cancelled, bytes < 1 << 20]).toEqual(['cut', true, true]);
  });

  test('of a status that is none says what is wrong with the call all the same', async () => {
    const error = `{"jsonrpc":"2.0","error":{"code":-32602,"message":"x"},"id":${SENT}}`;
    expect(await given(pack(error), { encoding, status: 400 })).toBe(withOwn(error));
    expect(await kindOf(pack(OK), { encoding, status: 400 })).toBe('status');
    expect(await kindOf(pack(`{"a":"${' '.repeat(70_000)}"}`), { encoding, status: 500 })).toBe('status');
  });
});

test('A11 an answer in a coding that is not known is none', async () => {
  for (const encoding of ['br', 'deflate', 'gzip, gzip', 'gzip\tx', 'toString', '__proto__'])
    for (const body of [gzipSync(OK), OK]) expect(await kindOf(body, { encoding })).toBe('garbage');
});

describe('an answer of undeclared length', () => {
  const chunked = (pieces: readonly string[], fields: Fields = {}) =>
    kindOf(pieces, { framing: CHUNKED, ...fields });

  test.each([
    ['that is complete before its framing ends', [OK, ' ']],
    ['whose null is followed by an error', ['{"result":null,', '"error":{"code":1,"message":""}}']],
    ['that is an error by and by', [...'{"jsonrpc":"2.0","error":{"code":1,"message":""}}']],
    ['that does not tell yet', ['{"jso', 'nrpc":"2.0","result":null,"id":', `${SENT}}`]],
  ])('A9 %s is held whole', async (_name, pieces) => {
    expect(await chunked(pieces)).toBe('whole');
    expect(await chunked(pieces, { framing: 'until-close' })).toBe('whole');
  });

  test.each([
    ['that is a result, from its first byte', ['{"jsonrpc":"2.0","result":{', `},"id":${SENT}}`]],
    ['that tells by and by', ['{"jso', 'nrpc":"2.0","result":1,', `"id":${SENT}}`]],
    [
      'whose error is longer than what is held',
      [`{"error":{"message":"${'x'.repeat(65_536)}`, `"},"id":${SENT}}`],
    ],
  ])('A9 %s is streamed', async (_name, pieces) => {
    expect(await chunked(pieces)).toBe('stream');
    expect((await given(pieces, { framing: CHUNKED })) === withOwn(pieces.join(''))).toBe(true);
  });

  test.each([
    ['breaks off', ['{"error":{"code":1'], { cut: 'closed' }, 'no-answer'],
    ['ends in its middle', ['{"error":{"code":1'], {}, 'garbage'],
    ['can be no JSON', ['{"error":{"code":<html>'], {}, 'garbage'],
    ['is complete, and then breaks off', [OK], { cut: 'closed' }, 'no-answer'],
    ['is complete, and then goes on', [OK, OK], {}, 'garbage'],
  ] as const)('that %s while it is held is none', async (_name, pieces, fields, kind) => {
    expect(await chunked(pieces, fields)).toBe(kind);
  });
});

test('a reader is not waited for while a compressed answer is decoded', async () => {
  const random = crypto.getRandomValues(new Uint8Array(200_000)).toHex();
  const packed = gzipSync(`{"jsonrpc":"2.0","result":"${random}","id":${SENT}}`);
  const { made } = reply([packed.subarray(0, 100), packed.subarray(100)], { encoding: 'gzip' });
  const notes: string[] = [];
  const body: ReplyBody = {
    ...made.body,
    noteRead: () => void notes.push('read'),
    noteUnread: () => void notes.push('unread'),
  };
  const judged = await judgeOf({ ...made, body });
  if (judged.kind !== 'stream') throw new Error(judged.kind);
  const end = await judged.body.pipe(async () => void notes.push('written'));
  expect(end.kind).toBe('complete');
  expect(notes[0]).not.toBe('unread');
  expect(notes.filter((note) => note === 'unread').length).toBeLessThan(notes.length / 2);
});

test('an answer that is held is let go of when its caller leaves, or has left', async () => {
  const caller = new AbortController();
  for (const leave of [() => caller.abort(), () => undefined]) {
    const cut = Promise.withResolvers<void>();
    let end: StreamEnd | undefined;
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
    const outcome = judgeOf({ ...reply('', { framing: CHUNKED }).made, body }, false, caller.signal);
    leave();
    expect(await outcome).toEqual({ kind: 'no-answer', reason: 'a body cut short: cancelled' });
  }
});

describe('no answer', () => {
  test.each(['', ' ', '{', '}', 'null', '"{}"', '<html></html>', '{"a":1', '{"a":1}x', 'x{}'])(
    'a 200 of JSON by its type whose body is %p',
    async (body) => expect(await kindOf(body)).toBe('garbage'),
  );

  test('a small body that breaks off', async () => {
    const failure = { kind: 'no-answer', reason: 'a body cut short: closed' } as const;
    expect(await judgeOf(reply(OK, { cut: 'closed' }).made)).toEqual(failure);
  });
});
