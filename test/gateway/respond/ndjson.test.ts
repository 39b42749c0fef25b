import { describe, expect, spyOn, test } from 'bun:test';
import { AccountLines, divided, HELD_BYTES_MAX } from '../../../gateway/respond/ndjson.ts';
import { result, type SeenCall, startBackend } from '../../fakes/backend.ts';
import { startGateway } from '../../started/gateway.ts';
import { textOfBody } from '../stream-body.ts';
import { streamOf } from '../upstream/of.ts';
import { shared } from '../../started/shared.ts';

const SCAN = { jsonrpc: '2.0', id: 1, method: 'getProgramAccounts', params: ['program'] };
const LINES = { accept: 'application/x-ndjson' };
const ACCOUNT = `{"pubkey":"a","account":{"data":["${'A'.repeat(200)}","base64"],"lamports":1,"rentEpoch":18446744073709551615}}`;
const MB_OF_ACCOUNTS = Math.ceil((1 << 20) / (ACCOUNT.length + 1));

const backend = shared(startBackend());
const gateway = shared(
  await startGateway({
    backends: [{ name: 'a', url: backend.url }],
    plans: { trial: { rps: 1_000, burst: 1_000, scans: 1 } },
  }),
);
const key = gateway.key();

/** A chunked answer of `megabytes` MB of accounts between `head` and `tail`; `between` runs before each MB. */
function scanned(head: string, tail: string, megabytes: number, between?: (written: number) => unknown) {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      await controller.write(head);
      for (let written = 0; written < megabytes; written++) {
        await between?.(written);
        const accounts = Array(MB_OF_ACCOUNTS).fill(ACCOUNT).join(',');
        await controller.write(written === 0 ? accounts : `,${accounts}`);
        await controller.flush();
      }
      await controller.write(tail);
      controller.close();
    },
  };
  return new Response(new ReadableStream(source), { headers: { 'content-type': 'application/json' } });
}
const HEAD = '{"jsonrpc":"2.0","result":[';
const tailOf = ({ id }: SeenCall) => `],"id":${id}}\n`;

async function asked(script: (seen: SeenCall) => Response, headers: Record<string, string> = LINES) {
  backend.script(script);
  const answer = await gateway.post(SCAN, key, { headers });
  return { type: answer.headers.get('content-type'), text: await answer.text() };
}

describe('getProgramAccounts as lines', () => {
  test('a small answer, for which the backend is asked for plain bytes (§2.3.5)', async () => {
    const headers = { ...LINES, 'accept-encoding': 'gzip' };
    const answer = `{"context":{"slot":9},"value":[${ACCOUNT}]}`;
    const { type, text } = await asked((seen) => result(seen, answer), headers);
    expect([type, text]).toEqual(['application/x-ndjson', `${ACCOUNT}\n{"accounts":1,"slot":9}\n`]);
    expect(backend.seen.at(-1)?.request.headers.get('accept-encoding')).toBe('identity');
  });

  test('the first line comes while the backend still scans', async () => {
    const firstLine = Promise.withResolvers<void>();
    backend.script((seen) =>
      scanned(HEAD, tailOf(seen), 2, (written) => (written === 1 ? firstLine.promise : undefined)),
    );
    const answer = await gateway.post(SCAN, key, { headers: LINES });
    let text = '';
    for await (const piece of answer.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.startsWith(`${ACCOUNT}\n`)) firstLine.resolve();
    }
    expect(text.endsWith(`{"accounts":${2 * MB_OF_ACCOUNTS},"slot":null}\n`)).toBe(true);
  });

  test.each([
    ['application/json, Application/X-NDJSON;q=0.5', 'application/x-ndjson'],
    ['application/x-ndjson2', 'application/json; charset=utf-8'],
    ['application/json, application/x-ndjson;q=0.0', 'application/json; charset=utf-8'],
  ])('who accepts %s gets %s', async (accept, type) => {
    expect((await asked((seen) => result(seen, '[]'), { accept })).type).toBe(type);
  });

  test('a batch and other methods do not know of lines', async () => {
    backend.script((seen) => result(seen, '[]'));
    const batch = await gateway.post([SCAN], key, { headers: LINES });
    expect(await batch.json()).toEqual([{ jsonrpc: '2.0', result: [], id: 1 }]);
    const other = await gateway.post({ ...SCAN, method: 'getBlocks' }, key, { headers: LINES });
    expect(await other.json()).toEqual({ jsonrpc: '2.0', result: [], id: 1 });
  });
});

