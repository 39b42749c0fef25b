import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createKeys, KEYS_MAX } from '../../../deploys/accounts/keys.ts';
import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_FILE } from '../../../shared/keys/schema.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { temporaryFolder } from '../../started/gateway.ts';
import { explained } from '../explained.ts';
import { BY, startBooks } from './books.ts';

const HOUR_MS = 3_600_000;
let books: ReturnType<typeof startBooks>;
let keys: (typeof books)['keys'];

function start(path?: string): void {
  books = startBooks(path);
  ({ keys } = books);
  books.store.run("INSERT INTO accounts (name, created_at_ms) VALUES ('a', 0), ('b', 0)");
}
beforeEach(() => start());
afterEach(() => books[Symbol.dispose]());

describe('the keys of an account are bounded', () => {
  const HOURS_25_MS = 25 * HOUR_MS;
  const add = (count: number) =>
    books.store.run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms)
       SELECT 'k' || i, 1, 'n', CAST(i AS BLOB), 'p', 'abcd', ${START_MS} FROM n`,
    );

  test('those that work, until one is revoked or a grace is over (§6 active keys of an account)', async () => {
    add(KEYS_MAX - 1);
    await books.clock.advance(HOURS_25_MS);
    const { id } = books.newKey();
    expect(keys.create('a', 'one more', BY)).toEqual({ kind: 'too-many' });
    expect(keys.rotate(id, HOUR_MS, BY)).toEqual({ kind: 'too-many' });
    expect(books.stateOf(id)).toBe('active');
    expect(books.newKey('b').account).toBe('b');
    keys.revoke('k1', BY);
    books.rotated(id, HOUR_MS);
    expect(keys.create('a', 'one more', BY)).toEqual({ kind: 'too-many' });
    await books.clock.advance(HOUR_MS);
    expect(books.newKey().account).toBe('a');
  });

  test('those that are made in 24 hours, revoked or not, but not those of the service itself', async () => {
    add(KEYS_MAX);
    books.store.run('UPDATE keys SET revoked_at_ms = 1');
    expect(keys.create('a', 'one more', BY)).toEqual({ kind: 'too-many' });
    books.store.run("UPDATE accounts SET name = 'sluice-watcher' WHERE id = 1");
    expect(books.newKey('sluice-watcher').account).toBe('sluice-watcher');
    books.store.run("UPDATE accounts SET name = 'a' WHERE id = 1");
    await books.clock.advance(HOURS_25_MS);
    expect(books.newKey().account).toBe('a');
  });

  test('and counted by index', () => {
    const counts = explained(books.store, (store) =>
      createKeys({ ...books, store, random: randomBytes, note: books.audit.note }),
    );
    expect(counts.filter(({ sql }) => sql.includes('count(*)')).map(({ steps }) => steps)).toEqual([
      [expect.stringMatching(/^SEARCH keys USING COVERING INDEX keys_working /)],
      [expect.stringMatching(/^SEARCH keys USING COVERING INDEX keys_of_account_by_age /)],
    ]);
  });
});

test('a form that is sent twice makes or rotates one key of an account, and says which', () => {
  const first = keys.create('a', 'main', BY, 'form');
  if (first.kind !== 'created') throw new Error(first.kind);
  const { id } = first.made;
  const before = { kind: 'made-before', id } as const;
  expect(keys.create('a', 'main', BY, 'form')).toEqual(before);
  expect(keys.rotate(id, HOUR_MS, BY, undefined, 'form')).toEqual(before);
  expect([keys.list('a').length, books.stateOf(id), books.noted().length]).toEqual([1, 'active', 1]);
  const next = keys.rotate(id, HOUR_MS, BY, undefined, 'other form');
  if (next.kind !== 'rotated') throw new Error(next.kind);
  const again = keys.rotate(id, 0, BY, undefined, 'other form');
  expect(again).toEqual({ kind: 'made-before', id: next.made.id });
  expect([keys.list('a').length, books.stateOf(id)]).toEqual([2, 'expiring']);
  expect(keys.create('b', 'main', BY, 'form').kind).toBe('created');
});

describe('a new key', () => {
  test('is well formed, named by its hash, listed without being shown, and stands nowhere in the database (§1.2)', () => {
    const { key, id, account, name } = books.newKey();
    expect([readApiKey(key), id, account, name]).toEqual([key, keyIdOf(hashOf(key)), 'a', 'main']);
    expect(keys.list()).toEqual([
      {
        id,
        account: 'a',
        accountId: 1,
        name: 'main',
        prefix: key.slice(0, 11),
        last4: key.slice(-4),
        state: 'active',
        createdAtMs: START_MS,
        lastUsedAtMs: undefined,
        expiresAtMs: undefined,
      },
    ]);
    books.store.run('UPDATE keys SET last_used_at_ms = 5');
    expect(keys.find(id)?.lastUsedAtMs).toBe(5);
    const bytes = books.store.serialize();
    expect([bytes.includes(key.slice(0, 11)), bytes.includes(key.slice(7, 39))]).toEqual([true, false]);
  });
  test('needs an account and a name that can be read, and can have another', () => {
    expect(keys.create('nobody', 'main', BY)).toEqual({ kind: 'unknown-account' });
    expect(keys.create('a', '', BY)).toEqual({ kind: 'bad-name' });
    expect(keys.list()).toEqual([]);
    const { id } = books.newKey();
    expect(keys.rename(id, '', BY)).toEqual({ kind: 'bad-name' });
    expect(keys.rename(id, 'bot', BY)).toMatchObject({ kind: 'renamed', row: { name: 'bot' } });
    expect(keys.find(id)?.name).toBe('bot');
  });
});

test('a key of another account, and one that is not there, is unknown to whoever acts for one account', () => {
  const { id } = books.newKey();
  expect([keys.find(id, 2), keys.find(id, 1)?.name]).toEqual([undefined, 'main']);
  for (const [key, owner] of [
    [id, 2],
    ['0123456789abcdef', undefined],
  ] as const) {
    expect(keys.rename(key, 'x', BY, owner).kind).toBe('unknown-key');
    expect(keys.rotate(key, 0, BY, owner).kind).toBe('unknown-key');
    expect(keys.revoke(key, BY, owner).kind).toBe('unknown-key');
  }
  expect(keys.list()).toMatchObject([{ name: 'main', state: 'active' }]);
});

test('a revocation is at once, leaves the other keys, and once more says so', () => {
  const [one, two] = [books.newKey(), books.newKey()];
  expect(keys.revoke(one.id, BY)).toMatchObject({ kind: 'revoked', row: { id: one.id, state: 'revoked' } });
  expect([books.stateOf(one.id), books.stateOf(two.id)]).toEqual(['revoked', 'active']);
  expect(keys.revoke(one.id, BY)).toMatchObject({ kind: 'already-revoked' });
});

describe('a rotation', () => {
  test('makes a key of the same name and lets the old one end after the grace, to the millisecond', async () => {
    const old = books.newKey('a', 'bot');
    const { made: next, oldExpiresAtMs } = books.rotated(old.id, 24 * HOUR_MS);
    expect([next.name, next.account, next.key === old.key]).toEqual(['bot', 'a', false]);
    expect(oldExpiresAtMs).toBe(START_MS + 24 * HOUR_MS);
    expect([books.stateOf(old.id), books.stateOf(next.id)]).toEqual(['expiring', 'active']);
    await books.clock.advance(24 * HOUR_MS - 1);
    expect(books.stateOf(old.id)).toBe('expiring');
    await books.clock.advance(1);
    expect([books.stateOf(old.id), books.stateOf(next.id)]).toEqual(['expired', 'active']);
  });
  test('of a key that is expiring never makes it live longer, but may end it sooner, even now', () => {
    const { id } = books.newKey();
    const expiries = [HOUR_MS, 5 * HOUR_MS, 1_000, 0].map(
      (graceMs) => books.rotated(id, graceMs).oldExpiresAtMs,
    );
    expect(expiries.map((atMs) => atMs - START_MS)).toEqual([HOUR_MS, HOUR_MS, 1_000, 0]);
    expect(books.stateOf(id)).toBe('expired');
  });
  test('of a key that has ended is refused, and makes no key', () => {
    const [expired, revoked] = [books.newKey(), books.newKey()];
    books.rotated(expired.id, 0);
    keys.revoke(revoked.id, BY);
    const before = keys.list().length;
    expect(keys.rotate(expired.id, HOUR_MS, BY)).toEqual({ kind: 'ended', state: 'expired' });
    expect(keys.rotate(revoked.id, HOUR_MS, BY)).toEqual({ kind: 'ended', state: 'revoked' });
    expect(keys.list()).toHaveLength(before);
    keys.revoke(expired.id, BY);
    expect(books.stateOf(expired.id)).toBe('revoked');
  });
  test('by two processes at once leaves two working keys, never none', () => {
    using folder = temporaryFolder();
    books[Symbol.dispose]();
    start(join(folder.path, ACCOUNTS_FILE));
    const { id } = books.newKey();
    using elsewhere = startBooks(join(folder.path, ACCOUNTS_FILE));
    books.rotated(id, HOUR_MS);
    elsewhere.rotated(id, 0);
    const states = keys.list().map(({ state }) => state);
    expect(states.toSorted()).toEqual(['active', 'active', 'expired']);
  });
});
