import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Books, withBooksOf } from '../../../cli/books.ts';
import { demoKey as readDemoKey } from '../../../cli/start/demo.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { retireDemoKeys } from '../../../shared/keys/demo.ts';
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
function withDemo<T>(act: (books: Books) => T): T {
  const config = configFrom({ storage: { data_dir: folder.path } }, {});
  if (config.kind === 'problems') throw new Error('the config has problems');
  const given: T[] = [];
  const outcome = withBooksOf(
    config.config,
    { clock: createVirtualClock(), random: randomBytes, err: () => undefined },
    (books) => {
      given.push(act(books));
      return { kind: 'ended', code: 0 };
    },
    'make',
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

describe('the demo key', () => {
  test('is made at the first start, for an account that is not refused after five calls', () => {
    const key = withDemo(demoKey);
    expect(readApiKey(key)).toBeDefined();
    expect(withDemo(({ accounts }) => accounts.list())).toMatchObject([{ name: 'demo', plan: 'pro' }]);
    expect([readFileSync(file(), 'utf8'), statSync(file()).mode & 0o777]).toEqual([`${key}\n`, 0o600]);
  });
  test('is the same at the next start', () => {
    const key = withDemo(demoKey);
    expect(withDemo(demoKey)).toBe(key);
    expect(withDemo(({ keys }) => keys.list())).toHaveLength(1);
  });
  test('is made anew when it was revoked, and the account stays as the operator set it', () => {
    const key = withDemo(demoKey);
    const known = readApiKey(key);
    if (known === undefined) throw new Error('no key');
    withDemo(({ accounts, keys }) => {
      accounts.set('demo', { plan: { name: 'trial' } }, BY);
      return keys.revoke(keyIdOf(hashOf(known)), BY);
    });
    expect(withDemo(demoKey)).not.toBe(key);
    expect(withDemo(({ accounts }) => accounts.find('demo')?.plan)).toBe('trial');
  });
  test.each(['', 'nonsense\n', 'sluice_00000000000000000000000000000000000000\n'])(
    'is made anew when its file says %j',
    (text) => {
      const key = withDemo(demoKey);
      writeFileSync(file(), text);
      chmodSync(file(), 0o644);
      const next = withDemo(demoKey);
      expect(next).not.toBe(key);
      expect([readFileSync(file(), 'utf8'), statSync(file()).mode & 0o777]).toEqual([`${next}\n`, 0o600]);
    },
  );
  test('P4 is not made in an account that somebody else made', () => {
    const user = { kind: 'user', userId: 'u' } as const;
    withDemo(({ accounts }) => accounts.own('demo', 'trial', user));
    expect(withDemo(readDemoKey)).toEqual({ kind: 'name-taken' });
    expect(withDemo(({ keys }) => keys.list())).toEqual([]);
  });
  test('of another account is not taken for the demo', () => {
    const other = withDemo(({ accounts, keys }) => {
      accounts.create('customer', 'pro', BY);
      const created = keys.create('customer', 'own', BY);
      return created.kind === 'created' ? created.made.key : '';
    });
    writeFileSync(file(), other);
    expect(withDemo(demoKey)).not.toBe(other);
  });
});

test('with real backends the demo key is revoked, once', () => {
  const key = withDemo(demoKey);
  expect(withDemo(({ store }) => retireDemoKeys(store, 1))).toBe(1);
  expect(withDemo(({ keys }) => keys.list('demo').map(({ state }) => state))).toEqual(['revoked']);
  expect(withDemo(({ store }) => retireDemoKeys(store, 1))).toBe(0);
  expect(withDemo(demoKey)).not.toBe(key);
});
