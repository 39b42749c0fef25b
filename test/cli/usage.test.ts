import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Invocation, World } from '../../cli/frame/command.ts';
import { periodFrom, usage } from '../../cli/commands/usage.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { systemClock } from '../../shared/clock.ts';
import { cellOf, createTakeCells } from '../deploys/usage/ledger.ts';
import { opened, temporaryFolder } from '../started/gateway.ts';
import { MAIN, objectsOf, plainEnv, sluice } from './sluice.ts';

const folder = temporaryFolder();
const run = (...args: string[]) => sluice(folder.path, ['usage', ...args]);
const json = async (...args: string[]) => objectsOf(await run(...args, '--json'));
const hourAt = (text: string) => Date.parse(`${text}:00Z`) / 3_600_000;
const openLedger = () => opened(join(folder.path, 'data', LEDGER_FILE), LEDGER_MIGRATIONS);

beforeAll(async () => {
  await sluice(folder.path, ['account', 'create', 'Acme, "the" Ltd.']);
  await sluice(folder.path, ['account', 'create', 'other']);
  using ledger = openLedger();
  createTakeCells(ledger)([
    cellOf({
      hour: hourAt('2026-11-20T10'),
      calls: 3,
      credits: 30,
      refunded: 10,
      errors: 1,
      bytesOut: 5_000,
    }),
    cellOf({ hour: hourAt('2026-11-20T10'), node: 'n2', credits: 20 }),
    cellOf({ hour: hourAt('2026-11-20T10'), accountId: 2, keyId: 'k2', refused: 7 }),
    cellOf({ hour: hourAt('2026-11-20T11'), accountId: 9 }),
    cellOf({ hour: hourAt('2026-11-21T00'), accountId: 2, keyId: 'k2' }),
  ]);
});
afterAll(() => folder[Symbol.dispose]());

const FIRST = {
  hour: '2026-11-20T10:00Z',
  account: 'Acme, "the" Ltd.',
  key_id: 'k1',
  method: 'getSlot',
  calls: 4,
  credits: 40,
  errors: 1,
  bytes_out: 5_010,
  refused: 0,
};
const DAY = ['--from', '2026-11-20', '--to', '2026-11-20'];

describe('usage', () => {
  test('with --json is one object a line, of all nodes together, the oldest first', async () => {
    const rows = await json(...DAY);
    expect(rows[0]).toEqual(FIRST);
    expect(rows.map((row) => Object.values(row as object).slice(0, 3))).toEqual([
      ['2026-11-20T10:00Z', 'Acme, "the" Ltd.', 'k1'],
      ['2026-11-20T10:00Z', 'other', 'k2'],
      // An account that is not there any more.
      ['2026-11-20T11:00Z', '#9', 'k1'],
    ]);
    expect(await run(...DAY, '--format', 'ndjson')).toEqual(await run(...DAY, '--json'));
  });

  test('is of one account, and of the hours asked for', async () => {
    const rows = await json('--account', 'other', '--from', '2026-11-20T11', '--to', '2026-11-21T00');
    expect(rows).toMatchObject([{ hour: '2026-11-21T00:00Z', account: 'other' }]);
  });

  test('as CSV has a head and is quoted where it must be', async () => {
    const { out } = await run(...DAY, '--format=csv');
    expect(out.split('\n').slice(0, 2)).toEqual([
      'hour,account,key_id,method,calls,credits,errors,bytes_out,refused',
      '2026-11-20T10:00Z,"Acme, ""the"" Ltd.",k1,getSlot,4,40,1,5010,0',
    ]);
  });

  test('that there was not is said in the table, and is nothing to a program', async () => {
    const never = ['--from', '2001-01-01', '--to', '2001-01-01'];
    expect(await run(...never)).toEqual({ code: 0, out: 'No usage in this period.\n', err: '' });
    expect((await run(...never, '--json')).out).toBe('');
    expect((await run(...never, '--format', 'csv')).out).toMatch(/^hour,.*refused\n$/);
  });

  test.each([
    [['--account', 'nobody'], 'No account named "nobody". List accounts with: account list'],
    [['--format', 'xml'], '--format must be one of table, csv, ndjson, not "xml".'],
    [['--format', 'csv', '--json'], '--json means --format ndjson. Use only one of them.'],
    [['--from', '2026-11-02', '--to', '2026-11-01'], '--from is later than --to.'],
  ])('%j is one sentence on stderr and exit code 1', async (args, sentence) => {
    expect(await run(...args)).toEqual({ code: 1, out: '', err: `${sentence}\n` });
  });
});

