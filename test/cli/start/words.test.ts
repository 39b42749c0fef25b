import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { firstScreen, loginOf } from '../../../cli/commands/start.ts';
import { readyUrl } from '../../../cli/start/apps.ts';
import { createStopWishes, type ProcessTree, runnersOf } from '../../../cli/start/stops.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { temporaryFolder } from '../../started/gateway.ts';

test.each([
  ['{"ready":"gateway","url":"http://127.0.0.1:1/"}', 'http://127.0.0.1:1/'],
  ['{"ready":"deploys","url":"http://127.0.0.1:1/"}', undefined],
  ['{"ready":"gateway","url":"nowhere"}', undefined],
  ['{"ready"', undefined],
  ['gateway is "ready"', undefined],
])(
  'the address of the gateway in the line %s is %p',
  (line, url) => expect(readyUrl(line, 'gateway')).toBe(url as string), // a row may hold undefined
);

describe('the first screen', () => {
  const login = { lines: ['http://127.0.0.1:8910/login'], record: { login: 'http://127.0.0.1:8910/login' } };
  const urls = { gateway: 'http://127.0.0.1:8899/', console: 'http://[::1]:8910/', ...login.record };
  const screenOf = (demoKey?: string) =>
    firstScreen({
      gatewayUrl: 'http://0.0.0.0:8899',
      consoleUrl: 'http://[::]:8910',
      demoKey,
      login,
      dataDir: './data',
    });

  test('has addresses that can be reached from this machine, and lines to paste, each whole', () => {
    const { text, record } = screenOf('sluice_K');
    const lines = [
      `curl -s 'http://127.0.0.1:8899/?api-key=sluice_K' -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'`,
      `curl -s 'http://[::1]:8910/api/v1/program-deploys/programs?api-key=sluice_K'`,
    ];
    for (const shown of [urls.gateway, urls.console, login.record.login, 'sluice_K', ...lines])
      expect(text).toContain(shown);
    expect(record).toEqual({ ...urls, demo_key: 'sluice_K', try: lines });
  });

  test('without a demo key says how to create one', () => {
    const { text, record } = screenOf();
    expect(text).toContain('bun run sluice key create NAME');
    expect(text).not.toContain('curl');
    expect(record).toEqual(urls);
  });
});

test('the link of the first operator is shown on a terminal and kept in a file without one; else it is the login', () => {
  using folder = temporaryFolder();
  const url = 'https://console.example.com/';
  const read = configFrom({ deploys: { public_url: url }, storage: { data_dir: folder.path } }, {});
  if (read.kind !== 'config') throw new Error('the config has problems');
  const loginWith = (token: string | undefined, isTerminal: boolean) =>
    loginOf(read.config, 'http://127.0.0.1:8910/', token, isTerminal);
  const link = `${url}first-operator?token=t`;
  const shown = loginWith('t', true);
  expect([shown.lines[0], shown.lines[2], shown.record]).toEqual([
    'this link creates the first operator, once, within 24 hours:',
    link,
    { first_operator: link },
  ]);
  const file = join(folder.path, 'first-operator-link');
  expect(loginWith('t', false).record).toEqual({ first_operator_file: file });
  expect(readFileSync(file, 'utf8')).toBe(`${link}\n`);
  expect(loginWith(undefined, true)).toEqual({ lines: [`${url}login`], record: { login: `${url}login` } });
});

describe('wishes to stop', () => {
  const state = async (promise: Promise<void>) => {
    const waiting = Symbol('waiting');
    return (await Promise.race([promise, Promise.resolve(waiting)])) === waiting ? 'waiting' : 'wished';
  };

  test('within half a second are one: the runner passes on what the terminal sent too; a later one insists', async () => {
    const clock = createVirtualClock();
    const wishes = createStopWishes(clock);
    expect(await state(wishes.asked)).toBe('waiting');
    wishes.note();
    wishes.note();
    await clock.advance(499);
    wishes.note();
    expect([await state(wishes.asked), await state(wishes.insisted)]).toEqual(['wished', 'waiting']);
    await clock.advance(1);
    wishes.note();
    expect(await state(wishes.insisted)).toBe('wished');
  });
});

test.each<[string, boolean, Record<number, number>, number[], number[]]>([
  ['bun run alone, whatever shell is above it', false, { 9: 8, 8: 7, 7: 1 }, [], [8]],
  ['under npx bun run, a shell and npx itself', true, { 9: 8, 8: 7, 7: 6, 6: 5, 5: 1 }, [6], [8, 7, 6]],
  ['under npx without a shell bun run and npx', true, { 9: 8, 8: 6, 6: 5 }, [6], [8, 6]],
  ['bun run alone where npx is not found', true, { 9: 8, 8: 7, 7: 6, 6: 5, 5: 4 }, [], [8]],
  ['none when bun run is gone', true, { 9: 1, 8: 7, 7: 6 }, [6], []],
  ['bun run alone when the shell above it is gone', true, { 9: 8, 8: 1, 7: 6 }, [6], [8]],
])('the runners above start are %s', (_, underNpm, parents, nodes, runners) => {
  const tree: ProcessTree = { parentOf: (pid) => parents[pid], isNode: (pid) => nodes.includes(pid) };
  expect(runnersOf(9, underNpm, tree)).toEqual(runners);
});
