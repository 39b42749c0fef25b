import { describe, expect, test } from 'bun:test';
import { PASSWORD_CHARACTERS, passwordComplaint } from '../../../deploys/auth/passwords.ts';
import { inviteFirstOperator } from '../../../deploys/auth/sign-up.ts';
import { COMMAND_LINE, OPERATOR, PASSWORD, random, startPeople } from './people.ts';

const ADA = 'ada@example.com';
const HOURS_24_MS = 24 * 3_600_000;
const fields = { email: ADA, 'new-password': PASSWORD };

function invited(started: ReturnType<typeof startPeople>): string {
  const token = inviteFirstOperator({ ...started, random });
  if (token === undefined) throw new Error('there is an operator');
  return token;
}

describe('the link of the first operator', () => {
  test('makes one operator, who is logged in, and is used up', async () => {
    using started = startPeople();
    const token = invited(started);
    expect(token).toMatch(/^[\w-]{43}$/);
    const visitor = started.visitor();
    expect(await (await visitor.get(`/first-operator?token=${token}`)).text()).toContain(token);
    expect((await visitor.post('/first-operator', { ...fields, token })).status).toBe(303);
    expect(await started.viewerOf(visitor.request())).toMatchObject({ role: 'operator', email: ADA });
    const second = await started
      .visitor()
      .post('/first-operator', { ...fields, email: 'eve@example.com', token });
    expect(second.status).toBe(410);
    expect(started.auth.users.list()).toHaveLength(1);
    expect(started.audit.list({ limit: 9 })).toMatchObject([
      { action: 'user.create', actorKind: 'operator', detail: { email: ADA, role: 'operator' } },
    ]);
  });

  test('makes one operator when it is used twice at once', async () => {
    using started = startPeople();
    const token = invited(started);
    const answers = await Promise.all(
      ['a@example.com', 'b@example.com'].map((email) =>
        started.visitor().post('/first-operator', { ...fields, email, token }),
      ),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 410]);
    expect(started.auth.users.list()).toHaveLength(1);
  });

  test('is over after 24 hours', async () => {
    using started = startPeople();
    const token = invited(started);
    await started.clock.advance(HOURS_24_MS);
    expect((await started.visitor().post('/first-operator', { ...fields, token })).status).toBe(410);
  });

  test('is over as soon as an operator was made by another way', async () => {
    using started = startPeople();
    const token = invited(started);
    started.made('root@example.com', OPERATOR);
    expect((await started.visitor().post('/first-operator', { ...fields, token })).status).toBe(410);
    expect(started.auth.users.list()).toHaveLength(1);
  });

  test('is over when there is a new one, and there is none once there is an operator', async () => {
    using started = startPeople();
    const [old, token] = [invited(started), invited(started)];
    expect((await started.visitor().post('/first-operator', { ...fields, token: old })).status).toBe(410);
    started.made('root@example.com', OPERATOR);
    expect(inviteFirstOperator({ ...started, random })).toBeUndefined();
    expect((await started.visitor().post('/first-operator', { ...fields, token })).status).toBe(410);
  });

  test('is not kept in the clear, and a bad password does not use it up', async () => {
    using started = startPeople();
    const token = invited(started);
    const [row] = started.store.query<{ token_hash: Uint8Array }, []>('SELECT * FROM first_operator').all();
    expect(Buffer.from(row?.token_hash ?? []).includes(token)).toBe(false);
    const visitor = started.visitor();
    const refused = await visitor.post('/first-operator', { ...fields, 'new-password': 'short', token });
    expect([refused.status, (await refused.text()).includes('at least 12')]).toEqual([422, true]);
    expect((await visitor.post('/first-operator', { ...fields, token })).status).toBe(303);
  });
});

