import { afterEach, describe, expect, test } from 'bun:test';
import { getAddressDecoder, isAddress as isKitAddress } from '@solana/kit';
import { isAddress } from '../../bench/account-reader.ts';
import type { ScanOptions } from '../../bench/arguments.ts';
import type { Recorder } from '../../bench/recorder.ts';
import { runScans } from '../../bench/scan.ts';
import { systemClock } from '../../shared/clock.ts';
import {
  CHUNKED,
  framedChunk as chunk,
  framed as plain,
  type RawScript,
  startRawBackend,
} from '../fakes/raw-backend.ts';
import { optionsOf } from './options.ts';

const PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const OTHER = 'BPFLoaderUpgradeab1e11111111111111111111111';
const ADDRESS = 'So11111111111111111111111111111111111111112';

const open: Disposable[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each[Symbol.dispose]();
});

/** Scans an endpoint with this script; `onBytes` is called when bytes of an answer were read. */
async function scan(
  script: RawScript,
  more: Partial<ScanOptions> = {},
  signal = new AbortController().signal,
  onBytes: () => void = () => undefined,
) {
  const backend = startRawBackend(script);
  open.push(backend);
  const options: ScanOptions = {
    ...optionsOf('scan', '--programs', PROGRAM, '--timeout', '10'),
    url: new URL(backend.url),
    ...more,
  };
  const onProgress = ({ bytes }: Recorder) => void (bytes > 0 && onBytes());
  return runScans(options, { clock: systemClock, onProgress, signal });
}

const BYTES = Buffer.from([1, 2, 3, 4, 5]);
const base64 = (bytes: Buffer) => [bytes.toString('base64'), 'base64'];
let addresses = 0;

function newAddress(): string {
  const bytes = Buffer.alloc(32, 7);
  bytes.writeUInt32BE(addresses++, 28);
  return getAddressDecoder().decode(bytes);
}

function account(more: object = {}, pubkey: unknown = newAddress()) {
  const usual = { lamports: 1, owner: PROGRAM, executable: false, rentEpoch: 2 ** 64, space: 5 };
  return { pubkey, account: { data: base64(BYTES), ...usual, ...more } };
}

/** Why an answer that ended cleanly is cut. */
const early = (why: string) => `it ended as if whole, but ${why}`;

const bodyOf = (...accounts: unknown[]) =>
  `{"jsonrpc":"2.0","result":{"context":{"apiVersion":"4.3.0","slot":77},"value":${JSON.stringify(accounts)}},"id":1}\n`;

const answer =
  (body: string): RawScript =>
  (exchange) =>
    exchange.send(plain(body));

