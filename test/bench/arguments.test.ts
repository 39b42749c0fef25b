import { describe, expect, test } from 'bun:test';
import { argumentsFrom } from '../../bench/arguments.ts';
import { optionsOf } from './options.ts';

const URL_AND_BOUND = ['--url', 'http://127.0.0.1:8899', '--calls', '1'];
const PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
const COMMANDS = ['calls', 'batch', 'mixed', 'scan', 'confirm'];

function problemsOf(...argv: string[]): readonly string[] {
  const parsed = argumentsFrom(argv);
  return parsed.kind === 'problems' ? parsed.sentences : [];
}

describe('a run is refused', () => {
  test.each(COMMANDS)('%s without a bound or an address, each in a sentence', (command) => {
    const programs = command === 'scan' ? ['--programs', PROGRAM] : [];
    expect(problemsOf(command, ...programs).toSorted()).toEqual([
      'A run needs --url.',
      'A run needs a bound: --seconds or --calls.',
    ]);
  });

  test.each([
    [['calls', '--rate', '0'], '--rate is a number from 0.001 to 1000000, not "0".'],
    [['calls', '--connections', '1.5'], '--connections is a whole number, not "1.5".'],
    [['calls', '--connections', ''], '--connections is a number from 1 to 10000, not "".'],
    [['calls', '--params', '{'], '--params is a list or an object of JSON, not "{".'],
    [['calls', '--method', 'get slot'], '--method is a name of a method, not "get slot".'],
    [['calls', '--size', '3'], 'calls has no option --size.'],
    [['calls', '--rate'], '--rate needs a value.'],
    [['calls', '--rate', '--json', 'a'], '--rate needs a value.'],
    [['calls', '--ignore-retry-after=yes'], '--ignore-retry-after takes no value.'],
    [['calls', '--calls', '2'], '--calls was given twice.'],
    [['calls', '--json='], '--json is a file or -, not "".'],
    [['calls', '--json', '-', '--csv', '-'], 'Standard output takes one of --json, --csv and --html.'],
    [['calls', '--json', 'a', '--csv', './a'], '--json, --csv and --html take a file each.'],
    [['calls', '--key-as', 'Host'], '--key-as is a name of a header that a key may have, not "Host".'],
    [['calls', 'now'], 'calls does not know what to do with "now".'],
    [['batch', '--size', '10001'], '--size is a number from 1 to 10000, not "10001".'],
    [['mixed', '--file', 'a', '--programs', PROGRAM], '--file and --programs do not go together.'],
    [['scan', '--programs', 'me'], '--programs is addresses in base58, after commas, not "me".'],
    [['scan', '--programs', PROGRAM, '--slice', '3'], '--slice is OFFSET:LENGTH, not "3".'],
    [
      ['scan', '--programs', PROGRAM, '--commitment', 'max'],
      '--commitment is confirmed or processed or finalized, not "max".',
    ],
    [['confirm', '--poll', '1'], '--poll is a number from 100 to 10000, not "1".'],
  ])('with a mistake: %p', ([command = '', ...rest], sentence) => {
    expect(problemsOf(command, ...URL_AND_BOUND, ...rest)).toEqual([sentence]);
  });

  test('with filters that are none, or too many', () => {
    const filters = (text: string) =>
      problemsOf('scan', ...URL_AND_BOUND, '--programs', PROGRAM, '--filters', text);
    for (const text of [
      '{}',
      '[{"dataSize":"1"}]',
      '[{"memcmp":{"offset":0,"bytes":"0OIl"}}]',
      '[{"memcmp":{"offset":0,"bytes":"!!","encoding":"base64"}}]',
      '[{"dataSize":165,"memcmp":{"offset":0,"bytes":"3"}}]',
      `[${'{"dataSize":1},'.repeat(4)}{"dataSize":1}]`,
    ])
      expect(filters(text)).toHaveLength(1);
    expect(filters('[{"dataSize":165},{"memcmp":{"offset":32,"bytes":"3Mc6vR"}}]')).toEqual([]);
  });

  test.each(['a\r\nx-evil: 1', 'a\x00', 'schlüssel'])('with a key that no header carries: %j', (key) => {
    const sentence = '--key has characters that no header can carry.';
    expect(problemsOf('calls', ...URL_AND_BOUND, '--key', key)).toEqual([sentence]);
  });

  test('without saying the key that stands in a wrong address', () => {
    const sentences = problemsOf('calls', '--calls', '1', '--url', 'ftp://node/?api-key=sluice_secret');
    expect(sentences).toEqual(['--url is no http:// or https:// address.']);
  });

  test.each([
    [[], 'A command is needed: calls, batch, mixed, scan or confirm.'],
    [['call'], '"call" is no command: calls, batch, mixed, scan or confirm.'],
    [['--compare', 'a'], '--compare needs two files that --json wrote.'],
  ])('without a command: %p', (argv, sentence) => expect(problemsOf(...argv)).toEqual([sentence]));
});

test.each(['', ...COMMANDS])(
  'the help of "%s" fits a screen of 24 by 80 and has an example that runs',
  (command) => {
    const help = argumentsFrom([...(command === '' ? [] : [command]), '--help']);
    if (help.kind !== 'help') throw new Error('it is no help');
    const lines = help.text.split('\n');
    expect(lines.length).toBeLessThanOrEqual(23);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    const [, words = ''] = /[Ee]xample:\s+bun run bench ([^]+?)$/.exec(help.text) ?? [];
    const argv = words.split(/\s+/).map((word) => (word === 'ADDRESS' ? PROGRAM : word));
    expect(argv[0]).toBe(command || 'calls');
    if (command !== '') expect(argumentsFrom(argv).kind).toBe('run');
  },
);

test('what is not said has a value', () => {
  expect(optionsOf('calls')).toEqual({
    command: 'calls',
    url: new URL('http://127.0.0.1:8899'),
    key: undefined,
    keyAs: 'x-token',
    seconds: undefined,
    calls: 1,
    timeoutMs: 30_000,
    honoursRetryAfter: true,
    connections: 16,
    perSecond: undefined,
    warmUpSeconds: 1,
    method: 'getSlot',
    params: '[]',
  });
  expect(optionsOf('confirm')).toMatchObject({
    until: 'finalized',
    pollMs: 450,
    connections: 4,
    timeoutMs: 60_000,
  });
  expect(optionsOf('scan', '--programs', `${PROGRAM}, ${PROGRAM}`, '--slice', '4:8')).toMatchObject({
    programs: [PROGRAM, PROGRAM],
    slice: { offset: 4, length: 8 },
  });
});
