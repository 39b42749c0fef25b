import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { type OperatorWorld, startOperatorWorld } from '../../operator-world.ts';

let world: OperatorWorld;
beforeEach(() => (world = startOperatorWorld()));
afterEach(() => world[Symbol.dispose]());

const ONCE = '0123456789abcdef012345';
const actionsOf = (accountId: number) =>
  world
    .entries({ accountId, limit: 100 })
    .map(({ action, actorKind, actorId }) => [action, actorKind, actorId]);
const spend = (accountId: number, credits: number) =>
  world.ledger.run('INSERT INTO spent VALUES (?, ?, ?, 0)', [accountId, 'n1', credits]);

describe('the list of accounts', () => {
  test('is searched and filtered by plan and state, in pages', async () => {
    for (let i = 1; i <= 60; i++) world.account(`acme ${i}`, i % 2 === 0 ? 'pro' : 'trial');
    world.account('api', null);
    const { get } = world.operator;
    const first = await get('/operator/accounts');
    expect(first.text).toContain('acme 60');
    expect(first.text).not.toContain('acme 11 ');
    const older = /href="([^"]*before=\d+)"/.exec(first.html)?.[1] ?? '';
    expect((await get(older)).text).toContain('acme 11 ');
    expect((await get('/operator/accounts?q=ACME+6')).text).toMatch(/acme 60.*acme 6 /);
    expect((await get('/operator/accounts?plan=none')).text).toMatch(/^(?!.*acme).* api None Unlimited /);
    expect((await get('/operator/accounts?plan=pro&q=acme')).text).toMatch(/^(?!.*acme 59).*acme 60 pro/);
  });

  test('tells suspended accounts and those out of credits apart', async () => {
    const [poor, bad] = [world.account('poor'), world.account('bad')];
    world.account('well');
    spend(poor.id, 250_000);
    world.accounts.suspend('bad', { kind: 'command-line' });
    const out = await world.operator.get('/operator/accounts?state=out-of-credits');
    expect(out.text).toContain('poor trial 0 Out of credits');
    expect(out.text).not.toContain('well');
    const suspended = await world.operator.get('/operator/accounts?state=suspended');
    expect(suspended.text).toContain('bad trial 250,000 Suspended');
    expect(suspended.text).not.toContain('poor');
    expect(bad.isSuspended).toBe(false);
  });

  test('says that nothing is like that', async () => {
    expect((await world.operator.get('/operator/accounts?q=x')).text).toContain('No matching accounts');
  });
});

describe('a new account', () => {
  test('is made and shown, with who made it', async () => {
    const { status, to } = await world.operator.post('/operator/accounts/new', {
      name: ' acme ',
      plan: 'pro',
    });
    const made = world.accounts.find('acme');
    expect([status, to]).toEqual([303, `/operator/accounts/${made?.id}?done=account-created`]);
    expect(made?.plan).toBe('pro');
    expect(actionsOf(made?.id ?? 0)).toEqual([['account.create', 'operator', world.operator.user.id]]);
  });

  test.each([
    [{ name: '', plan: 'pro' }, 'name', 'Use 1–64'],
    [{ name: 'taken', plan: 'pro' }, 'name', 'already exists'],
    [{ name: 'acme', plan: 'gold' }, 'plan', 'Plan gold is not'],
  ])('is refused at its field: %j', async (fields, field, sentence) => {
    world.account('taken');
    const { status, page } = await world.operator.post('/operator/accounts/new', fields);
    expect([status, page.errorAt(field)]).toEqual([422, expect.stringContaining(sentence)]);
    expect(page.field('name') ?? '').toBe(fields.name);
    expect(world.accounts.list()).toHaveLength(1);
  });
});

