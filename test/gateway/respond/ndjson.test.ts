import { describe, expect, test } from 'bun:test';
import { divided, HELD_BYTES_MAX } from '../../../gateway/respond/ndjson.ts';
import { failure, result, type SeenCall, startBackend } from '../../fakes/backend.ts';
import { startGateway } from '../../started/gateway.ts';
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
    credits: { methods: { getProgramAccounts: 50 } },
  }),
);
const key = gateway.key();

/** A chunked answer of `megabytes` MB of accounts between `head` and `tail`; `between` runs before each MB. */
function scanned(head: string, tail: string, megabytes: number, between?: (written: number) => unknown) {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      try {
        await controller.write(head);
        for (let written = 0; written < megabytes; written++) {
          await between?.(written);
          const accounts = Array(MB_OF_ACCOUNTS).fill(ACCOUNT).join(',');
          await controller.write(written === 0 ? accounts : `,${accounts}`);
          await controller.flush();
        }
        await controller.write(tail);
        controller.close();
      } catch (error) {
        controller.close(error instanceof Error ? error : new Error(String(error)));
      }
    },
  };
  return new Response(new ReadableStream(source), { headers: { 'content-type': 'application/json' } });
}
const HEAD = '{"jsonrpc":"2.0","result":[';
const TAIL = '],"id":1}\n';

async function asked(script: (seen: SeenCall) => Response, headers: Record<string, string> = LINES) {
  backend.script(script);
  const answer = await gateway.post(SCAN, key, { headers });
  return { answer, type: answer.headers.get('content-type'), text: await answer.text() };
}

describe('getProgramAccounts as lines', () => {
  test.each([
    ['a bare array', `[${ACCOUNT},${ACCOUNT}]`, `${ACCOUNT}\n${ACCOUNT}\n{"accounts":2,"slot":null}\n`],
    [
      'with a context',
      `{"context":{"slot":9},"value":[${ACCOUNT}]}`,
      `${ACCOUNT}\n{"accounts":1,"slot":9}\n`,
    ],
    ['no accounts', '[]', '{"accounts":0,"slot":null}\n'],
  ])('a small answer, %s', async (_, json, lines) => {
    const { answer, type, text } = await asked((seen) => result(seen, json));
    expect([answer.status, type, text]).toEqual([200, 'application/x-ndjson', lines]);
    expect(answer.headers.get('x-credits-cost')).toBe('50');
  });

  test('a large answer with a context', async () => {
    const head = '{"jsonrpc":"2.0","result":{"context":{"slot":9},"value":[';
    const { type, text } = await asked(() => scanned(head, ']},"id":1}\n', 3));
    const lines = Array(3 * MB_OF_ACCOUNTS)
      .fill(ACCOUNT)
      .join('\n');
    expect(type).toBe('application/x-ndjson');
    expect(text === `${lines}\n{"accounts":${3 * MB_OF_ACCOUNTS},"slot":9}\n`).toBe(true);
  });

  test('the first line comes while the backend still scans', async () => {
    const firstLine = Promise.withResolvers<void>();
    backend.script(() =>
      scanned(HEAD, TAIL, 2, (written) => (written === 1 ? firstLine.promise : undefined)),
    );
    const answer = await gateway.post(SCAN, key, { headers: LINES });
    let text = '';
    for await (const piece of answer.body ?? []) {
      text += Buffer.from(piece).toString();
      if (text.startsWith(`${ACCOUNT}\n`)) firstLine.resolve();
    }
    expect(text.endsWith(`{"accounts":${2 * MB_OF_ACCOUNTS},"slot":null}\n`)).toBe(true);
  });

  test('the backend is asked for plain bytes, whatever the caller can read', async () => {
    await asked((seen) => result(seen, '[]'), { ...LINES, 'accept-encoding': 'gzip' });
    expect(backend.seen.at(-1)?.request.headers.get('accept-encoding')).toBe('identity');
  });

  test.each([
    ['application/json, Application/X-NDJSON;q=0.5', 'application/x-ndjson'],
    ['*/*', 'application/json; charset=utf-8'],
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

describe('an answer without accounts is the JSON it was', () => {
  test('an error of the method', async () => {
    const { answer, type, text } = await asked((seen) => failure(seen, -32602, 'WrongSize'));
    expect([answer.status, type]).toEqual([200, 'application/json; charset=utf-8']);
    expect(text).toBe('{"jsonrpc":"2.0","error":{"code":-32602,"message":"WrongSize"},"id":1}\n');
  });

  test.each([100, HELD_BYTES_MAX - 1, 5 * HELD_BYTES_MAX])('a streamed result of %d bytes', async (bytes) => {
    const body = `{"jsonrpc":"2.0","result":"${'x'.repeat(bytes)}","id":1}`;
    const { type, text } = await asked(() => scanned(body, ' ', 0));
    expect([type, text]).toEqual(['application/json; charset=utf-8', `${body} `]);
  });
});

describe('a scan that breaks off', () => {
  /** As one whole body with a Content-Length, whose end is trusted: only who cuts it into lines looks into it. */
  const trusted = (tail: string) =>
    new Response(`${HEAD}${Array(MB_OF_ACCOUNTS).fill(ACCOUNT).join(',')}${tail}`, {
      headers: { 'content-type': 'application/json' },
    });

  test.each([
    ['closed', 'dies', TAIL],
    ['bad-json', 'has two commas', ',,1],"id":1}'],
    ['bad-json', 'has a length, and ends in the middle of an account', ',{"pubkey":"'],
  ])('is counted once, as %s, when its answer %s', async (reason, how, tail) => {
    const counted = () => gateway.metric(`streams_cut_total{backend="a",reason="${reason}"}`);
    const before = await counted();
    backend.script(() =>
      how.startsWith('has a length')
        ? trusted(tail)
        : scanned(HEAD, tail, 2, (written) => {
            if (how === 'dies' && written === 1) throw new Error('the node is gone');
          }),
    );
    const answer = await gateway.post(SCAN, key, { headers: LINES });
    expect(await answer.text().catch(() => 'broken')).toBe('broken');
    expect(await counted()).toBe(before + 1);
  });
});

test('a caller that leaves before anybody reads his lines lets go of what is under way', async () => {
  const leaving = new AbortController();
  const waited = Promise.withResolvers<void>();
  const stream = {
    kind: 'stream',
    encoding: undefined,
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
