import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parsedJson } from './rpc.ts';

/** What every command needs: where calls go, under which key, and what ends the run. */
type Common = Readonly<{
  url: URL;
  key: string | undefined;
  keyAs: string;
  seconds: number | undefined;
  calls: number | undefined;
  timeoutMs: number;
  honoursRetryAfter: boolean;
}>;

/** A load of requests: closed, each connection sends when it has its answer; or, with a rate, open. */
export type LoadOptions = Common &
  Readonly<{ connections: number; perSecond: number | undefined; warmUpSeconds: number }>;

export type ScanOptions = Common &
  Readonly<{
    command: 'scan';
    programs: readonly string[];
    filters: readonly Filter[];
    slice: Readonly<{ offset: number; length: number }> | undefined;
    commitment: string;
    ndjson: boolean;
    sha256: boolean;
  }>;

export type ConfirmOptions = Common &
  Readonly<{
    command: 'confirm';
    connections: number;
    perSecond: number | undefined;
    keypair: string | undefined;
    pollMs: number;
    until: 'confirmed' | 'finalized';
  }>;

export type Options =
  | (LoadOptions & Readonly<{ command: 'calls'; method: string; params: string }>)
  | (LoadOptions & Readonly<{ command: 'batch'; method: string; params: string; size: number }>)
  | (LoadOptions & Readonly<{ command: 'mixed'; file: string | undefined; programs: readonly string[] }>)
  | ScanOptions
  | ConfirmOptions;

/** A filter of getProgramAccounts (Agave's `RpcFilterType`). */
export type Filter =
  | Readonly<{ dataSize: number }>
  | Readonly<{ memcmp: Readonly<{ offset: number; bytes: string; encoding: 'base58' | 'base64' }> }>;

/** Where results are written besides the terminal; `-` is standard output. */
type Outputs = Readonly<Partial<Record<'json' | 'csv' | 'html', string>>>;

export type Arguments =
  | Readonly<{ kind: 'run'; options: Options; outputs: Outputs }>
  | Readonly<{ kind: 'compare'; paths: readonly [string, string] }>
  | Readonly<{ kind: 'help'; text: string }>
  | Readonly<{ kind: 'problems'; sentences: readonly string[]; command: Command | undefined }>;

export type Command = Options['command'];

const COMMANDS: Readonly<Record<Command, Readonly<{ summary: string; example: string }>>> = {
  calls: {
    summary: 'one method, over and over',
    example: '--url http://127.0.0.1:8899 --key KEY --method getSlot --seconds 10 --rate 500',
  },
  batch: {
    summary: 'batches of one method',
    example: '--url http://127.0.0.1:8899 --key KEY --size 20 --seconds 10 --html out.html',
  },
  mixed: {
    summary: 'getProgramAccounts in the sizes of production, or calls of a file',
    example: '--url http://127.0.0.1:8899 --key KEY --file calls.ndjson --seconds 30',
  },
  scan: {
    summary: 'getProgramAccounts of any size, every account checked',
    example: '--url http://127.0.0.1:8899 --key KEY --programs ADDRESS --calls 1 --ndjson',
  },
  confirm: {
    summary: 'transfers sent, and confirmed by polling',
    example: '--url http://127.0.0.1:8890 --calls 20',
  },
};

const LOADERS = 'BPFLoaderUpgradeab1e11111111111111111111111';

const ALL = 'calls batch mixed scan confirm';
const LOADS = 'calls batch mixed';

