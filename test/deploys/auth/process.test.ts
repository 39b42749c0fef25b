import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WEBHOOKS_PATH } from '../../../deploys/api/webhook-routes.ts';
import { argon2id } from '../../../deploys/auth/passwords.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import type { Store } from '../../../shared/store/open.ts';
import { addKey, opened, temporaryFolder } from '../../started/gateway.ts';
import { ROOT, type Started, startProcess } from '../../started/process.ts';
import { createVisitor, logIn, PASSWORD, type Visitor } from './people.ts';

const folder = temporaryFolder();
let store: Store;
let deploys: Started & AsyncDisposable;
let visitor: Visitor;

beforeAll(async () => {
  const dataDir = join(folder.path, 'data');
  const config = join(folder.path, 'sluice.toml');
  writeFileSync(
    config,
    `[storage]\ndata_dir = "${dataDir}"\n[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\nrpc_urls = ["http://127.0.0.1:1"]\nclient_address_header = "x-real-ip"\n`,
  );
  store = opened(join(dataDir, ACCOUNTS_FILE), { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  addKey(store, 'trial');
  const hash = await argon2id.hash(PASSWORD);
  store.run(
    `INSERT INTO users (id, email, role, account_id, password_hash, created_at_ms)
     SELECT 'bob', 'bob@example.com', 'customer', id, ?, 0 FROM accounts`,
    [hash],
  );
  deploys = await startProcess([join(ROOT, 'deploys/main.ts'), '--config', config], folder.path);
  visitor = createVisitor(deploys.url.origin, (request) => fetch(request, { redirect: 'manual' }));
}, 20_000);
afterAll(async () => {
  await deploys[Symbol.asyncDispose]();
  store.close();
  folder[Symbol.dispose]();
});

describe('the app as it is started', () => {
  test('lets a login read and change webhooks, a change from its own pages alone, and not with a wrong key', async () => {
    expect((await visitor.get(WEBHOOKS_PATH)).status).toBe(401);
    expect((await logIn(visitor, 'bob@example.com')).status).toBe(303);
    expect((await visitor.get(WEBHOOKS_PATH)).status).toBe(200);
    const withWrongKey = await visitor.get(WEBHOOKS_PATH, { 'x-token': 'sluice_wrong' });
    expect(await withWrongKey.json()).toEqual({ error: 'Invalid or inactive API key' });
    const change = (headers: Record<string, string>) =>
      visitor.send(WEBHOOKS_PATH, { method: 'POST', headers, body: '{"url":"http://not.https"}' });
    expect((await change({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await change({})).status).toBe(403);
    expect((await change({ 'sec-fetch-site': 'same-origin' })).status).toBe(422);
  });

  test('slows guesses at one login down from many addresses', async () => {
    const guesses = Array.from({ length: 11 }, (_, i) =>
      visitor.post(
        '/login',
        { email: 'eve@example.com', password: 'wrong' },
        { 'sec-fetch-site': 'same-origin', 'x-real-ip': `192.0.2.${i}` },
      ),
    );
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([...Array(10).fill(401), 429]);
  }, 30_000);
});
