import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createKeyPairFromBytes, getAddressFromPublicKey } from '@solana/kit';
import type { Result } from '../../bench/result.ts';
import { plain, refusedUrl, startRawBackend } from '../fakes/raw-backend.ts';
import { startBrowser } from '../started/browser.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { childEnv, ROOT } from '../started/process.ts';
import { startStack, until } from '../started/stack.ts';

const LOADERS = 'BPFLoaderUpgradeab1e11111111111111111111111';

let service: Awaited<ReturnType<typeof startStack>>;
let key: string;
let folder: ReturnType<typeof temporaryFolder>;
beforeAll(async () => {
  service = await startStack();
  key = service.key('scale');
  folder = temporaryFolder();
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function start(...argv: string[]) {
  return Bun.spawn([process.execPath, join(ROOT, 'bench/main.ts'), ...argv], {
    cwd: folder.path,
    env: childEnv(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
}

/** Runs the bench as its users do. */
async function bench(...argv: string[]) {
  const child = start(...argv);
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { out, err, code };
}

/** Runs a command against the gateway; gives what `--json` says. */
async function measured(command: string, ...argv: string[]): Promise<Result> {
  const { out, err, code } = await bench(
    command,
    '--url',
    service.url.href,
    '--key',
    key,
    '--json',
    '-',
    ...argv,
  );
  expect({ err, code }).toEqual({ err: '', code: 0 });
  return JSON.parse(out);
}

const figure = ({ figures }: Result, name: string) => figures.find((each) => each.name === name)?.value;

describe('against a gateway in front of the embedded chain', () => {
  test('calls are counted and timed', async () => {
    const result = await measured(
      'calls',
      '--calls',
      '200',
      '--warm-up',
      '0',
      '--connections',
      '2',
      '--rate',
      '100',
    );
    expect(result).toMatchObject({
      command: 'calls',
      stopped: false,
      outcomes: { '200 result': 200 },
      failures: [],
    });
    expect(result.timings[0]).toMatchObject({ name: 'answer', count: 200 });
    expect(result.seconds).toBeGreaterThanOrEqual(1.9);
    expect(figure(result, 'due and never sent')).toBe(0);
    expect(result.run.reduce((sum, { answers }) => sum + answers, 0)).toBe(200);
  });

  test('every call of a batch has its outcome', async () => {
    const params = ['--method', 'getBalance', '--params', '["$address"]'];
    const result = await measured(
      'batch',
      '--size',
      '7',
      '--calls',
      '20',
      '--warm-up',
      '0',
      '--connections',
      '1',
      ...params,
    );
    expect(result.outcomes).toEqual({ '200 result': 140 });
    expect(result.timings[0]?.count).toBe(20);
  });

  test('the mix of production is made of what the endpoint has', async () => {
    const result = await measured('mixed', '--calls', '40', '--warm-up', '0', '--connections', '2');
    expect(result.outcomes).toEqual({ '200 result': 40 });
    expect(result.timings.map(({ name }) => name)).toContain('up to 1 KB');
    expect(result.notes.join()).toContain('200-500 MB');
  });

  test('a mix can come from a file', async () => {
    writeFileSync(
      join(folder.path, 'calls.ndjson'),
      '{"method":"getSlot"}\n{"method":"getHealth","weight":2}\n{"method":"getNothing"}\n',
    );
    const result = await measured(
      'mixed',
      '--file',
      'calls.ndjson',
      '--calls',
      '100',
      '--warm-up',
      '0',
      '--connections',
      '2',
    );
    expect(Object.keys(result.outcomes).toSorted()).toEqual(['200 -32601', '200 result']);
    expect(result.timings.map(({ name }) => name)).toEqual(['answer', 'getSlot', 'getHealth', 'getNothing']);
  });

  test('a scan reads JSON and lines alike, account by account', async () => {
    const scan = ['--programs', LOADERS, '--slice', '0:45', '--calls', '1'];
    const json = await measured('scan', ...scan, '--sha256');
    const lines = await measured('scan', ...scan, '--ndjson');
    expect(json.scans?.[0]).toMatchObject({
      outcome: 'complete',
      wrongAccounts: 0,
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(json.scans?.[0]?.accounts).toBeGreaterThan(200);
    expect(lines.scans?.[0]).toMatchObject({ outcome: 'complete', accounts: json.scans?.[0]?.accounts ?? 0 });
  });

  test('transfers that are funded by an airdrop reach each commitment', async () => {
    const result = await measured('confirm', '--calls', '6', '--connections', '3', '--poll', '100');
    expect(result.outcomes).toEqual({ finalized: 6 });
    expect(result.timings.map(({ name, count }) => [name, count])).toEqual([
      ['finalized', 6],
      ['accepted', 6],
      ['processed', 6],
      ['confirmed', 6],
    ]);
  });

  test('transfers are paid by a keypair of solana-keygen', async () => {
    const secret = crypto.getRandomValues(new Uint8Array(32));
    const pkcs8 = Uint8Array.from([...Buffer.from('302e020100300506032b657004220420', 'hex'), ...secret]);
    const made = await crypto.subtle.importKey('pkcs8', pkcs8, 'Ed25519', true, ['sign']);
    const { x = '' } = await crypto.subtle.exportKey('jwk', made);
    const bytes = Uint8Array.from([...secret, ...Buffer.from(x, 'base64url')]);
    writeFileSync(join(folder.path, 'payer.json'), JSON.stringify([...bytes]));
    const payer = await getAddressFromPublicKey((await createKeyPairFromBytes(bytes)).publicKey);
    const call = (method: string, params: unknown[]) =>
      fetch(service.chainUrl, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }).then(async (response) => JSON.parse(await response.text()));
    await call('requestAirdrop', [payer, 1_000_000_000]);
    await until(
      async () => (await call('getBalance', [payer, { commitment: 'confirmed' }])).result.value > 0,
    );
    const run = ['--calls', '2', '--until', 'confirmed', '--poll', '100'];
    const result = await measured('confirm', '--keypair', 'payer.json', ...run);
    expect(result.outcomes).toEqual({ confirmed: 2 });
    expect(
      (await bench('confirm', '--url', service.url.href, '--calls', '1', '--keypair', 'none.json')).err,
    ).toBe('--keypair: none.json is no keypair of solana-keygen.\n');
  });

  test('a rate that is exceeded shows in the outcomes, and Retry-After is honoured or not', async () => {
    const slow = service.key('slow');
    const argv = [
      'calls',
      '--url',
      `${service.url.href}?api-key=${slow}`,
      '--calls',
      '4',
      '--warm-up',
      '0',
      '--connections',
      '1',
      '--json',
      '-',
    ];
    const honoured: Result = JSON.parse((await bench(...argv)).out);
    expect(honoured.outcomes).toEqual({ '200 result': 2, '429 -429': 2 });
    expect(figure(honoured, 'held back for it')).toBeGreaterThan(0.9);
    const ignored: Result = JSON.parse((await bench(...argv, '--ignore-retry-after')).out);
    expect(ignored.outcomes['429 -429']).toBeGreaterThanOrEqual(3);
    expect(figure(ignored, 'held back for it')).toBe(0);
  });

  test('no key stands in any form of a result, nor in what is printed', async () => {
    const files = ['a.json', 'a.csv', 'a.html'];
    const outputs = files.flatMap((file) => [`--${file.slice(2)}`, file]);
    const bound = ['--calls', '5', '--warm-up', '0'];
    const inUrl = await bench('calls', '--url', `${service.url.href}?api-key=${key}`, ...bound, ...outputs);
    const inHeader = await bench(
      'calls',
      '--url',
      service.url.href,
      '--key',
      key,
      '--key-as',
      'Authorization',
      ...bound,
    );
    expect([inUrl.code, inHeader.code]).toEqual([0, 0]);
    expect(inUrl.out).toContain(`calls ${service.url.origin}?…`);
    const texts = [
      inUrl.out,
      inUrl.err,
      inHeader.out,
      inHeader.err,
      ...files.map((file) => readFileSync(join(folder.path, file), 'utf8')),
    ];
    for (const text of texts) expect(text).not.toContain(key);
  });
});

test('a terminal is told how it goes: rate, times, failures by kind and time left', async () => {
  let shown = '';
  const terminal = {
    cols: 120,
    rows: 24,
    data: (_: unknown, bytes: Uint8Array) => void (shown += Buffer.from(bytes).toString()),
  };
  const run = [
    'calls',
    '--url',
    service.url.href,
    '--key',
    service.key('slow'),
    '--seconds',
    '3',
    '--rate',
    '20',
    '--warm-up',
    '0',
  ];
  const child = Bun.spawn([process.execPath, join(ROOT, 'bench/main.ts'), ...run, '--ignore-retry-after'], {
    cwd: folder.path,
    env: childEnv(),
    terminal,
  });
  expect(await child.exited).toBe(0);
  const lines = shown.split('\r').filter((line) => line.includes(' left'));
  expect(lines.length).toBeGreaterThan(1);
  expect(lines.at(-1)).toMatch(
    /\d s · \d+ requests\/s · p50 [\d.]+ ms, p99 [\d.]+ ms · 429 -429: \d+ · \d s left/,
  );
});

describe('the end of a run', () => {
  test('Ctrl-C gives the results so far and code 130', async () => {
    const child = start(
      'calls',
      '--url',
      service.url.href,
      '--key',
      key,
      '--seconds',
      '300',
      '--warm-up',
      '0',
      '--rate',
      '50',
      '--json',
      'cut.json',
    );
    await Bun.sleep(1_500); // what is stopped must have begun: nothing tells so from outside when there is no terminal
    child.kill('SIGINT');
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect({ err, code }).toEqual({ err: '', code: 130 });
    expect(out).toContain('stopped before its end');
    const result: Result = JSON.parse(readFileSync(join(folder.path, 'cut.json'), 'utf8'));
    expect(result.stopped).toBe(true);
    expect(result.outcomes['200 result']).toBeGreaterThan(0);
  });

  test('an endpoint that is not there is a failure, by its kind', async () => {
    const url = refusedUrl();
    const { out, code } = await bench(
      'calls',
      '--url',
      url,
      '--calls',
      '2',
      '--warm-up',
      '0',
      '--connections',
      '1',
    );
    expect(code).toBe(1);
    expect(out).toContain('no connection: ECONNREFUSED');
    expect(out).toContain('FAILED: No request was answered by a result.');
    const scan = await bench('scan', '--url', url, '--calls', '1', '--programs', LOADERS);
    expect([scan.code, scan.out.includes('refused: no answer')]).toEqual([1, true]);
    const confirm = await bench('confirm', '--url', url, '--calls', '1');
    expect([confirm.code, confirm.out.includes('FAILED: no airdrop')]).toEqual([1, true]);
  });

  test('answers that come late, break off or are another call’s have kinds of their own', async () => {
    const answers = [
      () => undefined,
      (exchange: { reset(): void }) => exchange.reset(),
      (exchange: { send(text: string): unknown }) =>
        exchange.send(plain('{"jsonrpc":"2.0","result":1,"id":99}')),
      (exchange: { send(text: string): unknown }) => exchange.send('nonsense\r\n\r\n'),
      (exchange: { send(text: string): unknown }) =>
        exchange.send(plain('{"jsonrpc":"2.0","result":1,"id":4}')),
    ];
    using backend = startRawBackend((exchange) => answers.shift()?.(exchange));
    const argv = ['--calls', '5', '--warm-up', '0', '--connections', '1', '--timeout', '0.3', '--json', '-'];
    const { out } = await bench('calls', '--url', backend.url, ...argv);
    const { outcomes }: Result = JSON.parse(out);
    expect(Object.keys(outcomes).toSorted()).toEqual([
      '200 result',
      '200, the id of another call',
      'connection closed',
      'no answer in time',
      'not HTTP: its status line is not HTTP/1',
    ]);
  });

  test('a mistake is code 2, and starts nothing', async () => {
    const { code, err, out } = await bench('calls', '--rate', 'x', '--json', 'none.json');
    expect([code, out, existsSync(join(folder.path, 'none.json'))]).toEqual([2, '', false]);
    expect(err.split('\n')).toContain('--rate is a number from 0.001 to 1000000, not "x".');
    expect(err).toEndWith('See: bun run bench calls --help\n');
  });

  test('a file that cannot be written is said, after the results', async () => {
    const argv = ['--calls', '1', '--warm-up', '0', '--json', 'no/such/folder.json'];
    const { code, err, out } = await bench('calls', '--url', service.url.href, '--key', key, ...argv);
    expect([code, err.startsWith('no/such/folder.json cannot be written')]).toEqual([1, true]);
    expect(out).toContain('200 result');
  });
});

test('two results are compared, and two that are unlike are not', async () => {
  const run = (file: string, ...more: string[]) =>
    bench(
      'calls',
      '--url',
      service.url.href,
      '--key',
      key,
      '--calls',
      '20',
      '--warm-up',
      '0',
      '--json',
      file,
      ...more,
    );
  await run('1.json');
  await run('2.json');
  await run('3.json', '--connections', '3');
  const alike = await bench('--compare', '1.json', '2.json');
  expect([alike.code, alike.err]).toEqual([0, '']);
  expect(alike.out).toMatch(/answered, requests\/s +[\d.,]+ +[\d.,]+ +x\d/);
  const unlike = await bench('--compare', '1.json', '3.json');
  expect(unlike).toEqual({
    code: 1,
    out: '',
    err: 'These two cannot be compared.\nconnections: 16 in A, 3 in B.\n',
  });
  expect((await bench('--compare', '1.json', 'calls.ndjson')).code).toBe(2);
});

test.each(['light', 'dark'] as const)(
  'the page draws its charts in a %s browser, and asks for nothing',
  async (theme) => {
    const run = ['--seconds', '3', '--rate', '50', '--warm-up', '0', '--html', `${theme}.html`];
    await bench('calls', '--url', service.url.href, '--key', key, ...run);
    const html = readFileSync(join(folder.path, `${theme}.html`), 'utf8');
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
    await using seen = await browser.open({ origin: server.url.href, theme, width: 400 });
    await seen.page.goto('/');
    await seen.page.waitForSelector('#histogram canvas');
    expect(await seen.page.locator('canvas').count()).toBe(3);
    expect(await seen.page.evaluate('document.documentElement.scrollWidth')).toBe(400);
    expect([asked, seen.faults]).toEqual([['/'], []]);
  },
);
