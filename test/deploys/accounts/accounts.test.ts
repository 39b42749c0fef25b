import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { type AccountResult, createAccounts } from '../../../deploys/accounts/accounts.ts';
import { isLabel } from '../../../deploys/accounts/label.ts';
import { requestReload } from '../../../shared/keys/reload.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

const paid: Plan = { rps: 100, burst: 200, credits: undefined, batchMax: 100, scans: 4 };
const plans = new Map<string, Plan>([
  ['trial', { ...paid, credits: 1_000 }],
  ['large-trial', { ...paid, credits: 5_000 }],
  ['pro', paid],
]);

let folder: ReturnType<typeof temporaryFolder>;
let store: ReturnType<typeof opened>;
let spent: Map<number, number>;
let accounts: ReturnType<typeof createAccounts>;

beforeEach(() => {
  folder = temporaryFolder();
  store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  spent = new Map();
  accounts = createAccounts({
    store,
    plans,
    spentOf: (id) => spent.get(id) ?? 0,
    clock: createVirtualClock(),
  });
});
afterEach(() => {
  store.close();
  folder[Symbol.dispose]();
});

function accountOf(result: AccountResult) {
  if (result.kind !== 'account') throw new Error(result.kind);
  return result.account;
}

describe('creating an account', () => {
  test('on a plan with credits grants its allowance', () => {
    expect(accounts.create('a', 'trial')).toEqual({
      kind: 'account',
      account: { id: 1, name: 'a', plan: 'trial', creditsLeft: 1_000, createdAtMs: START_MS },
    });
  });
  test('on a plan without credits has no credits to speak of', () => {
    expect(accountOf(accounts.create('a', 'pro')).creditsLeft).toBeUndefined();
  });
  test('without a plan is for the program API alone', () => {
    expect(accountOf(accounts.create('a', undefined))).toMatchObject({
      plan: undefined,
      creditsLeft: undefined,
    });
  });
  test('is refused for a name that is taken, a plan that is not there and a name that cannot be read', () => {
    accounts.create('a', 'trial');
    expect(accounts.create('a', 'trial')).toEqual({ kind: 'name-taken' });
    expect(accounts.create('b', 'gold')).toEqual({ kind: 'unknown-plan', plan: 'gold' });
    expect(accounts.create('', 'trial')).toEqual({ kind: 'bad-name' });
    expect(accounts.list().map(({ name }) => name)).toEqual(['a']);
  });
});

describe('a change of an account', () => {
  test('what was spent is taken from what is left, never below zero', () => {
    accounts.create('a', 'trial');
    spent.set(1, 400);
    expect(accounts.find('a')?.creditsLeft).toBe(600);
    spent.set(1, 1_100);
    expect(accounts.find('a')?.creditsLeft).toBe(0);
  });
  test('sets what is left, whatever was spent before', () => {
    accounts.create('a', 'trial');
    spent.set(1, 400);
    expect(accountOf(accounts.set('a', { creditsLeft: 250 })).creditsLeft).toBe(250);
    spent.set(1, 401);
    expect(accounts.find('a')?.creditsLeft).toBe(249);
    expect(accountOf(accounts.set('a', { creditsLeft: 0 })).creditsLeft).toBe(0);
  });
  test('an account has the allowance of its plan once: leaving and coming back gives no second one', () => {
    accounts.create('a', 'pro');
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } })).creditsLeft).toBe(1_000);
    spent.set(1, 900);
    accounts.set('a', { plan: { name: 'pro' } });
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } })).creditsLeft).toBe(100);
    expect(accountOf(accounts.set('a', { plan: { name: 'large-trial' } })).creditsLeft).toBe(4_100);
  });
  test('credits that were set stay set, whatever plans it leaves and comes back to', () => {
    accounts.create('a', 'trial');
    accounts.set('a', { creditsLeft: 0 });
    accounts.set('a', { plan: { name: 'pro' } });
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } })).creditsLeft).toBe(0);
  });
  test('naming the plan again grants nothing', () => {
    accounts.create('a', 'trial');
    accounts.set('a', { creditsLeft: 0 });
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } })).creditsLeft).toBe(0);
  });
  test('plan and credits together take the new plan first', () => {
    accounts.create('a', undefined);
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' }, creditsLeft: 7 }))).toMatchObject({
      plan: 'trial',
      creditsLeft: 7,
    });
  });
  test('takes the plan away', () => {
    accounts.create('a', 'trial');
    expect(accountOf(accounts.set('a', { plan: { name: undefined } })).plan).toBeUndefined();
  });
  test('is refused whole: an unknown account or plan, or credits where there are none, change nothing', () => {
    accounts.create('a', 'pro');
    expect(accounts.set('b', { plan: { name: 'pro' } })).toEqual({ kind: 'unknown-account' });
    expect(accounts.set('a', { plan: { name: 'gold' } })).toEqual({ kind: 'unknown-plan', plan: 'gold' });
    expect(accounts.set('a', { creditsLeft: 5 })).toEqual({ kind: 'no-credits', plan: 'pro' });
    expect(accounts.set('a', { plan: { name: undefined }, creditsLeft: 5 })).toEqual({
      kind: 'no-credits',
      plan: undefined,
    });
    expect(accounts.find('a')?.plan).toBe('pro');
  });
  test('an account on a plan that left the config is listed, and can get credits of another plan', () => {
    accounts.create('a', 'trial');
    store.run("UPDATE accounts SET plan = 'gone'");
    expect(accounts.list()).toMatchObject([{ name: 'a', plan: 'gone', creditsLeft: undefined }]);
    expect(accounts.set('a', { creditsLeft: 5 })).toEqual({ kind: 'no-credits', plan: 'gone' });
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } })).creditsLeft).toBe(1_000);
  });
  test('is noticed by running apps: the revision grows', () => {
    const revision = () => store.query<{ value: number }, []>('SELECT value FROM revision').get()?.value ?? 0;
    const before = revision();
    accounts.create('a', 'trial');
    const between = revision();
    accounts.set('a', { creditsLeft: 5 });
    expect([between > before, revision() > between]).toEqual([true, true]);
  });
});

test.each([
  ['a', true],
  ['Acme Ltd. (prod)', true],
  ['ключ 🔑', true],
  ['x'.repeat(64), true],
  ['x'.repeat(65), false],
  ['', false],
  [' a', false],
  ['a ', false],
  ['a\nb', false],
  ['a\u0000', false],
  ['a\u202Eb', false],
  ['a\u2028b', false],
])('%j names an account or a key: %p', (text, is) => expect(isLabel(text)).toBe(is));

test('a wish for a reload has a number of its own', () => {
  expect([requestReload(store), requestReload(store)]).toEqual([2, 3]);
});