test.each([100, HELD_BYTES_MAX - 1, 5 * HELD_BYTES_MAX])(
  'an answer of %d bytes without accounts is the JSON it was',
  async (bytes) => {
    const bodyFor = (id: number | string) => `{"jsonrpc":"2.0","result":"${'x'.repeat(bytes)}","id":${id}}`;
    const { type, text } = await asked(({ id }) => scanned(bodyFor(id), ' ', 0));
    expect([type, text]).toEqual(['application/json; charset=utf-8', `${bodyFor(1)} `]);
  },
);

/** As one whole body with a Content-Length, whose end is trusted: only who cuts it into lines looks into it. */
const trusted = (tail: string) =>
  new Response(`${HEAD}${Array(MB_OF_ACCOUNTS).fill(ACCOUNT).join(',')}${tail}`, {
    headers: { 'content-type': 'application/json' },
  });

test.each([
  ['has two commas', () => scanned(HEAD, ',,1],"id":1}', 2)],
  ['has a length, and ends in the middle of an account', () => trusted(',{"pubkey":"')],
])('a scan that breaks off is counted once when its answer %s', async (_, script) => {
  const counted = () => gateway.metric('streams_cut_total{backend="a",reason="bad-json"}');
  const before = await counted();
  backend.script(script);
  const answer = await gateway.post(SCAN, key, { headers: LINES });
  expect(await answer.text().catch(() => 'broken')).toBe('broken');
  expect(await counted()).toBe(before + 1);
});

test.each([
  [
    'accounts',
    `${HEAD}${ACCOUNT},`,
    [`${ACCOUNT}`, '],"id":1}'],
    `${ACCOUNT}\n${ACCOUNT}\n{"accounts":2,"slot":null}\n`,
  ],
  ['none', `{"jsonrpc":"2.0","result":"${'x'.repeat(HELD_BYTES_MAX)}`, ['y"', ',"id":1}'], undefined],
])(
  'A13 pieces of a body with %s that come before the first was taken are all passed on',
  async (_, first, more, wanted) => {
    const body = {
      cancel: () => undefined,
      async pipe(write: (piece: Buffer) => unknown) {
        for (const text of [first, ...more]) {
          const piece = Buffer.from(text);
          void write(piece); // as the end of a body, for which nothing waits
          piece.fill('#');
        }
        return { kind: 'complete', bytes: 0 } as const;
      },
    };
    const { answer } = await divided(streamOf(body), new AbortController().signal);
    if (answer.kind !== 'stream') throw new Error(answer.kind);
    expect((await textOfBody(answer.body)) === (wanted ?? [first, ...more].join(''))).toBe(true);
  },
);

test('a caller that leaves before anybody reads his lines lets go of what is under way', async () => {
  const leaving = new AbortController();
  const waited = Promise.withResolvers<void>();
  const stream = {
    kind: 'stream',
    code: undefined,
    body: {
      cancel: () => undefined,
      async pipe(write: (piece: Buffer) => unknown) {
        await write(Buffer.from(`${HEAD}${ACCOUNT},`));
        waited.resolve();
        return { kind: 'cut', reason: 'cancelled', bytes: 0 } as const;
      },
    },
  } as const;
  expect((await divided(stream, leaving.signal)).type).toBe('application/x-ndjson');
  leaving.abort();
  await waited.promise;
});

test('A18 the end of a string in which every character is escaped is searched behind some bytes, not behind each', () => {
  const account = `"${'\\"'.repeat(32_768)}"`;
  const answer = Buffer.from(`{"jsonrpc":"2.0","result":[${account}],"id":1}`);
  const lines = new AccountLines();
  using searches = spyOn(Buffer.prototype, 'indexOf');
  expect(lines.push(answer)?.length).toBe(account.length + 1);
  expect(searches.mock.calls.length).toBeLessThan(answer.length / 16);
  expect(lines.last()?.toString()).toBe('{"accounts":1,"slot":null}\n');
});