describe('signing up', () => {
  test('is off unless the config allows it', async () => {
    using started = startPeople();
    expect((await started.visitor().get('/sign-up')).status).toBe(404);
    expect((await started.visitor().post('/sign-up', { ...fields, account: 'acme' })).status).toBe(404);
    expect(started.auth.users.list()).toEqual([]);
  });

  test('makes a customer with an account on the trial plan', async () => {
    using started = startPeople({ signUp: true });
    const visitor = started.visitor();
    const answer = await visitor.post('/sign-up', { ...fields, account: 'acme' });
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    const account = started.accounts.find('acme');
    expect(account).toMatchObject({ plan: 'trial', creditsLeft: 250_000 });
    expect(await started.viewerOf(visitor.request())).toMatchObject({
      role: 'customer',
      accountId: account?.id ?? -1,
    });
  });

  test('leaves neither a user nor an account behind when it is refused', async () => {
    using started = startPeople({ signUp: true });
    started.made('taken@example.com');
    started.accounts.create('acme', 'trial', COMMAND_LINE);
    const visitor = started.visitor();
    const ask = async (more: Record<string, string>) =>
      (await visitor.post('/sign-up', { ...fields, account: 'new', ...more })).status;
    expect(await ask({ account: 'acme' })).toBe(422);
    expect(await ask({ account: ' ' })).toBe(422);
    expect(await ask({ email: 'taken@example.com' })).toBe(422);
    expect(await ask({ 'new-password': ADA })).toBe(422);
    expect(started.auth.users.list()).toHaveLength(1);
    expect(started.accounts.list()).toHaveLength(1);
  });

  test.each(['demo', 'sluice-watcher'])('P4 gives nobody the account name %s', async (account) => {
    using started = startPeople({ signUp: true });
    const refused = await started.visitor().post('/sign-up', { ...fields, account });
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('another name')]);
    expect(started.accounts.create(account, 'trial', COMMAND_LINE)).toEqual({ kind: 'reserved-name' });
    expect(started.accounts.list()).toEqual([]);
  });

  test('comes back with what was typed, escaped, and never with the password', async () => {
    using started = startPeople({ signUp: true });
    const answer = await started
      .visitor()
      .post('/sign-up', { account: '"><script>alert(1)</script>', email: 'x', 'new-password': PASSWORD });
    const page = await answer.text();
    expect(page).toContain('&lt;script>alert(1)');
    expect(page).not.toContain('<script>');
    expect(page).not.toContain(PASSWORD);
  });

  test('is for five from one address, then one every ten minutes', async () => {
    using started = startPeople({ signUp: true });
    const ask = (i: number, address: string) =>
      started.visitor(address).post('/sign-up', { ...fields, email: `u${i}@example.com`, account: `a${i}` });
    // Neighbours in one IPv6 network are one address.
    for (let i = 0; i < 5; i++) expect((await ask(i, `2001:db8:1:2::${i + 1}`)).status).toBe(303);
    const refused = await ask(6, '2001:db8:1:2:ffff::9');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '600']);
    expect((await ask(7, '2001:db8:1:3::1')).status).toBe(303);
  });
});

describe('a password', () => {
  const { min, max } = PASSWORD_CHARACTERS;
  const words = 'kestrel-lamp-orbit-walnut-'.repeat(5);
  test.each([
    [words.slice(0, min - 1), 'at least 12'],
    [words.slice(0, min), undefined],
    [words.slice(0, max), undefined],
    [words.slice(0, max + 1), 'at most 100'],
    ['🦀🐙🦑🐳🐬🦭🐟🐠🐡🦈🐚🪸', undefined],
    ['Password1234', 'too common'],
    ['aaaaaaaaaaaaaaa', 'too common'],
    ['abcabcabcabcab', 'too common'],
    ['Ada.Lovelace@example.com', 'not be the email'],
    ['ada.lovelace', 'not be the email'],
  ] as const)('%p: %p', (password, complaint) => {
    const said = passwordComplaint(password, 'ada.lovelace@example.com');
    if (complaint === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(complaint);
  });
});
