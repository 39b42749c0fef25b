import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createAccounts } from '../../../deploys/accounts/accounts.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { configFrom } from '../../../shared/config/config.ts';
import { hashOf, keyIdOf, makeApiKey } from '../../../shared/keys/api-key.ts';
import type { Carried } from '../../../shared/keys/carrier.ts';
import { createIdentify } from '../../../shared/keys/identify.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { createVirtualClock } from '../../fakes/chain-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

const BY = { kind: 'command-line' } as const;

const clock = createVirtualClock();
let folder: ReturnType<typeof temporaryFolder>;
let written: ReturnType<typeof books>;

/** Accounts and keys as the command line writes them, in a connection of their own. */
function books() {
  const store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const config = configFrom({}, {});
  if (config.kind === 'problems') throw new Error('the default config has problems');
  const accounts = createAccounts({
    store,
    plans: config.config.plans,
    spentOf: () => 0,
    clock,
    note: () => undefined,
  });
  const keys = createKeys({ store, clock, random: randomBytes, note: () => undefined });
  return { store, accounts, keys };
}

function newKey(account: string) {
  const created = written.keys.create(account, 'test', BY);
  if (created.kind !== 'created') throw new Error(created.kind);
  return created.made;
}

const carry = (text: string): Carried => ({ kind: 'text', text });

beforeEach(() => {
  folder = temporaryFolder();
  written = books();
  written.accounts.create('payer', 'trial', BY);
});
afterEach(() => {
  written.store.close();
  folder[Symbol.dispose]();
});

function reader() {
  const store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  return { ...createIdentify(store, clock), store };
}

describe('identify', () => {
  test('knows an active key: its id, account, plan and allowance', () => {
    const { identify } = reader();
    const made = newKey('payer');
    expect(identify(carry(made.key))).toEqual({
      kind: 'known',
      caller: { keyId: made.id, accountId: 1, plan: 'trial', creditsGranted: undefined },
    });
  });

  test('tells a missing key from an invalid one, and a conflict is invalid (spec 5.3)', () => {
    const { identify } = reader();
    expect(identify({ kind: 'none' })).toEqual({ kind: 'missing-key' });
    expect(identify({ kind: 'conflict' })).toEqual({ kind: 'invalid-key' });
    expect(identify(carry('nonsense'))).toEqual({ kind: 'invalid-key' });
    expect(identify(carry(makeApiKey(randomBytes)))).toEqual({ kind: 'invalid-key' });
  });

  test('sees a change of plan and a revocation, by another process, at the next refresh', () => {
    const { identify, refresh } = reader();
    const made = newKey('payer');
    expect(identify(carry(made.key))).toMatchObject({ caller: { plan: 'trial' } });
    written.accounts.set('payer', { plan: { name: 'pro' } }, BY);
    refresh();
    expect(identify(carry(made.key))).toMatchObject({ caller: { plan: 'pro' } });
    written.keys.revoke(made.id, BY);
    refresh();
    expect(identify(carry(made.key)).kind).toBe('invalid-key');
  });

  test('sees a key that was unknown before, at the next refresh', () => {
    const { identify, refresh } = reader();
    const key = makeApiKey(randomBytes);
    expect(identify(carry(key)).kind).toBe('invalid-key');
    written.store.run(
      "INSERT INTO keys (id, account_id, name, hash, prefix, last4, created_at_ms) VALUES (?2, 1, 'n', ?1, 'p', 'l', 0)",
      [hashOf(key), keyIdOf(hashOf(key))],
    );
    expect(identify(carry(key)).kind).toBe('invalid-key');
    refresh();
    expect(identify(carry(key)).kind).toBe('known');
  });

  test('ends an expiring key at its millisecond, without a refresh', async () => {
    const { identify } = reader();
    const made = newKey('payer');
    written.keys.rotate(made.id, 1_000, BY);
    expect(identify(carry(made.key)).kind).toBe('known');
    await clock.advance(999);
    expect(identify(carry(made.key)).kind).toBe('known');
    await clock.advance(1);
    expect(identify(carry(made.key)).kind).toBe('invalid-key');
  });

  test('refuses the keys of a suspended account', () => {
    const { identify } = reader();
    const made = newKey('payer');
    written.store.run('UPDATE accounts SET suspended = 1');
    expect(identify(carry(made.key)).kind).toBe('invalid-key');
  });

  test('goes on knowing known keys while the store does not answer, and says so of the others', () => {
    const { identify, refresh, store } = reader();
    const made = newKey('payer');
    const other = newKey('payer');
    expect(identify(carry(made.key)).kind).toBe('known');
    store.run('ALTER TABLE keys RENAME TO keys_gone');
    store.run('ALTER TABLE revision RENAME TO revision_gone');
    refresh();
    expect(identify(carry(made.key)).kind).toBe('known');
    expect(identify(carry(other.key)).kind).toBe('check-unavailable');
    store.run('ALTER TABLE keys_gone RENAME TO keys');
    expect(identify(carry(other.key)).kind).toBe('known');
  });
});
