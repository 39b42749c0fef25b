import { expect, test } from 'bun:test';
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WEBHOOKS_PATH } from '../../../deploys/api/webhook-routes.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { addKey, opened, temporaryFolder } from '../../started/gateway.ts';
import { ROOT, runToEnd, startProcess } from '../../started/process.ts';

const PUBLIC_ADDRESS = 'https://93.184.215.14/hook';

/** A data directory with a key, and how to start the app on it. */
function prepared() {
  const folder = temporaryFolder();
  const [config, dataDir] = [join(folder.path, 'sluice.toml'), join(folder.path, 'data')];
  const deploys = 'listen = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\nrpc_urls = ["http://127.0.0.1:1"]';
  writeFileSync(config, `[storage]\ndata_dir = "${dataDir}"\n[deploys]\n${deploys}\n`);
  const store = opened(join(dataDir, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const headers = { 'x-token': addKey(store, null) };
  store.close();
  const args = [join(ROOT, 'deploys/main.ts'), '--config', config];
  return {
    dataDir,
    start: () => startProcess(args, folder.path),
    refused: () => runToEnd(args, folder.path),
    ask: async (base: URL, method: string, body?: string) => {
      const init = { method, headers, ...(body !== undefined && { body }) };
      const response = await fetch(new URL(WEBHOOKS_PATH, base), init);
      const text = await response.text();
      return { status: response.status, text };
    },
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  };
}

test('the app as it is started keeps webhooks, their secrets only sealed, its key for itself, and no endless body', async () => {
  using place = prepared();
  await using app = await place.start();
  const long = JSON.stringify({ url: PUBLIC_ADDRESS, description: 'x'.repeat(70_000) });
  expect((await place.ask(app.url, 'POST', long)).status).toBe(413);
  const made = await place.ask(app.url, 'POST', JSON.stringify({ url: PUBLIC_ADDRESS }));
  expect(made.status).toBe(201);
  const { secret, webhook } = JSON.parse(made.text);
  expect(secret).toMatch(/^whsec_[0-9a-f]{64}$/);
  expect(statSync(join(place.dataDir, 'secret')).mode & 0o777).toBe(0o600);
  for (const file of readdirSync(place.dataDir))
    expect([file, readFileSync(join(place.dataDir, file)).includes(secret)]).toEqual([file, false]);
  app.kill('SIGKILL');
  await app.exited;
  await using again = await place.start();
  expect(await place.ask(again.url, 'GET')).toEqual({
    status: 200,
    text: JSON.stringify({ webhooks: [webhook] }),
  });
});

test('a backup without its sealing key is not started on, and is once the key is there', async () => {
  using place = prepared();
  const secretPath = join(place.dataDir, 'secret');
  {
    await using app = await place.start();
    expect((await place.ask(app.url, 'POST', JSON.stringify({ url: PUBLIC_ADDRESS }))).status).toBe(201);
  }
  renameSync(secretPath, `${secretPath}.elsewhere`);
  const { code, stderr } = await place.refused();
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('the secrets of 1 webhooks are encrypted with its key'),
  ]);
  renameSync(`${secretPath}.elsewhere`, secretPath);
  await using again = await place.start();
  expect((await place.ask(again.url, 'GET')).status).toBe(200);
});
