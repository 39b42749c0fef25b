import { describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { issueOwnKey, needsOwnKey, watcherPlan } from '../../../deploys/accounts/own-key.ts';
import { PROGRAMS_PATH } from '../../../deploys/api/programs.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { type Plan, PLANS_BY_DEFAULT } from '../../../shared/config/plans.ts';
import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { addressOf, startChain } from '../../fakes/chain.ts';
import { addKey, opened, temporaryFolder } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';
import { freePort } from '../../started/ports.ts';
import { ROOT, startProcess } from '../../started/process.ts';
import { AUTHORITY } from '../started.ts';
import { BY, plan, startBooks } from './books.ts';

const BACKENDS = [{ name: 'one', url: 'http://127.0.0.1:1' }];
const ELSEWHERE = 'http://10.0.0.1:8899';
const TLS = { tls: { cert: 'c.pem', key: 'k.pem' } };
const plans = new Map(Object.entries(PLANS_BY_DEFAULT));

test.each<[string, object, boolean]>([
  ['only backends', { backends: BACKENDS }, true],
  ['the gateway elsewhere on this host', { backends: BACKENDS, gateway: { listen: '0.0.0.0:9000' } }, true],
  ['the gateway over TLS', { backends: BACKENDS, gateway: TLS }, true],
  ['nothing: the embedded chain asks for no key', {}, false],
  ['a key', { backends: BACKENDS, deploys: { rpc_key: 'k' } }, false],
  ['another place to read', { backends: BACKENDS, deploys: { rpc_urls: [ELSEWHERE] } }, false],
  [
    'the gateway and another place, which must not see the key',
    { backends: BACKENDS, deploys: { rpc_urls: ['http://127.0.0.1:8899', ELSEWHERE] } },
    false,
  ],
])('with %s in the config a key of its own is needed or not: %#', (_, document, expected) => {
  const result = configFrom(document, {});
  if (result.kind === 'problems') throw new Error(JSON.stringify(result.problems));
  expect(needsOwnKey(result.config)).toBe(expected);
});

test('the plan has the highest rate, of those without a credit limit where there are some', () => {
  const best = (entries: Record<string, Plan>) => watcherPlan(new Map(Object.entries(entries)));
  expect(best({ slow: plan(1), fast: plan(9), mid: plan(5), trial: plan(99, 10) })).toBe('fast');
  expect(best({ a: plan(1, 10), b: plan(2, 10) })).toBe('b');
  expect(best({})).toBeUndefined();
});

describe('issuing', () => {
  function start() {
    const books = startBooks(':memory:', plans);
    const { store, clock } = books;
    const tryIssue = (among: ReadonlyMap<string, Plan> = plans) =>
      issueOwnKey({ store, plans: among, clock, random: randomBytes });
    function issue(among?: ReadonlyMap<string, Plan>) {
      const issued = tryIssue(among);
      if (issued.kind !== 'issued') throw new Error(issued.kind);
      return issued.key;
    }
    return { ...books, tryIssue, issue };
  }
  const idOf = (key: string) => {
    const read = readApiKey(key);
    if (read === undefined) throw new Error('it is no key');
    return keyIdOf(hashOf(read));
  };

  test('gives an active key of the account sluice-watcher on its best plan, which is nowhere to be read afterwards', () => {
    using started = start();
    const key = started.issue();
    expect(started.keys.list('sluice-watcher')).toMatchObject([
      { id: idOf(key.reveal()), state: 'active', name: 'issued at start' },
    ]);
    expect(started.accounts.list()).toMatchObject([{ name: 'sluice-watcher', plan: 'scale' }]);
    expect(Buffer.from(started.store.serialize()).includes(key.reveal())).toBe(false);
    expect(`${key}${JSON.stringify({ key })}`).not.toContain(key.reveal());
    started.issue(new Map([['only', plan(3)]]));
    expect(started.accounts.list()).toMatchObject([{ plan: 'only' }]);
  });

  test('revokes the key of the start before, and leaves the keys of others alone', async () => {
    using started = start();
    started.store.run("INSERT INTO accounts (name, created_at_ms) VALUES ('other', 0)");
    started.keys.create('other', 'main', BY);
    const first = started.issue();
    await started.clock.advance(1);
    const second = started.issue();
    expect(first.reveal()).not.toBe(second.reveal());
    const states = started.keys.list().map(({ id, account, state }) => [account, id, state]);
    expect(states).toContainEqual(['sluice-watcher', idOf(first.reveal()), 'revoked']);
    expect(states).toContainEqual(['sluice-watcher', idOf(second.reveal()), 'active']);
    expect(states.filter(([account]) => account === 'other').map(([, , state]) => state)).toEqual(['active']);
  });

  test('P4 takes over no account that somebody else made', () => {
    using started = start();
    const { store, accounts, keys } = started;
    accounts.own('sluice-watcher', 'trial', { kind: 'user', userId: 'u' });
    keys.create('sluice-watcher', 'main', BY);
    expect(started.tryIssue()).toEqual({ kind: 'name-taken' });
    expect(keys.list()).toMatchObject([{ name: 'main', state: 'active' }]);
    expect(accounts.find('sluice-watcher')).toMatchObject({ plan: 'trial' });
    expect(accounts.rename('sluice-watcher', 'theirs', BY)).toMatchObject({ kind: 'account' });
    expect(started.tryIssue().kind).toBe('issued');
    expect(store.query('SELECT name, plan FROM accounts').all()).toEqual([
      { name: 'theirs', plan: 'trial' },
      { name: 'sluice-watcher', plan: 'scale' },
    ]);
  });
});

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
  await using deploys = await folder.start('deploys');
  const store = folder.store();
  const timed = store.query('SELECT 1 FROM block_times');
  await waited(() => timed.get() !== null);
  const headers = { 'x-token': addKey(store, null) };
  const answer = await fetch(new URL(PROGRAMS_PATH, deploys.url), { headers });
  expect(await answer.json()).toMatchObject({
    programs: [{ program_id: program, deploy_slot: 5, deployed_at: '2023-11-14T22:13:20Z' }],
  });
  store.close();
  expect(chain.calls.every(({ headers: seen }) => !seen.has('x-token'))).toBe(true);
}, 30_000);