describe('a scan', () => {
  test('that is whole and right is complete, with its figures', async () => {
    const body = bodyOf(account(), account({ lamports: 0 }));
    const { scans, figures } = await scan(answer(body), { sha256: true });
    expect(scans).toEqual([
      {
        program: PROGRAM,
        outcome: 'complete',
        reason: '',
        accounts: 2,
        wrongAccounts: 0,
        bytes: body.length,
        seconds: expect.any(Number),
        firstByteMs: expect.any(Number),
        dataBytes: 10,
        slot: 77,
        sha256: new Bun.CryptoHasher('sha256').update(body).digest('hex'),
      },
    ]);
    expect(figures.find(({ name }) => name === 'accounts')?.value).toBe(2);
  });

  test('asks with the filters, the slice and the form that were wanted, and the key in its field', async () => {
    let request = '';
    const filters = [{ memcmp: { offset: 0, bytes: 'AQID', encoding: 'base64' as const } }];
    const more = { filters, slice: { offset: 0, length: 3 }, key: 'k', keyAs: 'Authorization', ndjson: true };
    await scan((exchange) => {
      request = exchange.text;
      return exchange.send(plain(bodyOf()));
    }, more);
    expect(request).toMatch(/authorization: Bearer k\r\n/i);
    expect(request).toMatch(/accept: application\/x-ndjson\r\n/i);
    expect(JSON.parse(request.slice(request.indexOf('\r\n\r\n'))).params).toEqual([
      PROGRAM,
      { encoding: 'base64', commitment: 'confirmed', filters, dataSlice: more.slice, withContext: true },
    ]);
  });

  test('without a context is read too, in pieces of any size', async () => {
    const body = `{"id":1,"result":${JSON.stringify([account(), account()])},"jsonrpc":"2.0"}`;
    const { scans } = await scan(async (exchange) => {
      await exchange.send(CHUNKED);
      for (let i = 0; i < body.length; i += 7) await exchange.send(chunk(body.slice(i, i + 7)));
      await exchange.send('0\r\n\r\n');
    });
    expect(scans[0]).toMatchObject({ outcome: 'complete', accounts: 2, slot: null });
  });

  test.each([
    ['another length than its space', account({ space: 6 }), 'its data has another length'],
    ['bad base64', account({ data: ['AQID!AU=', 'base64'] }), 'its data is not base64'],
    ['base64 without its padding', account({ data: ['AQIDBAU', 'base64'] }), 'its data is not base64'],
    ['another encoding', account({ data: ['2VfUX', 'base58'] }), 'its data is not base64'],
    ['another owner', account({ owner: OTHER }), 'another program owns it'],
    ['odd lamports', account({ lamports: -1 }), 'lamports or executable are wrong'],
    ['lamports as text', account({ lamports: '1' }), 'lamports or executable are wrong'],
    ['an address of 44 zeros', account({}, '0'.repeat(44)), 'its address is none'],
    ['an address that is too short', account({}, ADDRESS.slice(1)), 'its address is none'],
    ['an address that is too long', account({}, `z${ADDRESS}`), 'its address is none'],
    ['a number for an address', account({}, 7), 'its address is none'],
  ])('names an account with %s', async (_, wrong, reason) => {
    const { scans, recorder } = await scan(answer(bodyOf(account(), wrong, account())));
    const expected = `of 1 accounts, ${reason}`;
    expect(scans[0]).toMatchObject({ outcome: 'wrong', accounts: 3, wrongAccounts: 1, reason: expected });
    expect(recorder.outcomes).toEqual({ [`wrong: ${expected}`]: 1 });
  });

  test('holds data to the slice', async () => {
    const sliced = (bytes: Buffer, more = {}) => account({ data: base64(bytes), ...more });
    const slice = { offset: 3, length: 4 };
    const accounts = [sliced(BYTES.subarray(3)), sliced(BYTES.subarray(2)), sliced(Buffer.alloc(0))];
    const { scans } = await scan(answer(bodyOf(...accounts)), { slice });
    expect(scans[0]).toMatchObject({ accounts: 3, wrongAccounts: 2 });
    const unsaid = [4, 3, 0].map((length) => sliced(BYTES.subarray(0, length), { space: undefined }));
    const sized = await scan(answer(bodyOf(...unsaid)), {
      slice: { offset: 0, length: 4 },
      filters: [{ dataSize: 5 }],
    });
    expect(sized.scans[0]).toMatchObject({ accounts: 3, wrongAccounts: 2 });
  });

  test('holds accounts to the filters, as far as the slice shows', async () => {
    const memcmp = { offset: 1, bytes: Buffer.from([2, 3]).toString('base64'), encoding: 'base64' as const };
    const other = account({ data: base64(Buffer.from([1, 2, 4, 4, 5])) });
    const compared = await scan(answer(bodyOf(account(), other)), { filters: [{ memcmp }] });
    const reason = (filter: string) => `of 1 accounts, it does not match ${filter}`;
    expect(compared.scans[0]).toMatchObject({ wrongAccounts: 1, reason: reason('memcmp') });
    // Slices that begin behind the first compared byte, and that end before the last one.
    for (const slice of [
      { offset: 2, length: 3 },
      { offset: 0, length: 2 },
    ]) {
      const partly = [BYTES, Buffer.from([1, 9, 9, 4, 5]), BYTES].map((bytes, i) =>
        account({
          data: base64(bytes.subarray(slice.offset, slice.offset + slice.length)),
          ...(i === 2 && { space: undefined }),
        }),
      );
      const { scans } = await scan(answer(bodyOf(...partly)), { slice, filters: [{ memcmp }] });
      expect(scans[0]).toMatchObject({ accounts: 3, wrongAccounts: 1 });
    }
    const short = await scan(answer(bodyOf(account())), {
      slice: { offset: 0, length: 5 },
      filters: [{ memcmp: { ...memcmp, offset: 4 } }],
    });
    expect(short.scans[0]?.wrongAccounts).toBe(1);
    const sized = await scan(answer(bodyOf(account())), { filters: [{ dataSize: 6 }] });
    expect(sized.scans[0]).toMatchObject({ wrongAccounts: 1, reason: reason('dataSize') });
  });
});

