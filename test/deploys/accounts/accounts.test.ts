import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { isLabel } from '../../../deploys/accounts/account-row.ts';
import { type AccountResult, createAccounts } from '../../../deploys/accounts/accounts.ts';
import type { ChangeNote } from '../../../deploys/accounts/audit.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS, requestReload } from '../../../shared/keys/schema.ts';
import type { Plan } from '../../../shared/config/plans.ts';
import { createVirtualClock, START_MS } from '../../fakes/chain-clock.ts';
import { opened, temporaryFolder } from '../../started/gateway.ts';

const BY = { kind: 'command-line' } as const;

const paid: Plan = { rps: 100, burst: 200, credits: undefined, batchMax: 100, scans: 4, inFlight: 16 };
const plans = new Map<string, Plan>([
  ['trial', { ...paid, credits: 1_000 }],
  ['large-trial', { ...paid, credits: 5_000 }],
  ['pro', paid],
]);

let folder: ReturnType<typeof temporaryFolder>;
let store: ReturnType<typeof opened>;
let spent: Map<number, number>;
let notes: ChangeNote[];
let accounts: ReturnType<typeof createAccounts>;

beforeEach(() => {
  folder = temporaryFolder();
  store = opened(join(folder.path, ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  spent = new Map();
  notes = [];
  accounts = createAccounts({
    store,
    plans,
    spentOf: (id) => spent.get(id) ?? 0,
    clock: createVirtualClock(),
    note: (each) => void notes.push(each),
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
    expect(accounts.create('a', 'trial', BY)).toEqual({
      kind: 'account',
      account: {
        id: 1,
        name: 'a',
        plan: 'trial',
        creditsLeft: 1_000,
        isSuspended: false,
        createdAtMs: START_MS,
      },
    });
  });
  test('on a plan without credits has no credits to speak of', () => {
    expect(accountOf(accounts.create('a', 'pro', BY)).creditsLeft).toBeUndefined();
  });
  test('without a plan is for the program API alone', () => {
    expect(accountOf(accounts.create('a', undefined, BY))).toMatchObject({
      plan: undefined,
      creditsLeft: undefined,
    });
  });
  test('is refused for a name that is taken, a plan that is not there and a name that cannot be read', () => {
    accounts.create('a', 'trial', BY);
    expect(accounts.create('a', 'trial', BY)).toEqual({ kind: 'name-taken' });
    expect(accounts.create('b', 'gold', BY)).toEqual({ kind: 'unknown-plan', plan: 'gold' });
    expect(accounts.create('', 'trial', BY)).toEqual({ kind: 'bad-name' });
    expect(accounts.list().map(({ name }) => name)).toEqual(['a']);
  });
});

describe('a change of an account', () => {
  test('what was spent is taken from what is left, never below zero', () => {
    accounts.create('a', 'trial', BY);
    spent.set(1, 400);
    expect(accounts.find('a')?.creditsLeft).toBe(600);
    spent.set(1, 1_100);
    expect(accounts.find('a')?.creditsLeft).toBe(0);
  });
  test('sets what is left, whatever was spent before', () => {
    accounts.create('a', 'trial', BY);
    spent.set(1, 400);
    expect(accountOf(accounts.set('a', { creditsLeft: 250 }, BY)).creditsLeft).toBe(250);
    spent.set(1, 401);
    expect(accounts.find('a')?.creditsLeft).toBe(249);
    expect(accountOf(accounts.set('a', { creditsLeft: 0 }, BY)).creditsLeft).toBe(0);
  });
  test('an account has the allowance of its plan once: leaving and coming back gives no second one', () => {
    accounts.create('a', 'pro', BY);
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } }, BY)).creditsLeft).toBe(1_000);
    spent.set(1, 900);
    accounts.set('a', { plan: { name: 'pro' } }, BY);
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } }, BY)).creditsLeft).toBe(100);
    expect(accountOf(accounts.set('a', { plan: { name: 'large-trial' } }, BY)).creditsLeft).toBe(4_100);
  });
  test('credits that were set stay set, whatever plans it leaves and comes back to', () => {
    accounts.create('a', 'trial', BY);
    accounts.set('a', { creditsLeft: 0 }, BY);
    accounts.set('a', { plan: { name: 'pro' } }, BY);
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } }, BY)).creditsLeft).toBe(0);
  });
  test('naming the plan again grants nothing', () => {
    accounts.create('a', 'trial', BY);
    accounts.set('a', { creditsLeft: 0 }, BY);
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } }, BY)).creditsLeft).toBe(0);
  });
  test('plan and credits together take the new plan first', () => {
    accounts.create('a', undefined, BY);
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' }, creditsLeft: 7 }, BY))).toMatchObject({
      plan: 'trial',
      creditsLeft: 7,
    });
  });
  test('takes the plan away', () => {
    accounts.create('a', 'trial', BY);
    expect(accountOf(accounts.set('a', { plan: { name: undefined } }, BY)).plan).toBeUndefined();
  });
  test('is refused whole: an unknown account or plan, or credits where there are none, change nothing', () => {
    accounts.create('a', 'pro', BY);
    expect(accounts.set('b', { plan: { name: 'pro' } }, BY)).toEqual({ kind: 'unknown-account' });
    expect(accounts.set('a', { plan: { name: 'gold' } }, BY)).toEqual({ kind: 'unknown-plan', plan: 'gold' });
    expect(accounts.set('a', { creditsLeft: 5 }, BY)).toEqual({ kind: 'no-credits', plan: 'pro' });
    expect(accounts.set('a', { plan: { name: undefined }, creditsLeft: 5 }, BY)).toEqual({
      kind: 'no-credits',
      plan: undefined,
    });
    expect(accounts.find('a')?.plan).toBe('pro');
  });
  test('an account on a plan that left the config is listed, and can get credits of another plan', () => {
    accounts.create('a', 'trial', BY);
    store.run("UPDATE accounts SET plan = 'gone'");
    expect(accounts.list()).toMatchObject([{ name: 'a', plan: 'gone', creditsLeft: undefined }]);
    expect(accounts.set('a', { creditsLeft: 5 }, BY)).toEqual({ kind: 'no-credits', plan: 'gone' });
    expect(accountOf(accounts.set('a', { plan: { name: 'trial' } }, BY)).creditsLeft).toBe(1_000);
  });
  test('is noticed by running apps: the revision grows', () => {
    const revision = () => store.query<{ value: number }, []>('SELECT value FROM revision').get()?.value ?? 0;
    const before = revision();
    accounts.create('a', 'trial', BY);
    const between = revision();
    accounts.set('a', { creditsLeft: 5 }, BY);
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
