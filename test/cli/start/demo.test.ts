import { afterEach, beforeEach, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Books, withBooks } from '../../../cli/frame/books.ts';
import { demoKeyOf } from '../../../cli/commands/start.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { retireDemoKeys } from '../../../shared/keys/schema.ts';
import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { temporaryFolder } from '../../started/gateway.ts';

const BY = { kind: 'command-line' } as const;

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

/** Opens the books as `start` does, once per call. */
async function withDemo<T>(act: (books: Books) => T): Promise<T> {
  const config = configFrom({ storage: { data_dir: folder.path } }, {});
  if (config.kind === 'problems') throw new Error('the config has problems');
  const world = { clock: createVirtualClock(), random: randomBytes, err: () => undefined };
  const given = await withBooks(
    config.config,
    world,
    (books) => ({ kind: 'given', value: act(books) }),
    'create',
  );
  if ('lines' in given) throw new Error(given.lines.join());
  return given.value;
}

const file = () => join(folder.path, 'demo-key');

test('the demo key is created at the first start, on a plan that allows more than five calls a second, and kept', async () => {
  const key = (await withDemo(demoKeyOf)) ?? '';
  expect(readApiKey(key)).toBeDefined();
  expect(await withDemo(({ accounts }) => accounts.list())).toMatchObject([{ name: 'demo', plan: 'pro' }]);
  expect([readFileSync(file(), 'utf8'), statSync(file()).mode & 0o777]).toEqual([`${key}\n`, 0o600]);
  expect(await withDemo(demoKeyOf)).toBe(key);
  expect(await withDemo(({ keys }) => keys.list())).toHaveLength(1);
});

test('a revoked demo key is replaced, and the account stays as the operator set it', async () => {
  const key = await withDemo(demoKeyOf);
  const known = readApiKey(key ?? '');
  if (known === undefined) throw new Error('no key');
  await withDemo(({ accounts, keys }) => {
    accounts.set('demo', { plan: { name: 'trial' } }, BY);
    return keys.revoke(keyIdOf(hashOf(known)), BY);
  });
  expect(await withDemo(demoKeyOf)).not.toBe(key);
  expect(await withDemo(({ accounts }) => accounts.find('demo')?.plan)).toBe('trial');
});

test.each(['', 'sluice_00000000000000000000000000000000000000\n'])(
  'the demo key is replaced when its file says %j',
  async (text) => {
    const key = await withDemo(demoKeyOf);
    writeFileSync(file(), text);
    chmodSync(file(), 0o644);
    const next = await withDemo(demoKeyOf);
    expect(next).not.toBe(key);
    expect([readFileSync(file(), 'utf8'), statSync(file()).mode & 0o777]).toEqual([`${next}\n`, 0o600]);
  },
);

test('P4 no demo key is created in an account that somebody else created', async () => {
  const user = { kind: 'user', userId: 'u' } as const;
  await withDemo(({ accounts }) => accounts.own('demo', 'trial', user));
  expect(await withDemo(demoKeyOf)).toBeUndefined();
  expect(await withDemo(({ keys }) => keys.list())).toEqual([]);
});

test('with real backends the demo key is revoked, once', async () => {
  const key = await withDemo(demoKeyOf);
  expect(await withDemo(({ store }) => retireDemoKeys(store, 1))).toBe(1);
  expect(await withDemo(({ keys }) => keys.list('demo').map(({ state }) => state))).toEqual(['revoked']);
  expect(await withDemo(({ store }) => retireDemoKeys(store, 1))).toBe(0);
  expect(await withDemo(demoKeyOf)).not.toBe(key);
});
