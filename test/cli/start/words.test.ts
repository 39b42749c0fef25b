import { describe, expect, test } from 'bun:test';
import { endMsOf } from '../../../cli/commands/start.ts';
import { createLines } from '../../../cli/lines.ts';
import { bannerOf, recordOf } from '../../../cli/start/banner.ts';
import { readyUrl } from '../../../cli/start/ready-line.ts';
import { createStopWishes } from '../../../cli/start/stop-wishes.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

describe('lines', () => {
  const linesOf = (...chunks: Uint8Array[]) => {
    const lines: string[] = [];
    const feed = createLines((line) => lines.push(line));
    for (const chunk of chunks) feed(chunk);
    return lines;
  };
  const bytes = (text: string) => new TextEncoder().encode(text);

  test('are put together from chunks cut anywhere, inside a character too', () => {
    const whole = bytes('erste Zeile\nzwei ü\n\nrest');
    for (let cut = 0; cut <= whole.length; cut++) {
      expect(linesOf(whole.slice(0, cut), whole.slice(cut))).toEqual(['erste Zeile', 'zwei ü', '']);
    }
  });
  test('are bounded: a line without an end is cut and never grows', () => {
    const lines = linesOf(...Array.from({ length: 10 }, () => bytes('x'.repeat(5_000))), bytes('\nnext\n'));
    expect(lines.map((line) => line.length)).toEqual([8_192, 4]);
  });
});

test('an app has the time to end a delivery under way, and the gateway its drain, however short or long that is', () => {
  const DELIVERY_MS = 10_500 + 5_000;
  expect(endMsOf(1_000)).toBeGreaterThan(DELIVERY_MS);
  expect(endMsOf(3_600_000)).toBeGreaterThan(3_600_000);
});

describe('a ready line', () => {
  test('gives the address of the app that wrote it', () => {
    expect(readyUrl('{"ready":"gateway","url":"http://127.0.0.1:1/"}', 'gateway')).toBe(
      'http://127.0.0.1:1/',
    );
  });
  test.each([
    '{"ready":"deploys","url":"http://127.0.0.1:1/"}',
    '{"ready":"gateway","url":7}',
    '{"ready":"gateway","url":"nowhere"}',
    '{"ready":"gateway"}',
    '{"level":30,"msg":"is \\"ready\\""}',
    '{"ready"',
    'gateway is "ready"',
    '',
  ])('is not %s', (line) => expect(readyUrl(line, 'gateway')).toBeUndefined());
});

describe('the first screen', () => {
  const running = {
    gatewayUrl: 'http://0.0.0.0:8899',
    consoleUrl: 'http://[::]:8910',
    demoKey: 'sluice_K',
    login: { kind: 'login', url: 'http://127.0.0.1:8910/login' } as const,
    dataDir: './data',
  };
  test('names addresses that can be reached from this machine', () => {
    const banner = bannerOf(running);
    expect(banner).toContain('  Gateway        http://127.0.0.1:8899/\n');
    expect(banner).toContain('  Console        http://[::1]:8910/ ');
    expect(banner).toContain('  Demo key       sluice_K\n');
  });
  test('has the lines to paste at the start of a line, each whole', () => {
    const lines = bannerOf(running)
      .split('\n')
      .filter((line) => line.startsWith('curl'));
    expect(lines).toEqual([
      `curl -s 'http://127.0.0.1:8899/?api-key=sluice_K' -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'`,
      `curl -s 'http://[::1]:8910/api/v1/program-deploys/programs?api-key=sluice_K'`,
    ]);
    expect(recordOf(running)).toEqual({
      gateway: 'http://127.0.0.1:8899/',
      console: 'http://[::1]:8910/',
      login: 'http://127.0.0.1:8910/login',
      demo_key: 'sluice_K',
      try: lines,
    });
  });
  test('without a demo key says how to make one', () => {
    const banner = bannerOf({ ...running, demoKey: undefined });
    expect(banner).toContain('bun run sluice key create NAME');
    expect(banner).not.toContain('curl');
    expect(recordOf({ ...running, demoKey: undefined })).toEqual({
      gateway: 'http://127.0.0.1:8899/',
      console: 'http://[::1]:8910/',
      login: 'http://127.0.0.1:8910/login',
    });
  });
  test('has the link of the first operator on a line of its own, and says why there is no login', () => {
    const url = 'http://127.0.0.1:8910/first-operator?token=t';
    const invited = {
      ...running,
      login: { kind: 'first-operator', link: { kind: 'terminal', url } } as const,
    };
    expect(bannerOf(invited).split('\n')).toContain(url);
    expect(recordOf(invited)).toMatchObject({ first_operator: url });
    const filed = {
      ...running,
      login: { kind: 'first-operator', link: { kind: 'file', path: '/data/link' } } as const,
    };
    expect(bannerOf(filed).split('\n')).toContain('/data/link');
    expect(recordOf(filed)).toMatchObject({ first_operator_file: '/data/link' });
    const off = { ...running, login: { kind: 'off', sentence: 'The console is off.' } as const };
    expect(bannerOf(off)).toContain('  Login          The console is off.\n');
    expect(recordOf(off)).not.toHaveProperty('login');
  });
});

describe('wishes to stop', () => {
  const state = async (promise: Promise<void>) => {
    const waiting = Symbol('waiting');
    return (await Promise.race([promise, Promise.resolve(waiting)])) === waiting ? 'waiting' : 'wished';
  };

  test('the same Ctrl-C by way of the terminal and the runner is one wish', async () => {
    const clock = createVirtualClock();
    const wishes = createStopWishes(clock);
    expect(await state(wishes.asked)).toBe('waiting');
    wishes.note();
    wishes.note();
    await clock.advance(500);
    wishes.note();
    expect([await state(wishes.asked), await state(wishes.insisted)]).toEqual(['wished', 'waiting']);
  });
  test('a second one, later, insists', async () => {
    const clock = createVirtualClock();
    const wishes = createStopWishes(clock);
    wishes.note();
    await clock.advance(501);
    wishes.note();
    expect(await state(wishes.insisted)).toBe('wished');
  });
});
