import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import { type AdditionResult, createAccounts } from '../../../deploys/accounts/accounts.ts';
import { type Actor, createAudit } from '../../../deploys/accounts/audit.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { createKeySource } from '../../../shared/keys/source.ts';
import { hashOf } from '../../../shared/keys/api-key.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { opened } from '../../started/gateway.ts';

const SERVICE = { kind: 'command-line' } as const;
const BY: Actor = { kind: 'operator', userId: 'u1' };
const paid: Plan = { rps: 100, burst: 200, credits: undefined, batchMax: 100, scans: 4, inFlight: 16 };
const plans = new Map<string, Plan>([
  ['trial', { ...paid, credits: 1_000 }],
  ['pro', paid],
]);

let store: ReturnType<typeof opened>;
let audit: ReturnType<typeof createAudit>;
let accounts: ReturnType<typeof createAccounts>;
let keys: ReturnType<typeof createKeys>;
let spent: number;

beforeEach(() => {
  store = opened(':memory:', { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  audit = createAudit(store);
  spent = 0;
  const clock = createVirtualClock();
  accounts = createAccounts({ store, plans, spentOf: () => spent, clock, note: audit.note });
  keys = createKeys({ store, clock, random: randomBytes, note: audit.note });
});
afterEach(() => store.close());

function newKey(account: string, name = 'main') {
  const result = keys.create(account, name, BY);
  if (result.kind !== 'created') throw new Error(result.kind);
  return result.made;
}
const leftOf = (result: AdditionResult) => ('account' in result ? result.account.creditsLeft : result.kind);
const told = () =>
  audit
    .list({ limit: 100 })
    .toReversed()
    .map(({ action, accountId, subject, detail }) => ({ action, accountId, subject, detail }));

describe('credits that are added', () => {
  const gift = { credits: 500, reason: 'outage of the 20th', once: 'form-1' };

  test('come on top of what is left', () => {
    accounts.create('a', 'trial', BY);
    spent = 400;
    expect(leftOf(accounts.addCredits('a', gift, BY))).toBe(1_100);
  });
  test('under the same name are added once, and say so', () => {
    accounts.create('a', 'trial', BY);
    accounts.addCredits('a', gift, BY);
    expect(accounts.addCredits('a', { ...gift, credits: 7 }, BY)).toMatchObject({
      kind: 'added-before',
      credits: 500,
      account: { creditsLeft: 1_500 },
    });
    expect(leftOf(accounts.addCredits('a', { ...gift, once: 'form-2' }, BY))).toBe(2_000);
    expect(told().filter(({ action }) => action === 'account.credits.add')).toHaveLength(2);
  });
  test('under the same name go to another account too', () => {
    accounts.create('a', 'trial', BY);
    accounts.create('b', 'trial', BY);
    accounts.addCredits('a', gift, BY);
    expect(leftOf(accounts.addCredits('b', gift, BY))).toBe(1_500);
  });
  test('are all there for an account whose allowance was lowered below what it spent', () => {
    accounts.create('a', 'trial', BY);
    spent = 5_000;
    expect(leftOf(accounts.addCredits('a', gift, BY))).toBe(500);
  });
  test.each([
    [{ credits: 0 }, 'bad-credits'],
    [{ credits: 1.5 }, 'bad-credits'],
    [{ credits: Number.MAX_SAFE_INTEGER }, 'bad-credits'],
    [{ reason: '' }, 'bad-reason'],
    [{ reason: 'x'.repeat(201) }, 'bad-reason'],
    [{ reason: 'a\nb' }, 'bad-reason'],
  ])('are refused with %j: %s, and nothing changes', (wrong, kind) => {
    accounts.create('a', 'trial', BY);
    expect(accounts.addCredits('a', { ...gift, ...wrong }, BY).kind).toBe(kind as AdditionResult['kind']); // one of its kinds
    expect(accounts.find('a')?.creditsLeft).toBe(1_000);
  });
  test('need an account whose plan has a limit', () => {
    accounts.create('a', 'pro', BY);
    expect(accounts.addCredits('a', gift, BY)).toEqual({ kind: 'no-credits', plan: 'pro' });
    expect(accounts.addCredits('b', gift, BY)).toEqual({ kind: 'unknown-account' });
  });
});

describe('a suspended account', () => {
  test('has no key that is accepted, until it is resumed', () => {
    accounts.create('a', 'pro', BY);
    const { key } = newKey('a');
    const isSuspended = () => createKeySource(store).read(hashOf(key))?.suspended;
    expect(accounts.suspend('a', BY)).toMatchObject({ kind: 'account', account: { isSuspended: true } });
    expect(isSuspended()).toBe(true);
    expect(accounts.resume('a', BY)).toMatchObject({ account: { isSuspended: false } } as never); // a part of it
    expect(isSuspended()).toBe(false);
  });
  test('that is suspended again is no change', () => {
    accounts.create('a', 'pro', BY);
    accounts.suspend('a', BY);
    accounts.suspend('a', BY);
    accounts.resume('a', BY);
    accounts.resume('a', BY);
    expect(told().map(({ action }) => action)).toEqual([
      'account.create',
      'account.suspend',
      'account.resume',
    ]);
  });
  test('is known', () => expect(accounts.suspend('a', BY)).toEqual({ kind: 'unknown-account' }));
});

describe('a new name', () => {
  test('of an account keeps its keys and credits', () => {
    accounts.create('a', 'trial', BY);
    newKey('a');
    accounts.set('a', { creditsLeft: 7 }, BY);
    expect(accounts.rename('a', 'b', BY)).toMatchObject({ account: { id: 1, creditsLeft: 7 } } as never); // a part of it
    expect(accounts.find('a')).toBeUndefined();
    expect(keys.list('b')).toHaveLength(1);
  });
  test('of an account must be one, and free', () => {
    accounts.create('a', 'trial', BY);
    accounts.create('b', 'trial', BY);
    expect(accounts.rename('a', 'b', BY)).toEqual({ kind: 'name-taken' });
    expect(accounts.rename('a', ' b', BY)).toEqual({ kind: 'bad-name' });
    expect(accounts.rename('c', 'd', BY)).toEqual({ kind: 'unknown-account' });
    expect(accounts.rename('a', 'a', BY)).toMatchObject({ kind: 'account', account: { name: 'a' } });
  });
  test('is not given to an account that the service knows by its name, nor its name to another', () => {
    for (const name of ['demo', 'sluice-watcher'] as const) accounts.own(name, 'trial', SERVICE);
    accounts.create('a', 'trial', BY);
    const reserved = { kind: 'reserved-name' } as const;
    expect(accounts.rename('demo', 'x', BY)).toEqual(reserved);
    expect(accounts.rename('sluice-watcher', 'x', BY)).toEqual(reserved);
    expect(keys.rename(newKey('demo', 'demo').id, 'x', BY)).toEqual(reserved);
    store.run("DELETE FROM accounts WHERE name = 'sluice-watcher'");
    expect(accounts.rename('a', 'sluice-watcher', BY)).toEqual(reserved);
  });
  test('of a key is shown in its row', () => {
    accounts.create('a', 'trial', BY);
    const { id } = newKey('a');
    expect(keys.rename(id, 'bot', BY)).toMatchObject({ kind: 'renamed', row: { name: 'bot' } });
    expect(keys.find(id)?.name).toBe('bot');
    expect(keys.rename(id, '', BY)).toEqual({ kind: 'bad-name' });
    expect(keys.rename('none', 'x', BY)).toEqual({ kind: 'unknown-key' });
  });
});

test('a key of another account is unknown to whoever acts for one account', () => {
  accounts.create('a', 'trial', BY);
  accounts.create('b', 'trial', BY);
  const { id } = newKey('a');
  expect(keys.find(id, 2)).toBeUndefined();
  expect(keys.rename(id, 'x', BY, 2).kind).toBe('unknown-key');
  expect(keys.rotate(id, 0, BY, 2).kind).toBe('unknown-key');
  expect(keys.revoke(id, BY, 2).kind).toBe('unknown-key');
  expect(keys.find(id, 1)).toMatchObject({ name: 'main', state: 'active' });
});

describe('the audit log', () => {
  test('has every change with who made it, when, and its figures', () => {
    accounts.create('a', 'trial', BY);
    accounts.set('a', { plan: { name: 'pro' } }, BY);
    accounts.set('a', { plan: { name: 'trial' }, creditsLeft: 5 }, BY);
    accounts.addCredits('a', { credits: 3, reason: 'sorry', once: 'x' }, BY);
    accounts.rename('a', 'b', BY);
    const { id } = newKey('b', 'one');
    keys.rename(id, 'two', BY);
    const rotated = keys.rotate(id, 1_000, BY);
    keys.revoke(id, BY);
    expect(audit.list({ limit: 1 })).toMatchObject([
      { atMs: START_MS, actorKind: 'operator', actorId: 'u1' },
    ]);
    const newId = rotated.kind === 'rotated' ? rotated.made.id : '';
    expect(told()).toEqual([
      { action: 'account.create', accountId: 1, subject: '1', detail: { name: 'a', plan: 'trial' } },
      { action: 'account.plan', accountId: 1, subject: '1', detail: { from: 'trial', to: 'pro' } },
      { action: 'account.plan', accountId: 1, subject: '1', detail: { from: 'pro', to: 'trial' } },
      { action: 'account.credits.set', accountId: 1, subject: '1', detail: { from: null, to: 5 } },
      { action: 'account.credits.add', accountId: 1, subject: '1', detail: { credits: 3, reason: 'sorry' } },
      { action: 'account.rename', accountId: 1, subject: '1', detail: { from: 'a', to: 'b' } },
      { action: 'key.create', accountId: 1, subject: id, detail: { name: 'one' } },
      { action: 'key.rename', accountId: 1, subject: id, detail: { from: 'one', to: 'two' } },
      {
        action: 'key.rotate',
        accountId: 1,
        subject: id,
        detail: { new_key_id: newId, old_expires_at_ms: START_MS + 1_000 },
      },
      { action: 'key.revoke', accountId: 1, subject: id, detail: { name: 'two' } },
    ]);
  });
  test('and the change are one: without the note nothing is changed', () => {
    accounts.create('a', 'trial', BY);
    const { id } = newKey('a');
    const note = () => {
      throw new Error('the disk is full');
    };
    const clock = createVirtualClock();
    const others = createAccounts({ store, plans, spentOf: () => 0, clock, note });
    const otherKeys = createKeys({ store, clock, random: randomBytes, note });
    expect(() => others.create('b', 'trial', BY)).toThrow('disk');
    expect(() => others.set('a', { plan: { name: 'pro' } }, BY)).toThrow('disk');
    expect(() => others.addCredits('a', { credits: 1, reason: 'r', once: 'o' }, BY)).toThrow('disk');
    expect(() => others.suspend('a', BY)).toThrow('disk');
    expect(() => otherKeys.create('a', 'x', BY)).toThrow('disk');
    expect(() => otherKeys.rotate(id, 0, BY)).toThrow('disk');
    expect(() => otherKeys.revoke(id, BY)).toThrow('disk');
    expect(accounts.list()).toMatchObject([{ plan: 'trial', creditsLeft: 1_000, isSuspended: false }]);
    expect(keys.list()).toMatchObject([{ id, state: 'active' }]);
  });
  test('holds no key', () => {
    accounts.create('a', 'trial', BY);
    const { id, key } = newKey('a');
    const rotated = keys.rotate(id, 0, BY);
    const text = JSON.stringify(audit.list({ limit: 100 }));
    const secrets = [key, rotated.kind === 'rotated' ? rotated.made.key : ''];
    for (const secret of secrets) expect(text).not.toContain(secret.slice(7, 20));
  });
});