describe('an answer', () => {
  const body = bodyOf(account());
  const otherId = `cut ${early('the answer has another id or version')}`;
  const again = bodyOf(account({}, ADDRESS), account(), account({}, ADDRESS));
  const of = (members: string) => `{"jsonrpc":"2.0",${members}}`;
  const strange = of('"error":{"code":"x","message":"no"},"id":1');
  const accountsTwice = of('"result":{"value":[],"value":[]},"id":1');
  test.each([
    ['an error that is null', body.replace('}\n', ',"error":null}'), 'complete '],
    ['an error whose code is no number', strange, 'refused ? no'],
    ['an account twice', again, 'wrong of 1 accounts, it came before'],
    ['its id as text', body.replace('"id":1', '"id":"1"'), otherId],
    ['its id in its result', of('"result":{"id":1,"value":[]}'), otherId],
    ['two results', of('"result":[],"result":[],"id":1'), 'wrong the answer has "result" twice'],
    ['accounts twice in its result', accountsTwice, 'wrong the answer has "value" twice'],
  ])('with %s', async (_, text, expected) => {
    const [{ outcome, reason } = {}] = (await scan(answer(text))).scans;
    expect(`${outcome} ${reason}`).toBe(expected);
  });

  test('cannot write to a terminal', async () => {
    const message = `\x1b]0;\u202e\r\n${'x'.repeat(1_000)}`;
    const error = JSON.stringify({ jsonrpc: '2.0', error: { code: 1, message }, id: 1 });
    const { scans, recorder, failures } = await scan(answer(error));
    const reason = `1 ?]0;???${'x'.repeat(191)}…`;
    expect(scans[0]).toMatchObject({ outcome: 'refused', reason });
    expect([failures, recorder.outcomes]).toEqual([
      [`${PROGRAM} refused: ${reason}`],
      { [`refused: ${reason}`]: 1 },
    ]);
  });

  test('is remembered by its accounts however many they are', async () => {
    const accounts = Array.from({ length: 40_000 }, () => account());
    const { scans } = await scan(answer(bodyOf(...accounts, accounts[7], accounts[39_000])));
    expect(scans[0]).toMatchObject({ accounts: 40_002, wrongAccounts: 2 });
  });
});

describe('a scan is cut', () => {
  const body = bodyOf(account(), account());

  test('when its connection breaks', async () => {
    const begun = Promise.withResolvers<void>();
    const script: RawScript = async (exchange) => {
      await exchange.send(CHUNKED + chunk(body.slice(0, 300)));
      await begun.promise;
      exchange.reset();
    };
    const { scans } = await scan(script, {}, undefined, begun.resolve);
    const reason = expect.stringContaining('the connection broke');
    expect(scans[0]).toMatchObject({ outcome: 'cut', reason });
  });

  test('when nothing comes any more', async () => {
    const { scans } = await scan((exchange) => exchange.send(CHUNKED + chunk(body.slice(0, 300))), {
      timeoutMs: 300,
    });
    expect(scans[0]).toMatchObject({ outcome: 'cut', reason: 'nothing came any more' });
  });

  test('and the next program is scanned all the same, also after a refusal or nonsense', async () => {
    const replies = [
      body.slice(0, -20),
      '{"jsonrpc":"2.0","error":{"code":-32010,"message":"no"},"id":1}',
      '[]',
      '{"jsonrpc":',
      body,
    ];
    const { scans } = await scan((exchange) => exchange.send(plain(replies.shift() ?? '')), {
      calls: 5,
      programs: [PROGRAM, PROGRAM],
      sha256: true,
    });
    expect(scans.map(({ sha256 }) => sha256 !== undefined)).toEqual([false, false, false, false, true]);
    expect(scans.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
      'cut it ended as if whole, but the JSON is not complete',
      'refused -32010 no',
      'wrong the answer is no object',
      'cut it ended as if whole, but the JSON is not complete',
      'complete ',
    ]);
  });
});