/** Every option: the word for its value, empty for a switch; the commands that take it; and its line of help. */
const OPTIONS: readonly (readonly [name: string, value: string, of: string, help: string])[] = [
  ['url', 'URL', ALL, 'the endpoint, http or https'],
  ['key', 'KEY', ALL, 'its API key, unless in the URL'],
  ['key-as', 'FIELD', ALL, 'header of the key (x-token); authorization sends Bearer'],
  ['seconds', 'S', 'calls batch mixed scan', 'ends after S seconds, 0.1 to 86400 …'],
  ['seconds', 'S', 'confirm', 'begins none after S seconds, awaits those begun …'],
  ['calls', 'N', LOADS, '… or after N requests; one is needed'],
  ['calls', 'N', 'scan', '… or after N scans; one of the two is needed'],
  ['calls', 'N', 'confirm', '… or after N transfers; one is needed'],
  ['method', 'NAME', 'calls batch', 'what is called (getSlot)'],
  ['params', 'JSON', 'calls batch', 'its parameters ([]); "$address" is another each time'],
  ['size', 'N', 'batch', 'calls of a batch, 1 to 10000 (20)'],
  ['file', 'FILE', 'mixed', 'lines of {"weight":1,"method":…,"params":[…]}'],
  ['programs', 'A,B', 'mixed', 'whose accounts are asked for (the loader of programs)'],
  ['connections', 'N', LOADS, 'kept open, a request at a time each (16)'],
  ['connections', 'N', 'confirm', 'transfers under way at once (4)'],
  ['rate', 'R', 'calls batch mixed confirm', 'open loop: R a second, whatever comes back'],
  ['warm-up', 'S', LOADS, 'seconds before, which do not count (1)'],
  ['programs', 'A,B', 'scan', 'addresses, scanned in turn'],
  ['filters', 'JSON', 'scan', 'as of the method: [{"dataSize":165}], memcmp too'],
  ['slice', 'O:L', 'scan', 'dataSlice: offset and length'],
  ['commitment', 'NAME', 'scan', 'processed, confirmed or finalized (confirmed)'],
  ['ndjson', '', 'scan', "an account a line (the gateway's own form)"],
  ['sha256', '', 'scan', 'digest of the bytes of each scan'],
  ['keypair', 'FILE', 'confirm', 'of solana-keygen, pays; else an airdrop'],
  ['poll', 'MS', 'confirm', 'between two looks at statuses, 100 to 10000 (450)'],
  ['until', 'NAME', 'confirm', 'confirmed or finalized (finalized)'],
  ['timeout', 'S', LOADS, 'an answer that is later is none (30)'],
  ['timeout', 'S', 'scan confirm', 'silence that is longer ends it (60)'],
  ['ignore-retry-after', '', ALL, 'go on at once after 429 and 503'],
  ['json', 'FILE', ALL, ''],
  ['csv', 'FILE', ALL, ''],
  ['html', 'FILE', ALL, ''],
];

const OVERVIEW = `Usage: bun run bench COMMAND --url URL [--key KEY] --seconds S | --calls N
       bun run bench --compare A.json B.json

Measures a Solana RPC endpoint from a caller's side.

${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)
  .join('\n')}

  COMMAND --help   its options
  --compare A B    ratios of two results that --json wrote, B to A

Ctrl-C ends a run with the results so far and code 130. Code 1: the endpoint
gave no answer, or a wrong one; code 2: a mistake in these words. Example:

  bun run bench calls --url http://127.0.0.1:8899 --key KEY --seconds 10`;

function helpOf(command: Command): string {
  const own = OPTIONS.filter(([, , of, help]) => of.split(' ').includes(command) && help !== '');
  const lines = own.map(([name, value, , help]) => `  ${`--${name} ${value}`.padEnd(21)} ${help}`);
  return [
    `Usage: bun run bench ${command} --url URL [--key KEY] --seconds S | --calls N`,
    `${command}: ${COMMANDS[command].summary}.`,
    ...lines,
    '  --json, --csv, --html FILE   results; - for standard output',
    `Example: bun run bench ${command} ${COMMANDS[command].example}`
      .replace(/(.{1,79})(?: |$)/g, '$1\n')
      .trim(),
  ].join('\n');
}

/** Reads a command line. Every problem is one sentence. */
export function argumentsFrom(argv: readonly string[]): Arguments {
  const [first = '', ...rest] = argv;
  if (first === '' || first === '--help' || first === '-h' || first === 'help')
    return first === '' ? problems(['A command is needed: calls, batch, mixed, scan or confirm.']) : help();
  if (first === '--compare') {
    const [a, b] = rest;
    if (rest.includes('--help')) return help();
    if (a === undefined || b === undefined || rest.length > 2)
      return problems(['--compare needs two files that --json wrote.']);
    return { kind: 'compare', paths: [a, b] };
  }
  const command = Object.keys(COMMANDS).find((name) => name === first) as Command | undefined; // keys forget their type
  if (command === undefined)
    return problems([`"${first}" is no command: calls, batch, mixed, scan or confirm.`]);
  if (rest.includes('--help') || rest.includes('-h')) return { kind: 'help', text: helpOf(command) };
  const values = new Values(command, rest);
  const options = optionsFrom(command, values);
  const outputs = values.outputs();
  if (values.sentences.length > 0) return problems(values.sentences, command);
  return { kind: 'run', options, outputs };

  function help(): Arguments {
    return { kind: 'help', text: OVERVIEW };
  }
}

