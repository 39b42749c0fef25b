import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROGRAMS_PATH } from '../../deploys/api/programs.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { addressOf, startChain } from '../fakes/chain.ts';
import { addKey, opened, temporaryFolder } from '../started/gateway.ts';
import { freePort } from '../started/ports.ts';
import { ROOT, startProcess } from '../started/process.ts';
import { AUTHORITY } from './started.ts';

const program = addressOf('A');

/** One config for both apps, with backends and nothing about what deploys reads through. */
async function configured(backend: URL) {
  const folder = temporaryFolder();
  const config = join(folder.path, 'sluice.toml');
  writeFileSync(join(folder.path, 'programs.json'), JSON.stringify([{ program_id: program, label: 'A' }]));
  writeFileSync(
    config,
    `[storage]\ndata_dir = "${folder.path}/data"\n[gateway]\nlisten = "127.0.0.1:${freePort()}"\n` +
      'metrics = "127.0.0.1:0"\n[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\n' +
      `programs = "programs.json"\n[[backends]]\nname = "chain"\nurl = "${backend.href}"\n`,
  );
  const start = (app: string) => startProcess([join(ROOT, app, 'main.ts'), '--config', config], folder.path);
  const store = () => opened(join(folder.path, 'data', ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  return { path: folder.path, start, store, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}

test('with backends alone in the config, deploys reads through the gateway with a key it issued itself', async () => {
  await using chain = startChain();
  chain.deploy(program, 5, AUTHORITY);
  chain.blockTimes.set(5, 1_700_000_000);
  using folder = await configured(chain.url);
  await using _gateway = await folder.start('gateway');
  const first = await folder.start('deploys');
  const store = folder.store();
  const headers = { 'x-token': addKey(store, null) };
  const timed = [{ program_id: program, deploy_slot: 5, deployed_at: '2023-11-14T22:13:20Z' }];
  expect(await timedAnswer(first.url, headers)).toMatchObject({ programs: timed });
  expect(chain.calls.every(({ headers: seen }) => !seen.has('x-token'))).toBe(true);

  await first[Symbol.asyncDispose]();
  await using second = await folder.start('deploys');
  expect(await timedAnswer(second.url, headers)).toMatchObject({ programs: timed });
  const keys = store.query(
    "SELECT revoked_at_ms IS NOT NULL AS ended FROM keys WHERE name <> 'test' ORDER BY 1",
  );
  expect(keys.all()).toEqual([{ ended: 0 }, { ended: 1 }]);
  store.close();
}, 30_000);

/** Asks until the deploy time is known; the test's own timeout bounds it. Few enough questions for the key's minute. */
async function timedAnswer(url: URL, headers: Record<string, string>): Promise<object> {
  for (;;) {
    const response = await fetch(new URL(PROGRAMS_PATH, url), { headers });
    const text = await response.text();
    if (response.status === 200 && !text.includes('"deployed_at":null')) return JSON.parse(text);
    await Bun.sleep(500); // between two questions to another process
  }
}
