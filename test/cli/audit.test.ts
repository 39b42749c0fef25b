import { afterAll, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../started/gateway.ts';
import { objectsOf, sluice } from './sluice.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
writeFileSync(join(folder.path, 'sluice.toml'), '[storage]\ndata_dir = "data"\n');
const run = (...args: string[]) => sluice(folder.path, args);

test('audit tells what was changed, the newest first, by whom, and of one account alone', async () => {
  await run('account', 'create', 'acme');
  await run('account', 'create', 'joe');
  await run('account', 'suspend', 'joe');
  expect(objectsOf(await run('audit', '--json'))).toMatchObject([
    { by: 'command line', action: 'account.suspend', account: 'joe', detail: {} },
    { action: 'account.create', account: 'joe', detail: { name: 'joe', plan: 'trial' } },
    { action: 'account.create', account: 'acme' },
  ]);
  const own = await run('audit', '--account', 'acme');
  expect(own.out).toMatch(/^AT +BY +ACTION +ACCOUNT +DETAIL\n20[^\n]* command line +account.create +acme /);
  expect(own.out).not.toContain('joe');
  const none = await run('audit', '--account', 'nobody');
  expect([none.code, none.err]).toEqual([
    1,
    'There is no account named "nobody"; account list shows them.\n',
  ]);
}, 30_000);
