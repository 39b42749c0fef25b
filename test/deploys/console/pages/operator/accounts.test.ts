import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { COMMAND_LINE } from '../../../auth/people.ts';
import { startWorld, type World } from '../../world.ts';

let world: World;
let { get, post }: World['operator'] = {} as never; // of each test's own world
beforeEach(() => {
  world = startWorld();
  ({ get, post } = world.operator);
});
afterEach(() => world[Symbol.dispose]());

const ONCE = '0123456789abcdef012345';
const ACCOUNTS = '/operator/accounts';
const byOperator = (...actions: string[]) =>
  actions.map((action) => `${action} operator ${world.operator.user.id}`);

test('the list of accounts is searched, and filtered by plan and state', async () => {
  for (const [name, plan] of Object.entries({ 'acme 1': 'trial', 'acme 2': 'pro', api: null, bad: 'trial' }))
    world.account(name, plan);
  world.spend(world.account('poor').id, 250_000);
  world.accounts.suspend('bad', COMMAND_LINE);
  const { text } = await get(ACCOUNTS);
  expect(text).toMatch(/poor trial 0 Out of credits .*bad trial 250,000 Suspended .*api None Unlimited /);
  for (const [query, names] of Object.entries({
    '': 'poor,bad,api,acme 2,acme 1',
    'q=ACME': 'acme 2,acme 1',
    'plan=none': 'api',
    'plan=pro&q=acme': 'acme 2',
    'state=out-of-credits': 'poor',
    'state=suspended': 'bad',
    'q=x': '',
  })) {
    const { html } = await get(`${ACCOUNTS}?${query}`);
    const found = [...html.matchAll(/accounts\/\d+"[^>]*>([^<]+)</g)].map(([, name]) => name);
    expect([query, found.join()]).toEqual([query, names]);
  }
});

describe('an account', () => {
  let id: number;
  let path: string;
  beforeEach(() => {
    ({ id } = world.account('acme'));
    path = `${ACCOUNTS}/${id}`;
  });
  const now = () => world.accounts.findById(id);

  test('shows what it has, and what was done', async () => {
    const { text } = await get(path);
    expect(text).toContain('trial 5 calls per second');
    expect(text).toContain('250,000');
    expect(text).toContain('Command line');
    expect(text).toContain('name: acme, plan: trial');
  });

  test('gets credits once per form, with a reason', async () => {
    const fields = { once: ONCE, credits: '1,000', reason: 'invoice 7' };
    await post(`${path}/credits`, fields);
    expect((await post(`${path}/credits`, fields)).to).toContain('done=credits-added');
    expect(now()?.creditsLeft).toBe(251_000);
    const page = await get(path);
    expect(page.text).toContain('Added 1,000 credits: “invoice 7”');
    expect(page.field('once')).toMatch(/^[\w-]{22}$/);
    expect(page.field('once')).not.toBe(ONCE);
  });

  test('on a plan without a limit gets no credits', async () => {
    await post(`${path}/plan`, { plan: 'pro' });
    expect((await get(path)).text).toContain('unlimited credits');
    const { page } = await post(`${path}/credits`, { once: ONCE, credits: '5', reason: 'why' });
    expect(page.errorAt('credits')).toBe('Plan pro has unlimited credits.');
  });

  test.each(['0', '01', '999', 'x', '1e3'])('that is not there is not found: %s', async (absent) => {
    expect((await world.operator.ask(`${ACCOUNTS}/${absent}`)).status).toBe(404);
  });
});

describe('the users of an account', () => {
  const shownIn = (html: string) => /id="secret"[^>]*>([^<]*)</.exec(html)?.[1]?.trim();

  test('are made with a password that is shown once, however often the form is sent', async () => {
    const { id } = world.account('acme');
    const form = await get(`${ACCOUNTS}/${id}`);
    const fields = { email: 'Ann@Example.com', user: form.field('user') ?? '' };
    const [first, second] = await Promise.all([
      post(`${ACCOUNTS}/${id}/users`, fields),
      post(`${ACCOUNTS}/${id}/users`, fields),
    ]);
    expect([first.status, second.to]).toEqual([303, first.to]);
    const password = shownIn((await get(second.to)).html);
    expect(password).toMatch(/^[a-zA-Z2-9]{5}(-[a-zA-Z2-9]{5}){3}$/);
    const again = await get(second.to);
    expect(again.html).not.toContain(password ?? '');
    const [user, ...others] = world.auth.users.ofAccount(id);
    expect(user).toMatchObject({
      email: 'ann@example.com',
      role: 'customer',
      passwordHash: `plain ${password}`,
    });
    expect(others).toEqual([]);
    expect(world.actions(id).slice(0, 1)).toEqual(byOperator('user.create'));
  });

  test.each(['acme', 'other'])('cannot be taken over by a form that names a user of %s', async (of) => {
    const [mine, other] = [world.account('acme'), world.account('other')];
    const accountId = of === 'acme' ? mine.id : other.id;
    const victim = world.made('victim@example.com', { role: 'customer', accountId });
    const fields = { email: 'new@example.com', user: victim.id };
    const { status } = await post(`/operator/accounts/${mine.id}/users`, fields);
    expect(status).toBe(422);
    expect(world.auth.users.byId(victim.id)).toEqual(victim);
  });

  test('who are operators and remove each other at once are not both gone', async () => {
    const other = world.session(world.made('second@example.com', { role: 'operator', accountId: undefined }));
    const [own, theirs] = [world.operator.user, other.user];
    await Promise.all([
      post(`/operator/users/${theirs.id}/remove`, { confirm: theirs.email }),
      other.post(`/operator/users/${own.id}/remove`, { confirm: own.email }),
    ]);
    expect(world.auth.users.operators()).toHaveLength(1);
  });

  test('keep their password when the operator who changes it is removed while it is hashed', async () => {
    const [begun, hashed] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const hash = () => {
      begun.resolve();
      return hashed.promise;
    };
    using slow = startWorld({ hashWork: { hash, verify: () => Promise.resolve(true) } });
    const other = slow.session(slow.made('second@example.com', { role: 'operator', accountId: undefined }));
    const [own, theirs] = [slow.operator.user, other.user];
    const changing = slow.operator.post(`/operator/users/${theirs.id}/password`);
    await begun.promise;
    await other.post(`/operator/users/${own.id}/remove`, { confirm: own.email });
    hashed.resolve('new');
    expect((await changing).status).toBe(404);
    expect(slow.auth.users.byId(theirs.id)?.passwordHash).toBe(theirs.passwordHash);
    expect((await other.ask('/settings')).status).toBe(200);
  });

  test('are not changed here by themselves', async () => {
    const own = `/operator/users/${world.operator.user.id}`;
    for (const verb of ['password', 'sign-out', 'second-factor', 'remove'])
      expect((await post(`${own}/${verb}`, { confirm: 'op@example.com' })).status).toBe(422);
    expect((await get(own)).text).toContain('This is your own user');
  });
});
