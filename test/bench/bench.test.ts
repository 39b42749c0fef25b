import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Connection, Keypair, LAMPORTS_PER_SOL } from '@solana/web3.js';
import type { Result } from '../../bench/result.ts';
import { framed as plain, type RawExchange, refusedUrl, startRawBackend } from '../fakes/raw-backend.ts';
import { startBrowser } from '../started/browser.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { childEnv, ROOT } from '../started/process.ts';
import { startStack, until } from '../started/stack.ts';

const LOADERS = 'BPFLoaderUpgradeab1e11111111111111111111111';
const TLS = join(ROOT, 'test/fixtures/tls');

let service: Awaited<ReturnType<typeof startStack>>;
let key: string;
let folder: ReturnType<typeof temporaryFolder>;
/** The gateway with a key, as options. */
let gateway: string;
beforeAll(async () => {
  service = await startStack();
  key = service.key('scale');
  folder = temporaryFolder();
  gateway = `--url ${service.url.href} --key ${key}`;
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const commandOf = (words: string) => [process.execPath, join(ROOT, 'bench/main.ts'), ...words.split(' ')];

/** Runs the bench as its users do, with words that have no blanks inside. */
async function bench(words: string, env: Record<string, string> = {}) {
  const child = Bun.spawn(commandOf(words), {
    cwd: folder.path,
    env: childEnv(env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { out, err, code };
}

/** Runs a command against the gateway; gives what `--json` says. */
async function measured(words: string): Promise<Result> {
  const { out, err, code } = await bench(`${words} ${gateway} --json -`);
  expect({ err, code }).toEqual({ err: '', code: 0 });
  return JSON.parse(out);
}

/** Runs a command on a terminal of its own; `onText` gets all that it has shown so far. */
function onTerminal(words: string, onText: (shown: string) => void, cols = 120) {
  let shown = '';
  const data = (_: unknown, bytes: Uint8Array) => onText((shown += Buffer.from(bytes).toString()));
  return Bun.spawn(commandOf(words), {
    cwd: folder.path,
    env: childEnv(),
    terminal: { cols, rows: 24, data },
  });
}

const figure = ({ figures }: Result, name: string) => figures.find((each) => each.name === name)?.value;
const inFolder = (name: string) => join(folder.path, name);

describe('against a gateway in front of the embedded chain', () => {
  test('calls are counted and timed', async () => {
    const result = await measured('calls --calls 200 --warm-up 0 --connections 2 --rate 100');
    expect(result).toMatchObject({ command: 'calls', stopped: false, failures: [] });
    expect(result.outcomes).toEqual({ '200 result': 200 });
    expect(result.timings[0]).toMatchObject({ name: 'answer', count: 200 });
    expect(result.seconds).toBeGreaterThanOrEqual(1.9);
    expect(figure(result, 'due and never sent')).toBe(0);
    expect(result.run.reduce((sum, { answers }) => sum + answers, 0)).toBe(200);
  });

  test('every call of a batch has its outcome', async () => {
    const call = '--method getBalance --params ["$address"]';
    const result = await measured(`batch --size 7 --calls 20 --warm-up 0 --connections 1 ${call}`);
    expect(result.outcomes).toEqual({ '200 result': 140 });
    expect(result.timings[0]?.count).toBe(20);
  });

  test('the mix of production is made of what the endpoint has', async () => {
    const result = await measured('mixed --calls 40 --warm-up 0 --connections 2');
    expect(result.outcomes).toEqual({ '200 result': 40 });
    expect(result.timings.map(({ name }) => name)).toContain('up to 1 KB');
    expect(result.notes.join()).toContain('200-500 MB');
  });

  test('a mix can come from a file', async () => {
    const lines = ['{"method":"getSlot"}', '{"method":"getHealth","weight":2}', '{"method":"getNothing"}'];
    writeFileSync(inFolder('calls.ndjson'), lines.join('\n'));
    const result = await measured('mixed --file calls.ndjson --calls 100 --warm-up 0 --connections 2');
    expect(Object.keys(result.outcomes).toSorted()).toEqual(['200 -32601', '200 result']);
    const names = result.timings.map(({ name }) => name);
    expect(names).toEqual(['answer', 'getSlot', 'getHealth', 'getNothing']);
    const { err, code } = await bench(`mixed ${gateway} --calls 1 --file none.ndjson`);
    expect([err, code]).toEqual(['--file: none.ndjson cannot be read.\n', 2]);
  });

  test('a mix says when the limit of scans of a plan is what refuses', async () => {
    let calls = 0;
    using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const { id } = Object(await request.json());
        const message = 'Rate limit exceeded: at most 2 scans at once';
        if (calls++ % 4 === 0)
          return Response.json({ jsonrpc: '2.0', error: { code: -429, message }, id }, { status: 429 });
        return Response.json({ jsonrpc: '2.0', result: [], id });
      },
    });
    writeFileSync(inFolder('scans.ndjson'), '{"method":"getProgramAccounts","params":[]}');
    const run = `--url ${server.url.href} --file scans.ndjson --calls 20 --warm-up 0 --connections 1 --json -`;
    const { outcomes, notes }: Result = JSON.parse((await bench(`mixed ${run}`)).out);
    expect(outcomes).toEqual({ '200 result': 15, '429 -429, at most 2 scans at once': 5 });
    expect(notes).toContain(
      'The plan of this key allows 2 scans at once, and 5 calls were refused for that alone: use --connections 2, or a plan with more scans.',
    );
  });

  test('a scan reads JSON and lines alike, account by account', async () => {
    const scan = `scan --programs ${LOADERS} --slice 0:45 --calls 1`;
    const [json] = (await measured(`${scan} --sha256`)).scans ?? [];
    const [lines] = (await measured(`${scan} --ndjson`)).scans ?? [];
    expect(json).toMatchObject({ outcome: 'complete', wrongAccounts: 0 });
    expect(json?.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(json?.accounts).toBeGreaterThan(200);
    expect(lines).toMatchObject({ outcome: 'complete', accounts: json?.accounts ?? 0 });
  });

  test('transfers that are funded by an airdrop reach each commitment', async () => {
    const result = await measured('confirm --calls 6 --connections 3 --poll 100');
    expect(result.outcomes).toEqual({ finalized: 6 });
    const counts = result.timings.map(({ name, count }) => `${name} ${count}`);
    expect(counts).toEqual(['finalized 6', 'accepted 6', 'processed 6', 'confirmed 6']);
  });

  test('transfers are paid by a keypair of solana-keygen', async () => {
    const { publicKey, secretKey } = Keypair.generate();
    writeFileSync(inFolder('payer.json'), JSON.stringify([...secretKey]));
    const chain = new Connection(service.chainUrl.href, 'confirmed');
    await chain.requestAirdrop(publicKey, LAMPORTS_PER_SOL);
    await until(async () => (await chain.getBalance(publicKey)) > 0);
    const result = await measured('confirm --keypair payer.json --calls 2 --until confirmed --poll 100');
    expect(result.outcomes).toEqual({ confirmed: 2 });
    const { err, code } = await bench(`confirm ${gateway} --calls 1 --keypair none.json`);
    expect([err, code]).toEqual(['--keypair: none.json is no keypair of solana-keygen.\n', 2]);
  });

  test('a rate that is exceeded shows in the outcomes, and Retry-After is honoured or not', async () => {
    const url = `${service.url.href}?api-key=${service.key('slow')}`;
    const words = `calls --url ${url} --calls 4 --warm-up 0 --connections 1 --json -`;
    const honoured: Result = JSON.parse((await bench(words)).out);
    expect(honoured.outcomes).toEqual({ '200 result': 2, '429 -429': 2 });
    expect(figure(honoured, 'held back for it')).toBeGreaterThan(0.9);
    const ignored: Result = JSON.parse((await bench(`${words} --ignore-retry-after`)).out);
    expect(ignored.outcomes['429 -429']).toBeGreaterThanOrEqual(3);
    expect(figure(ignored, 'held back for it')).toBe(0);
  });

  test('no key stands in any form of a result, nor in what is printed', async () => {
    const bound = '--calls 5 --warm-up 0';
    const files = '--json a.json --csv a.csv --html a.html';
    const inUrl = await bench(`calls --url ${service.url.href}?api-key=${key} ${bound} ${files}`);
    const inHeader = await bench(`calls ${gateway} --key-as Authorization ${bound}`);
    expect([inUrl.code, inHeader.code]).toEqual([0, 0]);
    expect(inUrl.out).toContain(`calls ${service.url.origin}?…`);
    const written = ['a.json', 'a.csv', 'a.html'].map((name) => readFileSync(inFolder(name), 'utf8'));
    for (const text of [inUrl.out, inUrl.err, inHeader.out, inHeader.err, ...written])
      expect(text).not.toContain(key);
  });
});

describe('on a terminal', () => {
  /** What a run shows on a terminal so wide. */
  async function shownOn(words: string, cols: number): Promise<string> {
    let shown = '';
    expect(await onTerminal(words, (text) => (shown = text), cols).exited).toBe(0);
    return shown;
  }

  test('a line says how it goes: rate, times, failures by kind and time left, also where no width is known', async () => {
    const slow = `--url ${service.url.href} --key ${service.key('slow')} --ignore-retry-after`;
    const words = `calls ${slow} --seconds 3 --rate 20 --warm-up 0`;
    const shown = await shownOn(words, 120);
    const lines = shown.split('\r').filter((line) => line.includes(' left'));
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.at(-1)).toMatch(
      /\d s · \d+ requests\/s · p50 [\d.]+ ms, p99 [\d.]+ ms · 429 -429: \d+ · \d s left/,
    );
    const unknown = (await shownOn(words, 0)).split('\r');
    expect(unknown).toContainEqual(expect.stringMatching(/requests\/s .* s left$/));
  });

  test('Ctrl-C gives the results so far and code 130', async () => {
    const isUnderWay = Promise.withResolvers<void>();
    let shown = '';
    const child = onTerminal(
      `calls ${gateway} --seconds 300 --warm-up 0 --rate 50 --json cut.json`,
      (text) => {
        shown = text;
        if (shown.includes('requests/s')) isUnderWay.resolve();
      },
    );
    await isUnderWay.promise;
    child.kill('SIGINT');
    expect(await child.exited).toBe(130);
    expect(shown).toContain('stopped before its end');
    const result: Result = JSON.parse(readFileSync(inFolder('cut.json'), 'utf8'));
    expect(result.stopped).toBe(true);
    expect(result.outcomes['200 result']).toBeGreaterThan(0);
  });
});

describe('a run fails', () => {
  test('where nothing listens, and says so by its kind', async () => {
    const url = `--url ${refusedUrl()}`;
    const calls = await bench(`calls ${url} --calls 2 --warm-up 0 --connections 1`);
    expect([calls.code, calls.err]).toEqual([1, '']);
    expect(calls.out).toContain('no connection: ECONNREFUSED');
    expect(calls.out).toContain('FAILED: No request was answered by a result.');
    const scan = await bench(`scan ${url} --calls 1 --programs ${LOADERS}`);
    expect([scan.code, scan.out.includes('refused: no answer')]).toEqual([1, true]);
    const mixed = await bench(`mixed ${url} --calls 1`);
    expect([mixed.code, mixed.err.includes('whose scan was refused: no answer')]).toEqual([1, true]);
    const confirm = await bench(`confirm ${url} --calls 1`);
    expect([confirm.code, confirm.out.includes('FAILED: no airdrop')]).toEqual([1, true]);
  });

  test('where answers come late, break off or are of other calls, each by its kind', async () => {
    const answers = [
      () => undefined,
      (exchange: RawExchange) => exchange.reset(),
      (exchange: RawExchange) => exchange.send(plain('{"jsonrpc":"2.0","result":1,"id":99}')),
      (exchange: RawExchange) => exchange.send('nonsense\r\n\r\n'),
      (exchange: RawExchange) => exchange.send(plain('{"jsonrpc":"2.0","result":1,"id":4}')),
    ];
    using backend = startRawBackend((exchange) => answers.shift()?.(exchange));
    const run = '--calls 5 --warm-up 0 --connections 1 --timeout 0.3 --json -';
    const { outcomes }: Result = JSON.parse((await bench(`calls --url ${backend.url} ${run}`)).out);
    expect(Object.keys(outcomes).toSorted()).toEqual([
      '200 result',
      '200, the id of another call',
      'connection closed',
      'no answer in time',
      'not HTTP: its status line is not HTTP/1',
    ]);
  });

  test.each([
    [true, '200 result'],
    [false, 'its certificate or TLS was refused'],
  ])('over TLS where the authority is not known; known: %p', async (isKnown, outcome) => {
    using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      tls: { cert: Bun.file(join(TLS, 'localhost.pem')), key: Bun.file(join(TLS, 'localhost-key.pem')) },
      fetch: async (request) =>
        Response.json({ jsonrpc: '2.0', result: 1, id: JSON.parse(await request.text()).id }),
    });
    const env = isKnown ? { NODE_EXTRA_CA_CERTS: join(TLS, 'ca.pem') } : {};
    const { out } = await bench(
      `calls --url https://localhost:${server.port}/ --calls 5 --warm-up 0 --json -`,
      env,
    );
    const { outcomes }: Result = JSON.parse(out);
    expect(outcomes).toEqual({ [outcome]: 5 });
  });

  test('under a key that the endpoint does not take, after the first hundred answers', async () => {
    const { code, out } = await bench(`calls --url ${service.url.href} --key none --seconds 60`);
    expect(code).toBe(1);
    expect(out).toContain('FAILED: Ended early: the first 100 answers were all HTTP 401, 402 or 403.');
  });

  test('by a mistake and by a file that cannot be written with code 2, before anything is sent', async () => {
    const { code, err, out } = await bench('calls --rate x --json none.json');
    expect([code, out, existsSync(inFolder('none.json'))]).toEqual([2, '', false]);
    expect(err.split('\n')).toContain('--rate is a number from 0.001 to 1000000, not "x".');
    expect(err).toEndWith('See: bun run bench calls --help\n');
    const unwritten = await bench(`calls ${gateway} --calls 1 --warm-up 0 --json no/such/folder.json`);
    const sentence = expect.stringMatching(/^no\/such\/folder\.json cannot be written/);
    expect(unwritten).toEqual({ code: 2, err: sentence, out: '' });
  });
});

