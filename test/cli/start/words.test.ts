import { describe, expect, test } from 'bun:test';
import { bannerOf, endMsOf, recordOf } from '../../../cli/commands/start.ts';
import { readyUrl } from '../../../cli/start/app.ts';
import { createStopWishes, isStanding, type ProcessTree, runnersOf } from '../../../cli/start/everything.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';

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

/** A chain of processes from `start` upwards, as [pid, parent]; `node` are those that run node. */
function treeOf(parents: Readonly<Record<number, number>>, ...node: readonly number[]): ProcessTree {
  return { parentOf: (pid) => parents[pid], isNode: (pid) => node.includes(pid) };
}

describe('the runners above start', () => {
  test('are bun run alone, whatever shell is above it', () => {
    expect(runnersOf(9, false, treeOf({ 9: 8, 8: 7, 7: 1 }))).toEqual([8]);
  });
  test('under npx are bun run, a shell and npx itself', () => {
    const tree = treeOf({ 9: 8, 8: 7, 7: 6, 6: 5, 5: 1 }, 6);
    expect(runnersOf(9, true, tree)).toEqual([8, 7, 6]);
  });
  test('under npx without a shell are bun run and npx', () => {
    expect(runnersOf(9, true, treeOf({ 9: 8, 8: 6, 6: 5 }, 6))).toEqual([8, 6]);
  });
  test('are bun run alone where npx cannot be told from its surroundings', () => {
    expect(runnersOf(9, true, treeOf({ 9: 8, 8: 7, 7: 6, 6: 5, 5: 4 }))).toEqual([8]);
    expect(runnersOf(9, true, treeOf({ 9: 8 }))).toEqual([8]);
  });
});

describe('the chain', () => {
  const whole = { 9: 8, 8: 7, 7: 6, 6: 1 };
  test('stands while every parent is the one it was', () => {
    expect(isStanding(9, [8, 7, 6], treeOf(whole))).toBe(true);
  });
  test.each([
    ['bun run', { ...whole, 9: 1 }],
    ['the shell', { ...whole, 8: 1 }],
    ['npx', { ...whole, 7: 1 }],
  ])('falls when %s is gone', (_, parents) => expect(isStanding(9, [8, 7, 6], treeOf(parents))).toBe(false));
  test('above the runners does not matter: a shell may go', () => {
    expect(isStanding(9, [8, 7, 6], treeOf({ ...whole, 6: 99 }))).toBe(true);
  });
});
