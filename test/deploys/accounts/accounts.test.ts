import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { isLabel } from '../../../deploys/accounts/account-row.ts';
import { type AdditionResult, createAccounts } from '../../../deploys/accounts/accounts.ts';
import { createKeys } from '../../../deploys/accounts/keys.ts';
import { hashOf } from '../../../shared/keys/api-key.ts';
import { createKeySource } from '../../../shared/keys/source.ts';
import { START_MS } from '../../fakes/chain-clock.ts';
import { BY, PLANS, startBooks } from './books.ts';

const SERVICE = { kind: 'command-line' } as const;

let books: ReturnType<typeof startBooks>;
let accounts: (typeof books)['accounts'];
const create = (name: string, plan?: string) => books.account(accounts.create(name, plan, BY));
const setPlan = (name: string | undefined) => accounts.set('a', { plan: { name } }, BY);
const left = () => accounts.find('a')?.creditsLeft;

beforeEach(() => {
  books = startBooks();
  ({ accounts } = books);
});
afterEach(() => books[Symbol.dispose]());

describe('a new account', () => {
  test('has the allowance of its plan, no credits to speak of on a plan without, and none without a plan', () => {
    const account = { id: 1, isSuspended: false, createdAtMs: START_MS };
    expect(create('a', 'trial')).toEqual({ ...account, name: 'a', plan: 'trial', creditsLeft: 1_000 });
    expect(create('b', 'pro').creditsLeft).toBeUndefined();
    expect(create('c')).toMatchObject({ plan: undefined, creditsLeft: undefined });
  });
  test('is refused for a name that is taken, a plan that is not there and a name that cannot be read', () => {
    create('a', 'trial');
    expect(accounts.create('a', 'trial', BY)).toEqual({ kind: 'name-taken' });
    expect(accounts.create('b', 'gold', BY)).toEqual({ kind: 'unknown-plan', plan: 'gold' });
    expect(accounts.create('', 'trial', BY)).toEqual({ kind: 'bad-name' });
    expect(accounts.list().map(({ name }) => name)).toEqual(['a']);
  });
});

describe('a change of an account', () => {
  test('what was spent is taken from what is left, never below zero, and what is set is left', () => {
    create('a', 'trial');
    books.spent.set(1, 400);
    expect(left()).toBe(600);
    books.spent.set(1, 1_100);
    expect(left()).toBe(0);
    expect(books.account(accounts.set('a', { creditsLeft: 250 }, BY)).creditsLeft).toBe(250);
    books.spent.set(1, 1_101);
    expect(left()).toBe(249);
  });
  test('an account has the allowance of its plan once: leaving and coming back gives no second one', () => {
    create('a', 'pro');
    expect(books.account(setPlan('trial')).creditsLeft).toBe(1_000);
    books.spent.set(1, 900);
    setPlan('pro');
    expect(books.account(setPlan('trial')).creditsLeft).toBe(100);
    expect(books.account(setPlan('large-trial')).creditsLeft).toBe(4_100);
  });
  test('credits that were set stay set, whatever plans it leaves and comes back to', () => {
    create('a');
    expect(accounts.set('a', { plan: { name: 'trial' }, creditsLeft: 7 }, BY)).toMatchObject({
      account: { plan: 'trial', creditsLeft: 7 },
    } as never); // a part of it
    for (const name of ['trial', 'pro', undefined]) setPlan(name);
    expect(accounts.find('a')?.plan).toBeUndefined();
    expect(books.account(setPlan('trial')).creditsLeft).toBe(7);
  });
  test('is refused whole: an unknown account or plan, or credits where there are none, change nothing', () => {
    create('a', 'pro');
    expect(accounts.set('b', { plan: { name: 'pro' } }, BY)).toEqual({ kind: 'unknown-account' });
    expect(setPlan('gold')).toEqual({ kind: 'unknown-plan', plan: 'gold' });
    expect(accounts.set('a', { creditsLeft: 5 }, BY)).toEqual({ kind: 'no-credits', plan: 'pro' });
    expect(accounts.set('a', { plan: { name: undefined }, creditsLeft: 5 }, BY)).toEqual({
      kind: 'no-credits',
      plan: undefined,
    });
    expect(accounts.find('a')?.plan).toBe('pro');
  });
  test('an account on a plan that left the config is listed, and can get credits of another plan', () => {
    create('a', 'trial');
    books.store.run("UPDATE accounts SET plan = 'gone'");
    expect(accounts.list()).toMatchObject([{ name: 'a', plan: 'gone', creditsLeft: undefined }]);
    expect(accounts.set('a', { creditsLeft: 5 }, BY)).toEqual({ kind: 'no-credits', plan: 'gone' });
    expect(books.account(setPlan('trial')).creditsLeft).toBe(1_000);
  });
});