function problems(sentences: readonly string[], command?: Command): Arguments {
  return { kind: 'problems', sentences, command };
}

function optionsFrom(command: Command, values: Values): Options {
  const seconds = values.number('seconds', 0.1, 86_400);
  const calls = values.whole('calls', 1, 1_000_000_000);
  if (values.given.seconds === undefined && values.given.calls === undefined)
    values.sentences.push('A run needs a bound: --seconds or --calls.');
  const common = {
    url: values.url(),
    key: values.key(),
    keyAs:
      values.matching(
        'key-as',
        /^(?!(?:host|connection|content-length|content-type|transfer-encoding)$)[a-z0-9-]+$/i,
        'a name of a header that a key may have',
      ) ?? 'x-token',
    seconds,
    calls,
    timeoutMs: 1_000 * (values.number('timeout', 0.1, 3_600) ?? (isLoad(command) ? 30 : 60)),
    honoursRetryAfter: values.given['ignore-retry-after'] === undefined,
  };
  const perSecond = values.number('rate', 0.001, 1_000_000);
  if (command === 'scan') return { command, ...common, ...scanFrom(values) };
  if (command === 'confirm') {
    const connections = values.whole('connections', 1, 256) ?? 4;
    const pollMs = values.number('poll', 100, 10_000) ?? 450;
    const until = values.oneOf('until', ['finalized', 'confirmed'] as const) ?? 'finalized';
    return { command, ...common, connections, perSecond, pollMs, until, keypair: values.given.keypair };
  }
  const connections = values.whole('connections', 1, 10_000) ?? 16;
  const warmUpSeconds = values.number('warm-up', 0, 3_600) ?? 1;
  const load = { ...common, connections, perSecond, warmUpSeconds };
  if (command === 'mixed') {
    const programs = values.addresses('programs') ?? [LOADERS];
    if (values.given.file !== undefined && values.given.programs !== undefined)
      values.sentences.push('--file and --programs do not go together.');
    return { command, ...load, file: values.given.file, programs };
  }
  const method = values.matching('method', /^\w+$/, 'a name of a method') ?? 'getSlot';
  const params = values.params();
  if (command === 'calls') return { command, ...load, method, params };
  return { command, ...load, method, params, size: values.whole('size', 1, 10_000) ?? 20 };
}

function isLoad(command: Command): boolean {
  return command === 'calls' || command === 'batch' || command === 'mixed';
}

function scanFrom(values: Values) {
  const programs = values.addresses('programs') ?? [];
  if (values.given.programs === undefined) values.sentences.push('scan needs --programs.');
  const slice = values.matching('slice', /^\d{1,9}:\d{1,9}$/, 'OFFSET:LENGTH');
  const [offset = 0, length = 0] = slice?.split(':').map(Number) ?? [];
  return {
    programs,
    filters: values.filters(),
    slice: slice === undefined ? undefined : { offset, length },
    commitment: values.oneOf('commitment', ['confirmed', 'processed', 'finalized'] as const) ?? 'confirmed',
    ndjson: values.given.ndjson !== undefined,
    sha256: values.given.sha256 !== undefined,
  };
}

/** The options as they were given, and a sentence for each that cannot be used. */
class Values {
  readonly given: Readonly<Record<string, string | undefined>>;
  readonly sentences: string[] = [];

  constructor(command: Command, argv: readonly string[]) {
    const own = OPTIONS.filter(([, , of]) => of.split(' ').includes(command));
    const spec = Object.fromEntries(
      own.map(([name, value]) => [name, { type: value === '' ? 'boolean' : 'string' } as const]),
    );
    const { tokens } = parseArgs({
      args: [...argv],
      options: spec,
      strict: false,
      tokens: true,
      allowPositionals: true,
    });
    const given: Record<string, string> = {};
    const words: string[] = [];
    for (const token of tokens) {
      if (token.kind === 'positional') words.push(token.value);
      if (token.kind !== 'option') continue;
      const option = spec[token.name];
      if (option === undefined) this.sentences.push(`${command} has no option ${token.rawName}.`);
      else if (given[token.name] !== undefined) this.sentences.push(`${token.rawName} was given twice.`);
      else if (option.type === 'boolean' && token.value !== undefined)
        this.sentences.push(`${token.rawName} takes no value.`);
      else if (option.type === 'string' && (token.value === undefined || token.value.startsWith('--')))
        this.sentences.push(`${token.rawName} needs a value.`);
      else given[token.name] = token.value ?? '';
    }
    // After an option that is none, or without its value, a word may be meant as a value.
    if (this.sentences.length === 0)
      this.sentences.push(...words.map((word) => `${command} does not know what to do with "${word}".`));
    this.given = given;
  }

