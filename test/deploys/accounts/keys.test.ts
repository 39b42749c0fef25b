import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ChangeNote } from '../../../deploys/accounts/audit.ts';
import { createKeys, KEYS_MAX } from '../../../deploys/accounts/keys.ts';
import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';
import { explained } from '../explained.ts';

const BY = { kind: 'command-line' } as const;

const HOUR_MS = 3_600_000;
let folder: ReturnType<typeof temporaryFolder>;
let store: ReturnType<typeof opened>;
let clock: ReturnType<typeof createVirtualClock>;
let notes: ChangeNote[];
let keys: ReturnType<typeof createKeys>;

beforeEach(() => {
  folder = temporaryFolder();
  store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  store.run("INSERT INTO accounts (name, created_at_ms) VALUES ('a', 0), ('b', 0)");
  clock = createVirtualClock();
  notes = [];
  keys = createKeys({ store, clock, random: randomBytes, note: (each) => void notes.push(each) });
});
afterEach(() => {
  store.close();
  folder[Symbol.dispose]();
});

function made(account = 'a', name = 'main') {
  const result = keys.create(account, name, BY);
  if (result.kind !== 'created') throw new Error(result.kind);
  return result.made;
}

function rotated(id: string, graceMs: number) {
  const result = keys.rotate(id, graceMs, BY);
  if (result.kind !== 'rotated') throw new Error(result.kind);
  return result;
}

const stateOf = (id: string) => keys.find(id)?.state;