describe('credits that are added', () => {
  const gift = { credits: 500, reason: 'outage of the 20th', once: 'form-1' };
  const add = (more: object = {}, name = 'a') => accounts.addCredits(name, { ...gift, ...more }, BY);
  const leftOf = (result: AdditionResult) => ('account' in result ? result.account.creditsLeft : result.kind);

  test('come on top of what is left, all of them where more was spent than the plan allows', () => {
    create('a', 'trial');
    books.spent.set(1, 400);
    expect(leftOf(add())).toBe(1_100);
    books.spent.set(1, 5_000);
    expect(leftOf(add({ once: 'form-2' }))).toBe(500);
  });
  test('under the same name are added once to each account, and say so', () => {
    create('a', 'trial');
    create('b', 'trial');
    add();
    const before = { kind: 'added-before', credits: 500, account: { creditsLeft: 1_500 } };
    expect(add({ credits: 7 })).toMatchObject(before as never); // a part of it
    expect([leftOf(add({ once: 'form-2' })), leftOf(add({}, 'b'))]).toEqual([2_000, 1_500]);
    expect(books.noted().filter(({ action }) => action === 'account.credits.add')).toHaveLength(3);
  });
  test('are refused for figures and reasons that are none, and nothing changes', () => {
    create('a', 'trial');
    for (const credits of [0, 1.5, Number.MAX_SAFE_INTEGER])
      expect(add({ credits })).toEqual({ kind: 'bad-credits' });
    for (const reason of ['', ' a', 'x'.repeat(201), 'a\nb'])
      expect(add({ reason })).toEqual({ kind: 'bad-reason' });
    expect(left()).toBe(1_000);
  });
  test('need an account whose plan has a limit', () => {
    create('a', 'pro');
    expect([add(), add({}, 'b')]).toEqual([{ kind: 'no-credits', plan: 'pro' }, { kind: 'unknown-account' }]);
  });
});

test('a suspended account has no key that is accepted, until it is resumed; again is no change', () => {
  create('a', 'pro');
  const { key } = books.newKey();
  const isSuspended = () => createKeySource(books.store).read(hashOf(key))?.suspended;
  for (const [change, is] of [
    [accounts.suspend, true],
    [accounts.resume, false],
  ] as const) {
    expect(books.account(change('a', BY)).isSuspended).toBe(is);
    expect(isSuspended()).toBe(is);
    change('a', BY);
  }
  const actions = books.noted().map(({ action }) => action);
  expect(actions).toEqual(['account.create', 'key.create', 'account.suspend', 'account.resume']);
  expect(accounts.suspend('b', BY)).toEqual({ kind: 'unknown-account' });
});