  #wrong(name: string, expected: string): undefined {
    this.sentences.push(`--${name} is ${expected}, not "${this.given[name]}".`);
  }

  number(name: string, least: number, most: number): number | undefined {
    const text = this.given[name];
    if (text === undefined) return undefined;
    const value = text.trim() === '' ? Number.NaN : Number(text);
    return value >= least && value <= most ? value : this.#wrong(name, `a number from ${least} to ${most}`);
  }

  whole(name: string, least: number, most: number): number | undefined {
    const value = this.number(name, least, most);
    return value === undefined || Number.isInteger(value) ? value : this.#wrong(name, 'a whole number');
  }

  matching(name: string, pattern: RegExp, expected: string): string | undefined {
    const text = this.given[name];
    return text === undefined || pattern.test(text) ? text : this.#wrong(name, expected);
  }

  oneOf<T extends string>(name: string, known: readonly T[]): T | undefined {
    const found = known.find((each) => each === this.given[name]);
    return found ?? (this.given[name] === undefined ? undefined : this.#wrong(name, known.join(' or ')));
  }

  addresses(name: string): readonly string[] | undefined {
    const list = this.given[name]?.split(',').map((each) => each.trim());
    if (list === undefined || list.every((each) => /^[1-9A-HJ-NP-Za-km-z]{32,44}$/.test(each))) return list;
    return this.#wrong(name, 'addresses in base58, after commas');
  }

  /** Never repeats what was given, as `url`. */
  key(): string | undefined {
    const { key } = this.given;
    if (key !== undefined && !/^[\x20-\x7e]*$/.test(key))
      this.sentences.push('--key has characters that no header can carry.');
    return key;
  }

  /** Never repeats what was given: a key may stand in it. */
  url(): URL {
    const url = URL.parse(this.given['url'] ?? '');
    if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
    const sentence =
      this.given['url'] === undefined ? 'A run needs --url.' : '--url is no http:// or https:// address.';
    this.sentences.push(sentence);
    return new URL('http://127.0.0.1');
  }

  outputs(): Outputs {
    const { json, csv, html } = this.given;
    const given = Object.entries({ json, csv, html }).filter(([, path]) => path !== undefined);
    for (const [name] of given.filter(([, path]) => path === '')) this.#wrong(name, 'a file or -');
    if (given.filter(([, path]) => path === '-').length > 1)
      this.sentences.push('Standard output takes one of --json, --csv and --html.');
    const files = given.filter(([, path]) => path !== '-').map(([, path]) => resolve(path ?? ''));
    if (new Set(files).size < files.length) this.sentences.push('--json, --csv and --html take a file each.');
    return Object.fromEntries(given);
  }

  params(): string {
    const text = this.given['params'] ?? '[]';
    const isList = (value: unknown) => typeof value === 'object' && value !== null;
    if (!isList(parsedJson(text))) this.#wrong('params', 'a list or an object of JSON');
    return text;
  }

  filters(): readonly Filter[] {
    const list = parsedJson(this.given['filters'] ?? '[]');
    const filters = Array.isArray(list) ? list.map(filterFrom) : [undefined];
    const known = filters.filter((filter) => filter !== undefined);
    if (known.length < filters.length || known.length > 4)
      this.#wrong(
        'filters',
        'a list of at most four of {"dataSize":N} and {"memcmp":{"offset":N,"bytes":"…"}}',
      );
    return known;
  }
}

const BASE58 = /^[1-9A-HJ-NP-Za-km-z]*$/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

function filterFrom(value: unknown): Filter | undefined {
  const { dataSize, memcmp } = Object(value);
  if (dataSize !== undefined && memcmp !== undefined) return undefined;
  if (Number.isSafeInteger(dataSize) && dataSize >= 0) return { dataSize };
  const { offset, bytes, encoding = 'base58' } = Object(memcmp);
  const isMemcmp = Number.isSafeInteger(offset) && offset >= 0 && typeof bytes === 'string';
  if (!isMemcmp || (encoding !== 'base58' && encoding !== 'base64')) return undefined;
  if (!(encoding === 'base58' ? BASE58 : BASE64).test(bytes)) return undefined;
  return { memcmp: { offset, bytes, encoding } };
}