describe('a long answer', () => {
  const LONG = ['usage', '--from', '2010-01-01', '--to', '2010-01-31', '--json'];
  const ROWS = 20_000;
  const configPath = join(folder.path, 'same.toml');
  beforeAll(() => {
    writeFileSync(configPath, `[storage]\ndata_dir = "${folder.path}/data"\n`);
    using ledger = openLedger();
    const first = hourAt('2010-01-01T00');
    createTakeCells(ledger)(
      Array.from({ length: ROWS }, (_, i) => cellOf({ hour: first + (i % 700), keyId: `k${i}` })),
    );
  });

  test('is whole, through a pipe that is read slowly', async () => {
    const { out, code } = await piped('"$@" | (sleep 0.3; wc -l)');
    expect([Number(out), code]).toEqual([ROWS, 0]);
  });

  test('is printed a thousand rows at a time, and goes on when they have been taken', async () => {
    const pages: number[] = [];
    let lines = 0;
    const ended = await usage.act(
      invocationOf({
        out: (text) => void (lines += text.split('\n').length - 1),
        async hasRoom() {
          pages.push(lines);
          lines = 0;
          return pages.length < 15;
        },
      }),
    );
    // The fifteenth time nobody reads any more: nothing is printed after that.
    expect([pages, lines, ended]).toEqual([pages.map(() => 1_000), 0, { kind: 'ended', code: 0 }]);
    expect(pages.length).toBe(15);
  });

  test('whose reader has had enough ends without a word', async () => {
    const { out, err, code } = await piped(`"$@" | head -n 1`);
    expect([out.split('\n').length, err, code]).toEqual([2, '', 0]);
  });

  const invocationOf = (streams: Pick<World, 'out' | 'hasRoom'>) =>
    ({
      operands: [],
      options: { from: '2010-01-01', to: '2010-01-31', config: configPath, json: '' },
      world: { env: {}, clock: systemClock, err: () => undefined, ...streams },
    }) as unknown as Invocation; // the command uses nothing else of the world

  async function piped(line: string) {
    const child = Bun.spawn(
      ['bash', '-o', 'pipefail', '-c', line, 'sluice', process.execPath, MAIN, ...LONG],
      {
        cwd: folder.path,
        env: plainEnv(),
        stdout: 'pipe',
        stderr: 'pipe',
      },
    );
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { out, err, code };
  }
});

const NOW_MS = Date.parse('2026-11-21T19:30:00Z');
const hours = (from: string, to: string) => ({ fromHour: hourAt(from), toHour: hourAt(to) });

describe('the hours that are asked for', () => {
  test.each([
    [undefined, undefined, '2026-11-20T20', '2026-11-21T20'],
    [undefined, '2026-11-01T05', '2026-10-31T06', '2026-11-01T06'],
    ['2026-11-01', '2026-11-01', '2026-11-01T00', '2026-11-02T00'],
    ['2026-11-01T05:00Z', '2026-11-01T23:00', '2026-11-01T05', '2026-11-02T00'],
    ['2024-02-29', '2024-02-29T12', '2024-02-29T00', '2024-02-29T13'],
  ])('from %p to %p are %s up to %s', (from, to, first, end) => {
    expect(periodFrom(from, to, NOW_MS)).toEqual(hours(first, end));
  });

  test.each([['2026-13-01'], ['2026-02-30'], ['2026-11-01T24'], ['2026-11-01T05:30Z'], ['2026-11-01+02:00']])(
    'cannot be read from %p',
    (text) => {
      const sentence = (option: string) =>
        `--${option} must be a UTC day or hour such as 2026-11-21 or 2026-11-21T19, not "${text}".`;
      expect(periodFrom(text, undefined, NOW_MS)).toBe(sentence('from'));
      expect(periodFrom(undefined, text, NOW_MS)).toBe(sentence('to'));
    },
  );

  test('do not run backwards', () => {
    expect(periodFrom('2026-11-02', '2026-11-01', NOW_MS)).toBe('--from is later than --to.');
    expect(periodFrom('2026-11-22', undefined, NOW_MS)).toBe('--from is later than --to.');
    expect(periodFrom('2026-11-01T06', '2026-11-01T05', NOW_MS)).toBe('--from is later than --to.');
  });
});
