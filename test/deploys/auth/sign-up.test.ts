import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { PASSWORD_CHARACTERS, passwordComplaint } from '../../../deploys/auth/passwords.ts';
import { inviteFirstOperator } from '../../../deploys/auth/sign-up.ts';
import { ADA, COMMAND_LINE, OPERATOR, PASSWORD, random, startPeople } from './people.ts';

const HOURS_24_MS = 24 * 3_600_000;
const fields = { email: ADA, 'new-password': PASSWORD };

let started: ReturnType<typeof startPeople>;
beforeEach(() => void (started = startPeople({ signUp: true })));
afterEach(() => started[Symbol.dispose]());

describe('the link of the first operator', () => {
  function invited(): string {
    const token = inviteFirstOperator({ ...started, random });
    if (token === undefined) throw new Error('there is an operator');
    return token;
  }
  const follow = (token: string, more: object = {}, visitor = started.visitor()) =>
    visitor.post('/first-operator', { ...fields, ...more, token });

  test('makes one operator, who is logged in, and is used up; a bad password does not use it up', async () => {
    const token = invited();
    expect(token).toMatch(/^[\w-]{43}$/);
    const [row] = started.store.query<{ token_hash: Uint8Array }, []>('SELECT * FROM first_operator').all();
    expect(Buffer.from(row?.token_hash ?? []).includes(token)).toBe(false);
    const visitor = started.visitor();
    expect(await (await visitor.get(`/first-operator?token=${token}`)).text()).toContain(token);
    const refused = await follow(token, { 'new-password': 'short' });
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('at least 12')]);
    expect((await follow(token, {}, visitor)).status).toBe(303);
    expect(await started.viewerOf(visitor.request())).toMatchObject({ role: 'operator', email: ADA });
    expect((await follow(token, { email: 'eve@example.com' })).status).toBe(410);
    expect(started.audit.list({ limit: 9 })).toMatchObject([
      { action: 'user.create', actorKind: 'operator', detail: { email: ADA, role: 'operator' } },
    ]);
  });

  test('makes one operator when it is used twice at once', async () => {
    const token = invited();
    const emails = ['a@example.com', 'b@example.com'];
    const answers = await Promise.all(emails.map((email) => follow(token, { email })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 410]);
    expect(started.auth.users.list()).toHaveLength(1);
  });

  test('is over after 24 hours, when there is a new one, and once there is an operator', async () => {
    const late = invited();
    await started.clock.advance(HOURS_24_MS);
    expect((await follow(late)).status).toBe(410);
    const [old, token] = [invited(), invited()];
    expect((await follow(old)).status).toBe(410);
    started.made('root@example.com', OPERATOR);
    expect((await follow(token)).status).toBe(410);
    expect(started.auth.users.list()).toHaveLength(1);
    expect(inviteFirstOperator({ ...started, random })).toBeUndefined();
  });
});

describe('signing up', () => {
  const signUp = (more: Record<string, string>, visitor = started.visitor()) =>
    visitor.post('/sign-up', { ...fields, account: 'acme', ...more });

  test('is off unless the config allows it', async () => {
    using off = startPeople();
    expect((await off.visitor().get('/sign-up')).status).toBe(404);
    expect((await signUp({}, off.visitor())).status).toBe(404);
    expect(off.auth.users.list()).toEqual([]);
  });

  test('makes a customer with an account on the trial plan', async () => {
    const visitor = started.visitor();
    const answer = await signUp({}, visitor);
    expect([answer.status, answer.headers.get('location')]).toEqual([303, '/']);
    const account = started.accounts.find('acme');
    expect(account).toMatchObject({ plan: 'trial', creditsLeft: 250_000 });
    const viewer = { role: 'customer' as const, accountId: account?.id ?? -1 };
    expect(await started.viewerOf(visitor.request())).toMatchObject(viewer);
  });

  test('leaves neither a user nor an account behind when it is refused', async () => {
    started.made('taken@example.com');
    started.accounts.create('acme', 'trial', COMMAND_LINE);
    const unfit = [{ account: ' ' }, { email: 'taken@example.com' }, { 'new-password': ADA }];
    for (const more of [{ account: 'acme' }, ...unfit.map((each) => ({ account: 'new', ...each }))])
      expect((await signUp(more)).status).toBe(422);
    expect([started.auth.users.list().length, started.accounts.list().length]).toEqual([1, 1]);
  });

  test.each(['demo', 'sluice-watcher'])('P4 gives nobody the account name %s', async (account) => {
    const refused = await signUp({ account });
    expect([refused.status, await refused.text()]).toEqual([422, expect.stringContaining('another name')]);
    expect(started.accounts.create(account, 'trial', COMMAND_LINE)).toEqual({ kind: 'reserved-name' });
    expect(started.accounts.list()).toEqual([]);
  });

  test('is for five from one address, then one every ten minutes', async () => {
    const ask = (i: number, address: string) =>
      signUp({ email: `u${i}@example.com`, account: `a${i}` }, started.visitor(address));
    // Neighbours in one IPv6 network are one address.
    for (let i = 0; i < 5; i++) expect((await ask(i, `2001:db8:1:2::${i + 1}`)).status).toBe(303);
    const refused = await ask(6, '2001:db8:1:2:ffff::9');
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '600']);
    expect((await ask(7, '2001:db8:1:3::1')).status).toBe(303);
  });
});

const { min, max } = PASSWORD_CHARACTERS;
const words = 'kestrel-lamp-orbit-walnut-'.repeat(5);
test.each([
  [words.slice(0, min - 1), 'at least 12'],
  [words.slice(0, min), ''],
  [words.slice(0, max), ''],
  [words.slice(0, max + 1), 'at most 100'],
  ['🦀🐙🦑🐳🐬🦭🐟🐠🐡🦈🐚🪸', ''],
  ['Password1234', 'too common'],
  ['aaaaaaaaaaaaaaa', 'too common'],
  ['abcabcabcabcab', 'too common'],
  ['Ada.Lovelace@example.com', "can't be your email"],
  ['ada.lovelace', "can't be your email"],
])('the complaint about the password %p is %p', (password, complaint) => {
  const said = passwordComplaint(password, 'ada.lovelace@example.com') ?? '';
  expect([said === '', said.includes(complaint)]).toEqual([complaint === '', true]);
});
