import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Books, withBooksOf } from '../../../cli/frame/books.ts';
import { demoKey as readDemoKey } from '../../../cli/commands/start.ts';
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
  const given: T[] = [];
  const outcome = await withBooksOf(
    config.config,
    { clock: createVirtualClock(), random: randomBytes, err: () => undefined },
    (books) => {
      given.push(act(books));
      return { kind: 'ended', code: 0 };
    },
    'create',
  );
  const [first] = given;
  if (first === undefined) throw new Error(JSON.stringify(outcome));
  return first;
}

function demoKey(books: Books): string {
  const demo = readDemoKey(books);
  if (demo.kind !== 'key') throw new Error(demo.kind);
  return demo.key;
}

const file = () => join(folder.path, 'demo-key');

describe('the demo key', async () => {
  test('is made at the first start, for an account that is not refused after five calls', async () => {
    const key = await withDemo(demoKey);
    expect(readApiKey(key)).toBeDefined();
    expect(await withDemo(({ accounts }) => accounts.list())).toMatchObject([{ name: 'demo', plan: 'pro' }]);
    expect([readFileSync(file(), 'utf8'), statSync(file()).mode & 0o777]).toEqual([`${key}\n`, 0o600]);
  });
  test('is the same at the next start', async () => {
    const key = await withDemo(demoKey);
    expect(await withDemo(demoKey)).toBe(key);
    expect(await withDemo(({ keys }) => keys.list())).toHaveLength(1);
  });
  test('is made anew when it was revoked, and the account stays as the operator set it', async () => {
    const key = await withDemo(demoKey);
    const known = readApiKey(key);
    if (known === undefined) throw new Error('no key');
    await withDemo(({ accounts, keys }) => {
      accounts.set('demo', { plan: { name: 'trial' } }, BY);
      return keys.revoke(keyIdOf(hashOf(known)), BY);
    });
    expect(await withDemo(demoKey)).not.toBe(key);
    expect(await withDemo(({ accounts }) => accounts.find('demo')?.plan)).toBe('trial');
  });
  test.each(['', 'nonsense\n', 'sluice_00000000000000000000000000000000000000\n'])(
    'is made anew when its file says %j',
    async (text) => {
      const key = await withDemo(demoKey);
      writeFileSync(file(), text);
      chmodSync(file(), 0o644);
      const next = await withDemo(demoKey);
      expect(next).not.toBe(key);
      expect([readFileSync(file(), 'utf8'), statSync(file()).mode & 0o777]).toEqual([`${next}\n`, 0o600]);
    },
  );
  test('P4 is not made in an account that somebody else made', async () => {
    const user = { kind: 'user', userId: 'u' } as const;
    await withDemo(({ accounts }) => accounts.own('demo', 'trial', user));
    expect(await withDemo(readDemoKey)).toEqual({ kind: 'name-taken' });
    expect(await withDemo(({ keys }) => keys.list())).toEqual([]);
  });
  test('of another account is not taken for the demo', async () => {
    const other = await withDemo(({ accounts, keys }) => {
      accounts.create('customer', 'pro', BY);
      const created = keys.create('customer', 'own', BY);
      return created.kind === 'created' ? created.made.key : '';
    });
    writeFileSync(file(), other);
    expect(await withDemo(demoKey)).not.toBe(other);
  });
});

test('with real backends the demo key is revoked, once', async () => {
  const key = await withDemo(demoKey);
  expect(await withDemo(({ store }) => retireDemoKeys(store, 1))).toBe(1);
  expect(await withDemo(({ keys }) => keys.list('demo').map(({ state }) => state))).toEqual(['revoked']);
  expect(await withDemo(({ store }) => retireDemoKeys(store, 1))).toBe(0);
  expect(await withDemo(demoKey)).not.toBe(key);
});
