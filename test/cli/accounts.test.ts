import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../gateway/ledger.ts';
import { extractApiKey } from '../../shared/keys/carrier.ts';
import { systemClock } from '../../shared/clock.ts';
import { createIdentify } from '../../shared/keys/identify.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { opened, temporaryFolder } from '../started/gateway.ts';
import { objectsOf, sluice } from './sluice.ts';

const folder = temporaryFolder();
const run = (...args: string[]) => sluice(folder.path, args);
const json = async (...args: string[]) => objectsOf(await run(...args, '--json'));
afterAll(() => folder[Symbol.dispose]());

/** A key of `account`, made by the command. */
async function newKey(account: string, ...args: string[]): Promise<{ key_id: string; key: string }> {
  const [record] = await json('key', 'create', account, ...args);
  return record as { key_id: string; key: string }; // the shape is asserted below
}

/** How a running gateway would see the key: through a connection of its own. */
function seen(key: string) {
  using store = opened(join(folder.path, 'data', ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
  const { identify } = createIdentify(store, systemClock);
  return identify(extractApiKey(new Headers({ 'x-token': key }), 'http://x/')).kind;
}

describe('accounts', () => {
  beforeAll(() => run('account', 'create', 'first'));

  test('are created on the trial plan in ./data of the working folder, and listed as a table or one object per line', async () => {
    expect(existsSync(join(folder.path, 'data', ACCOUNTS_FILE))).toBe(true);
    const { code, out, err } = await run('account', 'create', 'Acme Ltd.');
    expect([code, out, err]).toEqual([0, 'Account Acme Ltd.: plan trial, 250000 credits left.\n', '']);
    const payer = { account: 'payer', plan: 'pro', credits_left: null };
    expect(await json('account', 'create', 'payer', '--plan', 'pro')).toEqual([payer]);
    const reader = { account: 'reader', plan: null, credits_left: null };
    expect(await json('account', 'create', 'reader', '--plan=none')).toEqual([reader]);
    const list = await run('account', 'list');
    expect(list.out).toMatch(/^ACCOUNT +PLAN +CREDITS LEFT +STATE\nfirst +trial +250000 +active\n/);
    const first = { account: 'first', plan: 'trial', credits_left: 250_000, suspended: false };
    expect((await json('account', 'list'))[0]).toEqual(first);
  });
  test('have their credits set to what shall be left, whatever the gateway wrote down as spent', async () => {
    using ledger = opened(join(folder.path, 'data', LEDGER_FILE), LEDGER_MIGRATIONS);
    ledger.run("INSERT INTO spent VALUES (1, 'n1', 700, 100), (1, 'n2', 50, 0)");
    const first = { account: 'first', plan: 'trial', credits_left: 249_350, suspended: false };
    expect(await json('account', 'list')).toContainEqual(first);
    const set = { account: 'first', plan: 'trial', credits_left: 1_000 };
    expect(await json('account', 'set', 'first', '--credits', '1_000')).toEqual([set]);
  });
  test('are given credits for a reason, once for each name of the gift', async () => {
    const gift = ['account', 'add-credits', 'first', '500', '--reason', 'outage', '--once', 'nov'];
    const [after] = await json(...gift);
    expect(after).toEqual({ account: 'first', plan: 'trial', credits_left: 1_500, suspended: false });
    expect((await run(...gift)).out).toBe(
      '500 credits were already added with this --once value; nothing was added.\nAccount first: plan trial, 1500 credits left.\n',
    );
    const again = await run('account', 'add-credits', 'first', '1_000', '--reason', 'thanks');
    expect(again.out).toBe('Account first: plan trial, 2500 credits left.\n');
  });
  test('are suspended, resumed and renamed, and their keys with them', async () => {
    await run('account', 'create', 'late payer', '--plan', 'pro');
    const { key } = await newKey('late payer');
    const suspended = await run('account', 'suspend', 'late payer');
    expect([suspended.out, seen(key)]).toEqual(['Account late payer: plan pro, suspended.\n', 'invalid-key']);
    await run('account', 'resume', 'late payer');
    expect(seen(key)).toBe('known');
    expect(await json('account', 'rename', 'late payer', 'good payer')).toEqual([
      { account: 'good payer', plan: 'pro', credits_left: null, suspended: false },
    ]);
    expect(seen(key)).toBe('known');
  });
  const nobody = 'No account named "nobody". List accounts with: account list';
  const unknownKey = 'No key with ID "beef". List keys with: key list';
  const credits = (what: string) => `${what} must be a whole number, for example 250_000`;
  const name = (what: string) => `${what} has 1 to 64 printable characters and no leading or trailing space.`;
  test.each([
    ['account create first', 'An account named "first" already exists.'],
    [
      'account create x --plan gold',
      'Unknown plan "gold". Available plans: trial, starter, pro, business, scale, none.',
    ],
    ['account create \tx', name('An account name')],
    ['account set nobody --plan pro', nobody],
    ['account set first', 'account set requires --plan P or --credits N.'],
    ['account set first --credits -5', 'Option --credits requires a value. Try: bun run sluice --help'],
    ['account set first --credits=-5', `${credits('--credits')}, not "-5".`],
    ['account add-credits first 5', 'account add-credits requires --reason TEXT.'],
    ['account add-credits first many --reason x', `${credits('NUMBER')}, not "many".`],
    ['account add-credits first 0 --reason x', `${credits('NUMBER')}, and at least 1.`],
    ['account add-credits payer 5 --reason x', 'Account "payer" is on plan pro, which has no credit limit.'],
    ['account suspend nobody', nobody],
    ['account rename first payer', 'An account named "payer" already exists.'],
    ['key create nobody', nobody],
    ['key create first --name a\tb', name('A key name')],
    ['key revoke beef', unknownKey],
    [
      'key rotate beef --grace 1w',
      '--grace must be a duration such as 0s, 15m, 24h or 7d, at most 3650d, not "1w".',
    ],
  ])('%s is one sentence on stderr and exit code 1', async (command, sentence) => {
    expect(await run(...command.split(' '))).toEqual({ code: 1, out: '', err: `${sentence}\n` });
  });
});

describe('keys', () => {
  beforeAll(() => run('account', 'create', 'holder'));

  test('are shown once, on stdout, and work', async () => {
    expect((await run('key', 'list', 'holder')).out).toBe(
      'No keys yet. Create one with: key create ACCOUNT\n',
    );
    const { out, err } = await run('key', 'create', 'holder', '--name', 'bot');
    const key = /^sluice_\w{38}$/m.exec(out)?.[0] ?? '';
    expect(seen(key)).toBe('known');
    expect(err).toBe('');
    const lists = [await run('key', 'list'), await run('key', 'list', '--json')];
    expect(lists.every((list) => list.out.includes(key.slice(-4)) && !list.out.includes(key))).toBe(true);
  });
  test('with --json have their documented members', async () => {
    const made = await newKey('holder', '--name', 'json');
    expect(made).toEqual({
      key_id: expect.stringMatching(/^[0-9a-f]{16}$/),
      key: expect.stringMatching(/^sluice_\w{38}$/),
      account: 'holder',
    } as never); // matchers stand for the members
    const row = (await json('key', 'list', 'holder')).find((one) =>
      JSON.stringify(one).includes(made.key_id),
    );
    expect(row).toEqual({
      key_id: made.key_id,
      account: 'holder',
      name: 'json',
      prefix: made.key.slice(0, 11),
      last4: made.key.slice(-4),
      state: 'active',
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      last_used_at: null,
    });
  });
  test('end when they are revoked; once more is no error', async () => {
    const { key, key_id } = await newKey('holder');
    const revoked = { code: 0, out: `Key ${key_id} has been revoked.\n`, err: '' };
    expect(await run('key', 'revoke', key_id)).toEqual(revoked);
    expect(seen(key)).toBe('invalid-key');
    expect((await run('key', 'revoke', key_id)).out).toBe(`Key ${key_id} was already revoked.\n`);
    expect((await run('key', 'rotate', key_id)).err).toBe(
      `Key ${key_id} is revoked. Create a new one with: key create\n`,
    );
  });
  test('are rotated: both work until the grace is over', async () => {
    const old = await newKey('holder', '--name', 'turning');
    const [next] = (await json('key', 'rotate', old.key_id)) as { key: string; key_id: string }[]; // asserted next
    expect([seen(old.key), seen(next?.key ?? '')]).toEqual(['known', 'known']);
    const states = (await json('key', 'list', 'holder')) as { key_id: string; name: string; state: string }[]; // asserted next
    const turning = states.filter(({ name }) => name === 'turning').map(({ state }) => state);
    expect(turning.toSorted()).toEqual(['active', 'expiring']);
    const { out } = await run('key', 'rotate', next?.key_id ?? '', '--grace', '0s');
    expect(out).toMatch(/The old key [0-9a-f]{16} expires at \d{4}-/);
    expect(seen(next?.key ?? '')).toBe('invalid-key');
  });
});

describe('the database of the config', () => {
  test('is the one that is used', async () => {
    const config = join(folder.path, 'other.toml');
    writeFileSync(
      config,
      `[storage]\ndata_dir = "${folder.path}/elsewhere"\n[plans.gold]\nrps = 1\ncredits = 9\n`,
    );
    expect(await json('account', 'create', 'first', '--plan', 'gold', '--config', config)).toEqual([
      { account: 'first', plan: 'gold', credits_left: 9 },
    ]);
    expect(existsSync(join(folder.path, 'elsewhere', ACCOUNTS_FILE))).toBe(true);
  });
  test.each(['account list', 'key revoke key_1', 'user list', 'webhook list x', 'usage', 'config reload'])(
    'M5 one that is not there is not made by %s',
    async (command) => {
      using empty = temporaryFolder();
      expect(await sluice(empty.path, command.split(' '))).toEqual({
        code: 1,
        out: '',
        err: `No database in the data directory ${empty.path}/data. "start" and "account create" create one. Check that this is the installation's folder, or pass --config.\n`,
      });
      expect(readdirSync(empty.path)).toEqual([]);
    },
  );
  test('M5 one that is made is reported, once', async () => {
    using empty = temporaryFolder();
    const create = (name: string) => sluice(empty.path, ['account', 'create', name]);
    const made = `Created a database in the data directory ${empty.path}/data.\n`;
    expect((await create('a')).err).toBe(made);
    expect((await create('b')).err).toBe('');
    rmSync(join(empty.path, 'data', ACCOUNTS_FILE));
    expect((await create('c')).err).toBe(made);
  });
});

test('audit lists what was changed and by whom, the newest first, also of one account alone', async () => {
  using empty = temporaryFolder();
  const run = (...args: string[]) => sluice(empty.path, args);
  await run('account', 'create', 'acme');
  await run('account', 'create', 'joe');
  await run('account', 'suspend', 'joe');
  expect(objectsOf(await run('audit', '--json'))).toMatchObject([
    { by: 'command line', action: 'account.suspend', account: 'joe', detail: {} },
    { action: 'account.create', account: 'joe', detail: { name: 'joe', plan: 'trial' } },
    { action: 'account.create', account: 'acme' },
  ]);
  const own = await run('audit', '--account', 'acme');
  expect(own.out).toMatch(/^AT +BY +ACTION +ACCOUNT +DETAIL\n20[^\n]* command line +account.create +acme /);
  expect(own.out).not.toContain('joe');
}, 30_000);

describe('deploys take-over', () => {
  const written = (more: string) => {
    const path = join(folder.path, 'copies.toml');
    writeFileSync(path, `[storage]\ndata_dir = "${join(folder.path, 'copies')}"\n${more}`);
    return path;
  };

  test('says that there is nothing to take over without storage.redis', async () => {
    const { code, out, err } = await run('deploys', 'take-over', '--config', written(''));
    expect([code, out, err]).toEqual([1, '', expect.stringContaining('has no storage.redis')]);
  });

  test('is a request to deploys, audited, for the generation after all that are known; other commands wait for it', async () => {
    const config = written('redis = "redis://127.0.0.1:1"\n[[backends]]\nname = "a"\nurl = "http://h"\n');
    await run('account', 'create', 'payer', '--config', config);
    const store = opened(join(folder.path, 'copies', ACCOUNTS_FILE), ACCOUNTS_MIGRATIONS);
    store.run('UPDATE publication SET generation = 6, behind = 7');
    const refused = await run('key', 'create', 'payer', '--config', config);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining('bun run sluice deploys take-over'),
    ]);
    expect(await json('deploys', 'take-over', '--config', config)).toEqual([
      { take_over: 'requested', generation: 6, published_generation: 7, as_generation: 8 },
    ]);
    const waiting = await run('key', 'create', 'payer', '--config', config);
    expect([waiting.code, waiting.err]).toEqual([1, expect.stringContaining('as soon as its deploys runs')]);
    expect(store.query('SELECT action, actor_kind FROM audit ORDER BY id').values()).toContainEqual([
      'deploys.take-over',
      'command-line',
    ]);
    expect(store.query('SELECT take_over FROM publication').values()).toEqual([[8]]);
    store.close();
  });
});