describe('an account', () => {
  test('shows what it has, and what was done', async () => {
    const { id } = world.account('acme');
    const { text } = await world.operator.get(`/operator/accounts/${id}`);
    expect(text).toContain('trial 5 calls per second');
    expect(text).toContain('250,000');
    expect(text).toContain('Command line');
    expect(text).toContain('name: acme, plan: trial');
  });

  test('is put on another plan, and on none', async () => {
    const { id } = world.account('acme');
    const path = `/operator/accounts/${id}/plan`;
    expect((await world.operator.post(path, { plan: 'scale' })).to).toContain('done=plan-changed');
    expect(world.accounts.findById(id)?.plan).toBe('scale');
    await world.operator.post(path, { plan: 'none' });
    expect(world.accounts.findById(id)?.plan).toBeUndefined();
    const bad = await world.operator.post(path, { plan: 'gold' });
    expect([bad.status, bad.page.errorAt('plan')]).toEqual([422, 'Plan gold is not in the config.']);
  });

  test('gets credits once per form, with a reason', async () => {
    const { id } = world.account('acme');
    const path = `/operator/accounts/${id}/credits`;
    const fields = { once: ONCE, credits: '1,000', reason: 'invoice 7' };
    for (let sent = 0; sent < 2; sent++)
      expect((await world.operator.post(path, fields)).to).toContain('done=credits-added');
    expect(world.accounts.findById(id)?.creditsLeft).toBe(251_000);
    const page = await world.operator.get(`/operator/accounts/${id}`);
    expect(page.text).toContain('Added 1,000 credits: “invoice 7”');
    expect(page.field('once')).toMatch(/^[\w-]{22}$/);
    expect(page.field('once')).not.toBe(ONCE);
  });

  test.each([
    [{ credits: 'many' }, 'credits', 'whole number'],
    [{ credits: '1.5' }, 'credits', 'whole number'],
    [{ credits: '0' }, 'credits', 'whole number'],
    [{ reason: '' }, 'reason', 'Use 1–200'],
  ])('gets no credits by a form that is wrong: %j', async (wrong, field, sentence) => {
    const { id } = world.account('acme');
    const fields = { once: ONCE, credits: '5', reason: 'why', ...wrong };
    const { status, page } = await world.operator.post(`/operator/accounts/${id}/credits`, fields);
    expect([status, page.errorAt(field)]).toEqual([422, expect.stringContaining(sentence)]);
    expect(page.field('once')).toBe(ONCE);
    expect(world.accounts.findById(id)?.creditsLeft).toBe(250_000);
  });

  test('on a plan without a limit gets no credits', async () => {
    const { id } = world.account('acme', 'pro');
    expect((await world.operator.get(`/operator/accounts/${id}`)).text).toContain('unlimited credits');
    const fields = { once: ONCE, credits: '5', reason: 'why' };
    const { page } = await world.operator.post(`/operator/accounts/${id}/credits`, fields);
    expect(page.errorAt('credits')).toBe('Plan pro has unlimited credits.');
  });

  test('is suspended only with its name typed, and resumed', async () => {
    const { id } = world.account('acme');
    const path = `/operator/accounts/${id}/suspend`;
    expect((await world.operator.get(path)).text).toContain('Type acme to confirm');
    expect((await world.operator.post(path, { confirm: 'acm' })).page.errorAt('confirm')).toBe(
      'Type acme to confirm.',
    );
    expect(world.accounts.findById(id)?.isSuspended).toBe(false);
    expect((await world.operator.post(path, { confirm: ' acme ' })).to).toContain('done=account-suspended');
    expect(world.accounts.findById(id)?.isSuspended).toBe(true);
    expect((await world.operator.get(`/operator/accounts/${id}`)).text).toContain(
      'all API keys are rejected',
    );
    await world.operator.post(`/operator/accounts/${id}/resume`);
    expect(world.accounts.findById(id)?.isSuspended).toBe(false);
    const by = ['operator', world.operator.user.id];
    expect(actionsOf(id).slice(0, 2)).toEqual([
      ['account.resume', ...by],
      ['account.suspend', ...by],
    ]);
  });

  test('is renamed, but to no name that another has', async () => {
    const { id } = world.account('acme');
    world.account('other');
    const path = `/operator/accounts/${id}/rename`;
    expect((await world.operator.post(path, { name: 'other' })).page.errorAt('name')).toContain(
      'already exists',
    );
    expect((await world.operator.post(path, { name: 'demo' })).page.errorAt('name')).toContain(
      'cannot be renamed',
    );
    expect((await world.operator.post(path, { name: 'acme 2' })).status).toBe(303);
    expect(world.accounts.findById(id)?.name).toBe('acme 2');
  });

  test.each(['0', '01', '999', 'x', '1e3'])('that is not there is not found: %s', async (id) => {
    expect((await world.operator.ask(`/operator/accounts/${id}`)).status).toBe(404);
    for (const verb of ['plan', 'credits', 'rename', 'suspend', 'resume', 'users'])
      expect((await world.operator.post(`/operator/accounts/${id}/${verb}`, { name: 'x' })).status).toBe(404);
  });
});

