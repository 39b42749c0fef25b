import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { verifyProject } from '../../../cli/verify/project.ts';
import { runStep } from '../../../cli/verify/step.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { plainEnv, ROOT } from '../sluice.ts';

const TIMEOUT_MS = 60_000;
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
  symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
  for (const name of ['test', 'shared']) mkdirSync(join(folder.path, name));
  write('package.json', '{\n  "name": "small",\n  "type": "module"\n}\n');
  write('shared/sum.ts', 'export const sum = (a: number, b: number) => a + b;\n');
  write('test/good.test.ts', GOOD);
});
afterEach(() => folder[Symbol.dispose]());

function write(path: string, text: string) {
  writeFileSync(join(folder.path, path), text);
}

async function verified() {
  let out = '';
  const code = await verifyProject({ root: folder.path, env: plainEnv(), out: (text) => void (out += text) });
  const ends = out.match(/^\d+ passed, \d+ failed$/gm) ?? [];
  return { code, out, last: out.trimEnd().split('\n').at(-1), ends: ends.length };
}

describe('a verification', () => {
  test(
    'of a project in order runs every step and ends with one line of figures',
    async () => {
      const { out, ...rest } = await verified();
      expect(rest).toEqual({ code: 0, last: '1 passed, 0 failed', ends: 1 });
      expect(out.match(/^== .*$/gm)).toEqual(['== types', '== lint', '== format', '== tests']);
    },
    TIMEOUT_MS,
  );

  test.each([
    [
      'a test that fails',
      'test/bad.test.ts',
      "import { expect, test } from 'bun:test';\n\ntest('fails', () => expect(1).toBe(2));\n",
    ],
    ['a file that throws', 'test/bad.test.ts', "throw new Error('at once');\n"],
    ['a file that ends its process', 'test/bad.test.ts', "process.kill(process.pid, 'SIGKILL');\n"],
    ['a wrong type', 'test/wrong.ts', "export const wrong: number = 'text';\n"],
    ['a lint finding', 'test/lint.ts', 'export let anything: any;\n'],
    ['a format of its own', 'test/form.ts', 'export   const x = "y"\n'],
  ])(
    'counts %s as one failure and still runs the rest',
    async (_, path, text) => {
      write(path, text);
      const { code, out, last, ends } = await verified();
      expect([code, last, ends]).toEqual([1, '1 passed, 1 failed', 1]);
      if (path === 'test/bad.test.ts') expect(out.slice(-1_000)).toContain('test/bad.test.ts');
    },
    TIMEOUT_MS,
  );

  test(
    'of a runner that dies is a failure, never zero',
    async () => {
      write(
        'test/zz.test.ts',
        "import { test } from 'bun:test';\n\ntest('x', () => void process.kill(process.ppid, 'SIGKILL'));\n",
      );
      const { code, last, out } = await verified();
      expect([code, last]).toEqual([1, '0 passed, 1 failed']);
      expect(out).toContain('The test runner did not come to its end.');
    },
    TIMEOUT_MS,
  );
});

test('a step that takes too long is killed and says so', async () => {
  let out = '';
  const step = { title: 'waiting', command: ['sleep', '1000'], msMax: 100 };
  const end = await runStep(step, { root: folder.path, env: plainEnv(), out: (text) => void (out += text) });
  expect(end.code).toBeNull();
  expect(out).toContain('waiting was ended by SIGKILL, at most 0.1 s are allowed.');
});