test('a scan that is refused for now holds the next one back, unless that is to be ignored', async () => {
  const refusal = 'HTTP/1.1 429 Too Many\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n';
  const script: RawScript = (exchange) => exchange.send(exchange.nth === 1 ? refusal : plain(bodyOf()));
  const honoured = await scan(script, { calls: 2 });
  expect(honoured.scans.map(({ outcome, reason }) => `${outcome} ${reason}`)).toEqual([
    'refused HTTP 429',
    'complete ',
  ]);
  expect(honoured.seconds).toBeGreaterThanOrEqual(1);
  expect((await scan(script, { calls: 2, honoursRetryAfter: false })).seconds).toBeLessThan(1);
});

test('a scan of an endpoint that is not there is refused, and after it there is a pause', async () => {
  const { scans } = await scan((exchange) => exchange.reset(), { calls: undefined, seconds: 0.3 });
  expect(scans[0]).toMatchObject({ outcome: 'refused', reason: expect.stringContaining('no answer') });
  expect(scans.length).toBeWithin(1, 40);
});

test('a scan that is stopped is stopped', async () => {
  const stop = new AbortController();
  const script: RawScript = (exchange) => void exchange.send(CHUNKED + chunk('{')).then(() => stop.abort());
  expect((await scan(script, {}, stop.signal)).scans[0]?.outcome).toBe('stopped');
});

describe('lines', () => {
  const line = `${JSON.stringify(account())}\n`;
  const two = `${line}${JSON.stringify(account())}\n`;
  const lines =
    (text: string): RawScript =>
    (exchange) =>
      exchange.send(
        `HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      );

  test('with the closing one are complete, and what has no lines is a refusal', async () => {
    const { scans } = await scan(lines(`${two}{"accounts":2,"slot":9}\n`), { ndjson: true });
    expect(scans[0]).toMatchObject({ outcome: 'complete', accounts: 2, slot: 9 });
    const without = await scan(answer(bodyOf(account())), { ndjson: true });
    expect(without.scans[0]).toMatchObject({ outcome: 'refused', reason: 'it has no NDJSON' });
  });

  const counted = `${line}{"accounts":2,"slot":9}\n`;
  const [unslotted, beyond] = [counted.replace('2,"slot":9', '1,"slot":"9"'), `{"accounts":0,"slot":null}\n`];
  test.each([
    ['without the closing one', two, `cut ${early('the closing line is missing')}`],
    ['that count another number', counted, `cut ${early('the closing line counts 2 accounts')}`],
    ['whose last one has no end', two.trim(), `cut ${early('the last line has no end')}`],
    ['with a slot as text', unslotted, `cut ${early('the slot of the closing line is no number')}`],
    ['with an account twice', line + counted, 'wrong of 1 accounts, it came before'],
    ['that go on behind it', beyond + line, 'wrong a line follows the closing one'],
  ])('%s are not', async (_, text, expected) => {
    const [{ outcome, reason } = {}] = (await scan(lines(text), { ndjson: true })).scans;
    expect(`${outcome} ${reason}`).toBe(expected);
  });
});

test('an address is what kit takes for one', () => {
  const bytes = (fill: number, zeros: number) =>
    Uint8Array.from({ length: 32 }, (_, i) => (i < zeros ? 0 : fill));
  const addresses = [0, 1, 5, 31, 32].flatMap((zeros) =>
    [1, 127, 255].map((fill) => getAddressDecoder().decode(bytes(fill, zeros))),
  );
  const others = addresses.flatMap((each) => [
    `1${each}`,
    each.slice(1),
    `${each}z`,
    each.replace(/.$/, '0'),
    each.replace(/^./, 'z'),
  ]);
  for (const text of [...addresses, ...others, 'z'.repeat(44), '1'.repeat(33), '']) {
    expect([text, isAddress(text)]).toEqual([text, isKitAddress(text)]);
  }
});