describe('the users of an account', () => {
  const shownIn = (html: string) => /id="secret"[^>]*>([^<]*)</.exec(html)?.[1]?.trim();

  test('are made with a password that is shown once, however often the form is sent', async () => {
    const { id } = world.account('acme');
    const form = await world.operator.get(`/operator/accounts/${id}`);
    const fields = { email: 'Ann@Example.com', user: form.field('user') ?? '' };
    const [first, second] = await Promise.all([
      world.operator.post(`/operator/accounts/${id}/users`, fields),
      world.operator.post(`/operator/accounts/${id}/users`, fields),
    ]);
    expect([first.status, second.to]).toEqual([303, first.to]);
    const password = shownIn((await world.operator.get(second.to ?? '')).html);
    expect(password).toMatch(/^[a-zA-Z2-9]{5}(-[a-zA-Z2-9]{5}){3}$/);
    const again = await world.operator.get(second.to ?? '');
    expect(again.html).not.toContain(password ?? '');
    const [user, ...others] = world.auth.users.ofAccount(id);
    expect(user).toMatchObject({
      email: 'ann@example.com',
      role: 'customer',
      passwordHash: `plain ${password}`,
    });
    expect(others).toEqual([]);
    expect(actionsOf(id)[0]).toEqual(['user.create', 'operator', world.operator.user.id]);
  });

  test.each([
    ['nobody', 'Enter a valid email address.'],
    ['op@example.com', 'A user with this email already exists.'],
  ])('are not made as %s', async (email, sentence) => {
    const { id } = world.account('acme');
    const user = world.auth.users.newId();
    const { status, page } = await world.operator.post(`/operator/accounts/${id}/users`, { email, user });
    expect([status, page.errorAt('email')]).toEqual([422, expect.stringContaining(sentence)]);
    expect(world.auth.users.ofAccount(id)).toEqual([]);
  });

  test.each(['acme', 'other'])('cannot be taken over by a form that names a user of %s', async (of) => {
    const [mine, other] = [world.account('acme'), world.account('other')];
    const accountId = of === 'acme' ? mine.id : other.id;
    const victim = world.made('victim@example.com', { role: 'customer', accountId });
    const fields = { email: 'new@example.com', user: victim.id };
    const { status } = await world.operator.post(`/operator/accounts/${mine.id}/users`, fields);
    expect(status).toBe(422);
    expect(world.auth.users.byId(victim.id)).toEqual(victim);
  });

  test('get a new password, are signed out, and are removed with their e-mail typed', async () => {
    const { id } = world.account('acme');
    const ann = world.made('ann@example.com', { role: 'customer', accountId: id });
    const theirs = world.session(ann);
    expect((await theirs.ask('/settings')).status).toBe(200);
    const path = `/operator/users/${ann.id}`;
    const { to } = await world.operator.post(`${path}/password`);
    const password = shownIn((await world.operator.get(to ?? '')).html);
    expect(world.auth.users.byId(ann.id)?.passwordHash).toBe(`plain ${password}`);
    expect((await theirs.ask('/settings')).status).toBe(303);
    const later = world.session(ann);
    await world.operator.post(`${path}/sign-out`);
    expect((await later.ask('/settings')).status).toBe(303);
    expect((await world.operator.post(`${path}/remove`, { confirm: 'ann' })).page.errorAt('confirm')).toBe(
      'Type ann@example.com to confirm.',
    );
    expect((await world.operator.post(`${path}/remove`, { confirm: ann.email })).to).toBe(
      `/operator/accounts/${id}?done=user-removed`,
    );
    expect(world.auth.users.byId(ann.id)).toBeUndefined();
  });

  test('lose their second factor with their e-mail typed', async () => {
    const { id } = world.account('acme');
    const ann = world.made('ann@example.com', { role: 'customer', accountId: id });
    world.store.run("UPDATE users SET totp_secret = x'00' WHERE id = ?", [ann.id]);
    const path = `/operator/users/${ann.id}/second-factor`;
    expect((await world.operator.post(path, { confirm: '' })).status).toBe(422);
    expect(world.auth.users.byId(ann.id)?.hasSecondFactor).toBe(true);
    expect((await world.operator.post(path, { confirm: ann.email })).status).toBe(303);
    expect(world.auth.users.byId(ann.id)?.hasSecondFactor).toBe(false);
    expect(actionsOf(id)[0]?.[0]).toBe('user.second-factor-off');
  });

  test('who are operators and remove each other at once are not both gone', async () => {
    const other = world.session(world.made('second@example.com', { role: 'operator', accountId: undefined }));
    const [own, theirs] = [world.operator.user, other.user];
    await Promise.all([
      world.operator.post(`/operator/users/${theirs.id}/remove`, { confirm: theirs.email }),
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
    using slow = startOperatorWorld({ hashWork: { hash, verify: () => Promise.resolve(true) } });
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
      expect((await world.operator.post(`${own}/${verb}`, { confirm: 'op@example.com' })).status).toBe(422);
    expect((await world.operator.get(own)).text).toContain('This is your own user');
  });
});
