import { describe, expect, test } from 'bun:test';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../started/gateway.ts';
import { ROOT } from '../started/process.ts';
import { shared } from '../started/shared.ts';
import { ENTRIES, EXAMPLES, startExamples, TEST_MS_MAX } from './examples.ts';

const MODULES = ['send-and-confirm', 'polling-connection'];
const { run } = shared(await startExamples());
const folder = shared(temporaryFolder());
symlinkSync(join(ROOT, 'node_modules'), join(folder.path, 'node_modules'));
for (const name of [...MODULES, ...ENTRIES.map(([entry]) => entry)])
  writeFileSync(join(folder.path, `${name}.mjs`), javascript(`${name}.ts`));

/** An example without its types, for a Node that reads none. */
function javascript(name: string): string {
  const code = readFileSync(join(EXAMPLES, name), 'utf8');
  const stripped = new Bun.Transpiler({ loader: 'ts', target: 'node' }).transformSync(code);
  return stripped.replaceAll(/(['"])(\.\/[a-z-]+)\.ts\1/g, '$1$2.mjs$1');
}

const hasNode = Bun.which('node') !== null;
if (!hasNode) console.log('The examples are not tested on Node: there is none here.');

describe.concurrent('each example in TypeScript runs as it stands', () => {
  test.skipIf(!hasNode).each(ENTRIES)(
    '%s on Node',
    async (name, shape) => {
      expect(await run(['node', `${name}.mjs`], folder.path)).toMatch(shape);
    },
    TEST_MS_MAX,
  );
});
