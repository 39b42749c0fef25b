import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installSystemPackages, summaryOf, verifyProject } from '../../cli/commands/verify.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { plainEnv, ROOT } from './sluice.ts';

setDefaultTimeout(60_000);
const GOOD = `import { expect, test } from 'bun:test';
import { sum } from '../shared/sum.ts';

test('adds', () => expect(sum(1, 1)).toBe(2));
`;
let folder: ReturnType<typeof temporaryFolder>;

/** A small project with this project's settings and one test. */
beforeEach(() => {
  folder = temporaryFolder();
  for (const file of ['tsconfig.json', 'bunfig.toml', '.oxlintrc.json'])
    cpSync(join(ROOT, file), join(folder.path, file));
  for (const name of ['test', 'shared', 'node_modules']) mkdirSync(join(folder.path, name));
  for (const name of readdirSync(join(ROOT, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules', name), join(folder.path, 'node_modules', name));
  write('package.json', '{\n  "name": "small",\n  "type": "module"\n}\n');
  write('shared/sum.ts', 'export const sum = (a: number, b: number) => a + b;\n');
  write('test/good.test.ts', GOOD);
});
afterEach(() => folder[Symbol.dispose]());

function write(path: string, text: string) {
  writeFileSync(join(folder.path, path), text);
}

async function verified(all = false) {
  let out = '';
  const project = { root: folder.path, env: plainEnv(), out: (text: string) => void (out += text) };
  const code = await verifyProject(project, all);
  const ends = out.match(/^\d+ passed, \d+ failed$/gm) ?? [];
  return { code, out, last: out.trimEnd().split('\n').at(-1), ends: ends.length };
}

describe('a verification', () => {
  test('leaves the long tests out, and with --all runs them and has the Rust client built', async () => {
    write(
      'test/big.long.test.ts',
      "import { expect, test } from 'bun:test';\n\ntest('x', () => expect(process.env['SLUICE_SDK_RUST']).toBe('1'));\n",
    );
    const { out, ...short } = await verified();
    expect(short).toEqual({ code: 0, last: '1 passed, 0 failed', ends: 1 });
    expect(out.match(/^== .*$/gm)).toEqual(['== types', '== lint', '== format', '== tests']);
    expect(out).toMatch(/\nSlowest files:\n +\d+\.\d s {2}test\/good\.test\.ts\n\n1 passed, 0 failed\n$/);
    const all = await verified(true);
    expect(all.last).toBe('2 passed, 0 failed');
    expect(all.out).toContain('s  test/big.long.test.ts\n');
  });

  test.each([
    [
      'a test that fails',
      'test/bad.test.ts',
      "import { expect, test } from 'bun:test';\n\ntest('fails', () => expect(1).toBe(2));\n",
    ],
    ['a file that ends its process', 'test/bad.test.ts', "process.kill(process.pid, 'SIGKILL');\n"],
    ['a wrong type', 'test/wrong.ts', "export const wrong: number = 'text';\n"],
  ])('counts %s as one failure and still runs the rest', async (_, path, text) => {
    write(path, text);
    const { code, out, last, ends } = await verified();
    expect([code, last, ends]).toEqual([1, '1 passed, 1 failed', 1]);
    if (path === 'test/bad.test.ts') expect(out.slice(-1_000)).toContain('test/bad.test.ts');
  });

  test('of a runner that dies is a failure, never zero', async () => {
    write(
      'test/zz.test.ts',
      "import { test } from 'bun:test';\n\ntest('x', () => void process.kill(process.ppid, 'SIGKILL'));\n",
    );
    const { code, last, out } = await verified();
    expect([code, last]).toEqual([1, '0 passed, 1 failed']);
    expect(out).toContain('The test runner did not come to its end.');
  });
});

const GREEN = ' 5 pass\n 2 skip\n 1 todo\n 0 fail\n 12 expect() calls\nRan 8 tests across 2 files. [3.00ms]';
const COLOURED =
  '\u001b[0m\u001b[32m 5 pass\u001b[0m\n\u001b[31m 1 fail\u001b[0m\nRan 6 tests across 1 file. \u001b[2m[1ms]';

test.each([
  ['of a green run', GREEN, 0, { passed: 5, failed: 0, skipped: 3, ran: true }],
  ['through colours', COLOURED, 1, { passed: 5, failed: 1, skipped: 0, ran: true }],
  [
    'not from what tests print',
    '(pass) 7 pass\nI saw 9 fail\n12 passed\n 3 passes',
    1,
    { passed: 0, failed: 1 },
  ],
  ['of a runner that crashed', '(pass) a', 0, { failed: 1, ran: false }],
  ['of a runner that counted none and left with an error', GREEN, 1, { failed: 1, ran: true }],
])('the summary of bun test is read %s', (_, output, code, expected) => {
  expect(summaryOf(output, code)).toMatchObject({ ...expected, failures: [] });
});

test('failures are shown with their file and what was printed before them, each once', () => {
  const files = [
    'test/a.test.ts:\n(pass) one\nprinted\nerror: expect(1).toBe(2)\n(fail) two [1ms]\n(pass) three\n',
    'test/b.test.ts:\n\n# Unhandled error between tests\n-----\nerror: at once\n-----\n',
    'test/c.test.ts:\n(pass) four\n',
    '1 tests failed:\n(fail) two [1ms]\n 3 pass\n 2 fail\nRan 5 tests across 3 files.',
  ];
  expect(summaryOf(files.join('\n'), 1).failures).toEqual([
    'test/a.test.ts:\nprinted\nerror: expect(1).toBe(2)\n(fail) two [1ms]',
    files[1]?.trimEnd() ?? '',
  ]);
});

/** A machine with these commands; `installs` says what apt-get can bring, `fails` which commands fail. */
function machine(options: Readonly<{ has: string[]; root?: boolean; installs?: string[]; fails?: RegExp }>) {
  const present = new Set(options.has);
  const ran: string[] = [];
  return {
    ran,
    has: (command: string) => present.has(command),
    isRoot: options.root ?? true,
    run: async (_: string, command: readonly string[]) => {
      const line = command.join(' ');
      ran.push(line);
      const name = command.at(-1) ?? '';
      if (options.fails?.test(line)) return false;
      if (line.includes(' install ') && options.installs?.includes(name)) present.add(name);
      return true;
    },
  };
}

const APT = 'env DEBIAN_FRONTEND=noninteractive apt-get -q';

type Options = Parameters<typeof machine>[0];
const INSTALL = 'install -y --no-install-recommends';

test.each<[string, Options, string[], string[]]>([
  [
    'as root, only those that are missing',
    { has: ['apt-get', 'chromium'], installs: ['redis-server'] },
    [],
    [`${APT} update`, `${APT} ${INSTALL} redis-server`],
  ],
  [
    'by the first package that brings a program',
    { has: ['apt-get', 'redis-server'], installs: ['chromium-headless-shell', 'chromium'] },
    [],
    [`${APT} update`, `${APT} ${INSTALL} chromium-headless-shell`],
  ],
  [
    'through a sudo without a password, one without the other, which cannot be had',
    { has: ['apt-get', 'sudo'], root: false, installs: ['chromium'], fails: /install .*redis/ },
    ['redis-server'],
    [
      'true',
      `${APT} update`,
      `${APT} ${INSTALL} redis-server`,
      `${APT} ${INSTALL} chromium-headless-shell`,
      `${APT} ${INSTALL} chromium`,
    ].map((line) => `sudo -n ${line}`),
  ],
  ['without apt-get, and are named', { has: [] }, ['redis-server', 'chromium'], []],
  ['without root and sudo', { has: ['apt-get'], root: false }, ['redis-server', 'chromium'], []],
  [
    'with a sudo that requires a password',
    { has: ['apt-get', 'sudo'], root: false, fails: /sudo -n true/ },
    ['redis-server', 'chromium'],
    ['sudo -n true'],
  ],
])('system packages are found, installed or named %s', async (_, options, missing, ran) => {
  const own = machine(options);
  expect([await installSystemPackages(own), own.ran]).toEqual([missing, ran]);
});