test('two results are compared, and two that are unlike are not', async () => {
  const result = await measured('calls --calls 20 --warm-up 0');
  const settings = { ...result.settings, connections: 3, timeout: '3 s' };
  for (const [i, each] of [result, result, { ...result, settings }].entries())
    writeFileSync(inFolder(`${i + 1}.json`), JSON.stringify(each));
  const alike = await bench('--compare 1.json 2.json');
  expect([alike.code, alike.err]).toEqual([0, '']);
  expect(alike.out).toMatch(/answered, requests\/s +[\d.,]+ +[\d.,]+ +x\d/);
  const unlike = await bench('--compare 1.json 3.json');
  const err = 'These two cannot be compared.\nconnections: 16 in A, 3 in B.\ntimeout: 30 s in A, 3 s in B.\n';
  expect(unlike).toEqual({ code: 1, out: '', err });
  expect((await bench('--compare 1.json none.json')).code).toBe(2);
});

test('the page draws its charts in light and in dark, and asks for nothing', async () => {
  await bench(`calls ${gateway} --seconds 2 --rate 50 --warm-up 0 --html page.html`);
  const html = readFileSync(inFolder('page.html'), 'utf8');
  const asked: string[] = [];
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      asked.push(new URL(request.url).pathname);
      return new Response(html, { headers: { 'content-type': 'text/html' } });
    },
  });
  await using browser = await startBrowser();
  for (const theme of ['light', 'dark'] as const) {
    await using seen = await browser.open({ origin: server.url.href, theme, width: 400 });
    await seen.page.goto('/');
    await seen.page.waitForSelector('#histogram canvas');
    expect(await seen.page.locator('canvas').count()).toBe(3);
    expect(await seen.page.evaluate('document.documentElement.scrollWidth')).toBe(400);
    expect(seen.faults).toEqual([]);
  }
  expect(asked).toEqual(['/', '/']);
});
