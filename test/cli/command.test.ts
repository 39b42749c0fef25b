import { afterAll, describe, expect, test } from 'bun:test';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import manifest from '../../package.json';
import { argumentsFrom, type Command } from '../../cli/frame/command.ts';
import { durationMsFrom } from '../../cli/frame/values.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { plainEnv, ROOT, sluice } from './sluice.ts';

const command = (words: string, operands: string[], options: Command['options']): Command => ({
  words,
  operands,
  options,
  summary: '',
  act: () => ({ kind: 'ended', code: 0 }),
});
const commands = [
  command('thing make', ['NAME', '[FILE]'], ['plan', 'json']),
  command('thing list', [], ['json']),
  command('go', [], ['config']),
  { ...command('run', ['[FILE]'], ['config']), takesPairs: true },
  command('list', [], ['account']),
];
const read = (...argv: string[]) => argumentsFrom(argv, commands);

describe('arguments', () => {
  test('may stand in any order', () => {
    const expected = { kind: 'command', operands: ['a', 'b'], options: { plan: 'p', json: '' } };
    expect(read('thing', 'make', 'a', 'b', '--plan', 'p', '--json')).toMatchObject(expected);
    expect(read('--json', '--plan=p', 'thing', 'make', 'a', 'b')).toMatchObject(expected);
  });
  test('after -- are never options', () => {
    expect(read('thing', 'make', '--', '--plan')).toMatchObject({ kind: 'command', operands: ['--plan'] });
  });
  test.each<[string[], string[], [string, string][], object]>([
    [
      ['run', '--account', 'A', 'a.json', '--account', 'B', 'b.json'],
      [],
      [
        ['A', 'a.json'],
        ['B', 'b.json'],
      ],
      {},
    ],
    [['--account', 'A', 'a.json', 'run', '--config', 'c'], [], [['A', 'a.json']], { config: 'c' }],
    [
      ['run', 'file', '--account=A', 'a.json', '--account', '-', 'b.json'],
      ['file'],
      [
        ['A', 'a.json'],
        ['-', 'b.json'],
      ],
      {},
    ],
    [['list', '--account', 'A'], [], [], { account: 'A' }],
    [['--account', 'A', 'list'], [], [], { account: 'A' }],
  ])('%j may have pairs of an address and a file, again and again', (argv, operands, pairs, options) =>
    expect(read(...argv)).toMatchObject({ kind: 'command', operands, pairs, options }),
  );
  test.each([
    [['run', '--account', 'A'], 'Option --account requires an address and a file.'],
    [['run', '--account', 'A', '--config', 'c'], 'Option --account requires an address and a file.'],
    [['list', '--account', 'A', '--account', 'B'], 'Option --account was given more than once.'],
    [['list', '--account', '-'], 'Option --account requires a value.'],
    [[], 'No command given.'],
    [['nope'], 'Unknown command "nope".'],
    [['thing'], '"thing" must be followed by one of: make, list.'],
    [['thing', 'make'], 'thing make requires NAME.'],
    [['thing', 'make', 'a', 'b', 'c'], 'Unexpected argument "c" for thing make.'],
    [['thing', 'list', '--plan', 'p'], 'thing list has no option --plan.'],
    [['thing', 'list', '--nope'], 'Unknown option --nope.'],
    [['thing', 'list', '--json=1'], 'Option --json takes no value.'],
    [['thing', 'make', 'a', '--plan'], 'Option --plan requires a value.'],
    [['thing', 'make', 'a', '--plan', 'p', '--plan', 'q'], 'Option --plan was given more than once.'],
  ])('%j: %s', (argv, sentence) => expect(read(...argv)).toMatchObject({ kind: 'mistake', sentence }));
  test.each([
    [['help'], undefined],
    [['--help'], undefined],
    [['-h', 'thing', 'list'], 'thing list'],
    [['help', 'go'], 'go'],
    [['thing', 'make', '--help'], 'thing make'],
    [['thing', '--help'], undefined],
  ])('%j asks for help with %p', (argv, words) => {
    const asked = read(...argv);
    expect(asked.kind).toBe('help');
    expect(asked.kind === 'help' && asked.command?.words).toBe(words as string); // a test row without a command is undefined
  });
});

/** Every command: its first word, and what may stand behind it. */
const COMMANDS = [
  ['start', ''],
  ['account', 'create list set add-credits suspend resume rename'],
  ['key', 'create list rename revoke rotate'],
  ['user', 'create list set-password reset-second-factor sign-out unlink remove'],
  [
    'webhook',
    'list create edit pause resume delete rotate switch-secret cancel-rotation test deliveries resend-failed resend',
  ],
  ['usage', ''],
  ['audit', ''],
  ['config', 'check reload'],
  ['restore', ''],
  ['deploys', 'take-over'],
  ['programs', 'check'],
  ['localnet', 'upgrade'],
  ['verify', ''],
] as const;

describe('the program', () => {
  const folder = temporaryFolder();
  afterAll(() => folder[Symbol.dispose]());
  const run = (...args: string[]) => sluice(folder.path, args);

  test('lists every command of this version, and no other', async () => {
    const { code, out } = await run('--help');
    expect(code).toBe(0);
    const listed = [...out.matchAll(/^ {2}([a-z]+(?: [a-z-]+)?)/gm)].map(([, words]) => words);
    expect(listed).toEqual(
      COMMANDS.flatMap(([first, others]) => others.split(' ').map((other) => `${first} ${other}`.trim())),
    );
  });
  test('answers a mistake with a sentence, a hint and exit code 1', async () => {
    expect(await run('bill')).toEqual({
      code: 1,
      out: '',
      err: 'Unknown command "bill". Try: bun run sluice --help\n',
    });
    expect((await run('key', 'create')).err).toBe(
      'key create requires ACCOUNT. Try: bun run sluice key create --help\n',
    );
  });
});

describe('before anything else', () => {
  const folder = temporaryFolder();
  afterAll(() => folder[Symbol.dispose]());

  test('a Bun older than package.json wants is refused with one sentence, and nothing is installed', async () => {
    mkdirSync(join(folder.path, 'cli'));
    for (const file of ['cli/main.ts', 'cli/packages.ts', 'shared'])
      cpSync(join(ROOT, file), join(folder.path, file), { recursive: true });
    writeFileSync(
      join(folder.path, 'package.json'),
      JSON.stringify({ ...manifest, engines: { bun: '99.0.0' } }),
    );
    const child = Bun.spawn([process.execPath, 'cli/main.ts', 'start'], {
      cwd: folder.path,
      env: plainEnv(),
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    expect([code, out, err]).toEqual([
      1,
      '',
      `Sluice needs Bun 99.0.0 or newer, and this is Bun ${process.versions.bun}; run it with: npx -y bun@99.0.0 start\n`,
    ]);
    expect(existsSync(join(folder.path, 'node_modules'))).toBe(false);
  });
});

test.each([
  ['0s', 0],
  ['15m', 900_000],
  ['24h', 86_400_000],
  ['3650d', 315_360_000_000],
  ['3651d', undefined],
  ['-1h', undefined],
  ['1.5h', undefined],
])('a duration of %s is %p ms', (text, ms) => expect(durationMsFrom(text)).toBe(ms as number)); // a row may hold undefined