describe('the keys of an account are bounded', () => {
  const HOURS_25_MS = 25 * HOUR_MS;
  const add = (count: number) =>
    store.run(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
       INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms)
       SELECT 'k' || i, 1, 'n', CAST(i AS BLOB), 'p', 'abcd', ${START_MS} FROM n`,
    );

  test('those that work, until one is revoked or a grace is over', async () => {
    add(KEYS_MAX - 1);
    await clock.advance(HOURS_25_MS);
    const { id } = made();
    expect(keys.create('a', 'one more', BY)).toEqual({ kind: 'too-many' });
    expect(keys.rotate(id, HOUR_MS, BY)).toEqual({ kind: 'too-many' });
    expect(stateOf(id)).toBe('active');
    expect(made('b').account).toBe('b');
    keys.revoke('k1', BY);
    rotated(id, HOUR_MS);
    expect(keys.create('a', 'one more', BY)).toEqual({ kind: 'too-many' });
    await clock.advance(HOUR_MS);
    expect(made().account).toBe('a');
  });

  test('those that are made in 24 hours, revoked or not', async () => {
    add(KEYS_MAX);
    store.run('UPDATE keys SET revoked_at_ms = 1');
    expect(keys.create('a', 'one more', BY)).toEqual({ kind: 'too-many' });
    await clock.advance(HOURS_25_MS);
    expect(made().account).toBe('a');
  });

  test('not of the account that the service makes a key for at each of its starts', () => {
    store.run("UPDATE accounts SET name = 'sluice-watcher' WHERE id = 1");
    add(KEYS_MAX);
    expect(made('sluice-watcher').account).toBe('sluice-watcher');
  });

  test('and counted by index', () => {
    const counts = explained(store, (listening) =>
      createKeys({ store: listening, clock, random: randomBytes, note: () => undefined }),
    ).filter(({ sql }) => sql.includes('count(*)'));
    expect(counts.map(({ steps }) => steps)).toEqual([
      [expect.stringMatching(/^SEARCH keys USING COVERING INDEX keys_working /)],
      [expect.stringMatching(/^SEARCH keys USING COVERING INDEX keys_of_account_by_age /)],
    ]);
  });
});

describe('a form that is sent twice', () => {
  test('makes one key, and says which', () => {
    const first = keys.create('a', 'main', BY, 'form');
    if (first.kind !== 'created') throw new Error(first.kind);
    const before = { kind: 'made-before', id: first.made.id } as const;
    expect(keys.create('a', 'main', BY, 'form')).toEqual(before);
    expect(keys.rotate(first.made.id, HOUR_MS, BY, undefined, 'form')).toEqual(before);
    expect([keys.list('a').length, stateOf(first.made.id), notes.length]).toEqual([1, 'active', 1]);
  });
  test('rotates once', () => {
    const { id } = made();
    const first = keys.rotate(id, HOUR_MS, BY, undefined, 'form');
    if (first.kind !== 'rotated') throw new Error(first.kind);
    expect(keys.rotate(id, 0, BY, undefined, 'form')).toEqual({ kind: 'made-before', id: first.made.id });
    expect([keys.list('a').length, stateOf(id)]).toEqual([2, 'expiring']);
  });
  test('is another form for another account', () => {
    expect([keys.create('a', 'main', BY, 'form').kind, keys.create('b', 'main', BY, 'form').kind]).toEqual([
      'created',
      'created',
    ]);
  });
});

describe('a new key', () => {
  test('is well formed and named by its hash', () => {
    const { key, id, account, name } = made();
    expect(readApiKey(key)).toBe(key);
    expect(id).toBe(keyIdOf(hashOf(key)));
    expect([account, name]).toEqual(['a', 'main']);
  });
  test('is listed without being shown', () => {
    const { key, id } = made();
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
  });
  test('stands nowhere in the database', () => {
    const { key } = made();
    store.run('PRAGMA wal_checkpoint(TRUNCATE)');
    const bytes = readFileSync(join(folder.path, ACCOUNTS_FILE));
    expect(bytes.includes(key.slice(0, 11))).toBe(true);
    expect(bytes.includes(key.slice(7, 39))).toBe(false);
  });
  test('needs an account and a name that can be read', () => {
    expect(keys.create('nobody', 'main', BY)).toEqual({ kind: 'unknown-account' });
    expect(keys.create('a', '', BY)).toEqual({ kind: 'bad-name' });
    expect(keys.list()).toEqual([]);
  });
});

describe('a revocation', () => {
  test('is at once, and once more says so', () => {
    const { id } = made();
    expect(keys.revoke(id, BY)).toMatchObject({ kind: 'revoked', row: { id, state: 'revoked' } });
    expect(stateOf(id)).toBe('revoked');
    expect(keys.revoke(id, BY)).toMatchObject({ kind: 'already-revoked' });
  });
  test('of one key leaves the others', () => {
    const [one, two] = [made(), made()];
    keys.revoke(one.id, BY);
    expect(stateOf(two.id)).toBe('active');
  });
  test('needs a key that is there', () =>
    expect(keys.revoke('0123456789abcdef', BY)).toEqual({ kind: 'unknown-key' }));
});

describe('a rotation', () => {
  test('makes a key of the same name and lets the old one end after the grace, to the millisecond', async () => {
    const old = made('a', 'bot');
    const { made: next, oldExpiresAtMs } = rotated(old.id, 24 * HOUR_MS);
    expect([next.name, next.account, next.key === old.key]).toEqual(['bot', 'a', false]);
    expect(oldExpiresAtMs).toBe(START_MS + 24 * HOUR_MS);
    expect([stateOf(old.id), stateOf(next.id)]).toEqual(['expiring', 'active']);
    await clock.advance(24 * HOUR_MS - 1);
    expect(stateOf(old.id)).toBe('expiring');
    await clock.advance(1);
    expect([stateOf(old.id), stateOf(next.id)]).toEqual(['expired', 'active']);
  });
  test('without grace ends the old key now', () => {
    const old = made();
    rotated(old.id, 0);
    expect(stateOf(old.id)).toBe('expired');
  });
  test('of a key that is expiring never makes it live longer, but may end it sooner', () => {
    const old = made();
    rotated(old.id, HOUR_MS);
    expect(rotated(old.id, 5 * HOUR_MS).oldExpiresAtMs).toBe(START_MS + HOUR_MS);
    expect(rotated(old.id, 1_000).oldExpiresAtMs).toBe(START_MS + 1_000);
  });
  test('of a key that has ended is refused, and makes no key', () => {
    const [expired, revoked] = [made(), made()];
    rotated(expired.id, 0);
    keys.revoke(revoked.id, BY);
    const before = keys.list().length;
    expect(keys.rotate(expired.id, HOUR_MS, BY)).toEqual({ kind: 'ended', state: 'expired' });
    expect(keys.rotate(revoked.id, HOUR_MS, BY)).toEqual({ kind: 'ended', state: 'revoked' });
    expect(keys.rotate('none', HOUR_MS, BY)).toEqual({ kind: 'unknown-key' });
    expect(keys.list()).toHaveLength(before);
  });
});

describe('a list', () => {
  test('is oldest first, of one account or of all', async () => {
    const ids: string[] = [];
    for (const account of ['a', 'b', 'a']) {
      ids.push(made(account).id);
      await clock.advance(1);
    }
    expect(keys.list().map(({ id }) => id as string)).toEqual(ids); // a brand is a string
    expect(keys.list('a').map(({ id }) => id as string)).toEqual([ids[0] ?? '', ids[2] ?? '']); // as above
    expect(keys.list('nobody')).toEqual([]);
  });
  test('says revoked of a key that expired too', () => {
    const old = made();
    rotated(old.id, 0);
    keys.revoke(old.id, BY);
    expect(stateOf(old.id)).toBe('revoked');
  });
  test('says when a key was last used', () => {
    const { id } = made();
    store.run('UPDATE keys SET last_used_at_ms = 5');
    expect(keys.find(id)?.lastUsedAtMs).toBe(5);
  });
});

test('rotations by two processes at once leave two working keys, never none', () => {
  const old = made();
  using other = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const elsewhere = createKeys({
    store: other,
    clock,
    random: randomBytes,
    note: (each) => void notes.push(each),
  });
  rotated(old.id, HOUR_MS);
  expect(elsewhere.rotate(old.id, 0, BY).kind).toBe('rotated');
  expect(
    keys
      .list()
      .map(({ state }) => state)
      .toSorted(),
  ).toEqual(['active', 'active', 'expired']);
});