describe('a new name', () => {
  test('of an account keeps its keys and credits', () => {
    create('a', 'trial');
    books.newKey();
    accounts.set('a', { creditsLeft: 7 }, BY);
    expect(books.account(accounts.rename('a', 'b', BY))).toMatchObject({ id: 1, creditsLeft: 7 });
    expect([accounts.find('a'), books.keys.list('b').length]).toEqual([undefined, 1]);
  });
  test('of an account must be one, and free', () => {
    create('a', 'trial');
    create('b', 'trial');
    expect(accounts.rename('a', 'b', BY)).toEqual({ kind: 'name-taken' });
    expect(accounts.rename('a', ' b', BY)).toEqual({ kind: 'bad-name' });
    expect(accounts.rename('c', 'd', BY)).toEqual({ kind: 'unknown-account' });
    expect(books.account(accounts.rename('a', 'a', BY)).name).toBe('a');
  });
  test('is not given to an account that the service knows by its name, nor its name to another', () => {
    for (const name of ['demo', 'sluice-watcher'] as const) accounts.own(name, 'trial', SERVICE);
    create('a', 'trial');
    const reserved = { kind: 'reserved-name' } as const;
    expect(accounts.rename('demo', 'x', BY)).toEqual(reserved);
    expect(accounts.rename('sluice-watcher', 'x', BY)).toEqual(reserved);
    expect(books.keys.rename(books.newKey('demo', 'demo').id, 'x', BY)).toEqual(reserved);
    books.store.run("DELETE FROM accounts WHERE name = 'sluice-watcher'");
    expect(accounts.rename('a', 'sluice-watcher', BY)).toEqual(reserved);
  });
  test('has 1 to 64 printable characters and no space at either end', () => {
    const good = ['a', 'Acme Ltd. (prod)', 'ключ 🔑', 'x'.repeat(64)];
    const bad = ['x'.repeat(65), '', ' a', 'a ', '\u00a0a', 'a\nb', 'a\u0000', 'a\u202Eb', 'a\u2028b'];
    expect([...good, ...bad].filter(isLabel)).toEqual(good);
  });
});

describe('the audit log', () => {
  test('has every change with who made it, when, and its figures, and no key', () => {
    create('a', 'trial');
    setPlan('pro');
    accounts.set('a', { plan: { name: 'trial' }, creditsLeft: 5 }, BY);
    accounts.addCredits('a', { credits: 3, reason: 'sorry', once: 'x' }, BY);
    accounts.rename('a', 'b', BY);
    const { id, key } = books.newKey('b', 'one');
    books.keys.rename(id, 'two', BY);
    const { made } = books.rotated(id, 1_000);
    books.keys.revoke(id, BY);
    const [last] = books.audit.list({ limit: 1 });
    expect(last).toMatchObject({ atMs: START_MS, actorKind: 'operator', actorId: 'u1' });
    const expiry = START_MS + 1_000;
    expect(books.noted()).toEqual(
      [
        ['account.create', '1', { name: 'a', plan: 'trial' }] as const,
        ['account.plan', '1', { from: 'trial', to: 'pro' }] as const,
        ['account.plan', '1', { from: 'pro', to: 'trial' }] as const,
        ['account.credits.set', '1', { from: null, to: 5 }] as const,
        ['account.credits.add', '1', { credits: 3, reason: 'sorry' }] as const,
        ['account.rename', '1', { from: 'a', to: 'b' }] as const,
        ['key.create', id, { name: 'one' }] as const,
        ['key.rename', id, { from: 'one', to: 'two' }] as const,
        ['key.rotate', id, { new_key_id: made.id, old_expires_at_ms: expiry }] as const,
        ['key.revoke', id, { name: 'two' }] as const,
      ].map(([action, subject, detail]) => ({ action, accountId: 1, subject, detail })),
    );
    for (const secret of [key, made.key])
      expect(JSON.stringify(books.noted())).not.toContain(secret.slice(7, 20));
  });
  test('and the change are one: without the note nothing is changed', () => {
    create('a', 'trial');
    const { id } = books.newKey();
    const note = () => {
      throw new Error('the disk is full');
    };
    const deps = { store: books.store, clock: books.clock, note };
    const others = createAccounts({ ...deps, plans: PLANS, spentOf: () => 0 });
    const otherKeys = createKeys({ ...deps, random: (n) => new Uint8Array(n) });
    for (const change of [
      () => others.create('b', 'trial', BY),
      () => others.set('a', { plan: { name: 'pro' } }, BY),
      () => others.addCredits('a', { credits: 1, reason: 'r', once: 'o' }, BY),
      () => others.suspend('a', BY),
      () => otherKeys.create('a', 'x', BY),
      () => otherKeys.rotate(id, 0, BY),
      () => otherKeys.revoke(id, BY),
    ])
      expect(change).toThrow('disk');
    expect(accounts.list()).toMatchObject([{ plan: 'trial', creditsLeft: 1_000, isSuspended: false }]);
    expect(books.keys.list()).toMatchObject([{ id, state: 'active' }]);
  });
});
