import { describe, expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { USERS_MIGRATIONS } from '../../../deploys/auth/users.ts';
import { DEPLOYS_MIGRATIONS } from '../../../deploys/schema.ts';
import { ACCOUNTS_MIGRATIONS } from '../../../shared/keys/schema.ts';
import { Secret } from '../../../shared/secret.ts';
import { type Person, type ProviderOptions, startIdentityProvider } from '../../fakes/identity-provider.ts';
import { opened } from '../../started/gateway.ts';
import { logIn, PASSWORD, startPeople } from './people.ts';

const BY = { kind: 'command-line' } as const;
const CLIENT = { clientId: 'sluice', clientSecret: 'the secret of the client' };
const ADA: Person = { sub: '7', email: 'ada@example.com', email_verified: true };
type Wrong = Pick<ProviderOptions, 'claims' | 'document' | 'sign' | 'back'>;
/** A token with other claims; a document with other members. */
const claims = (others: object | (() => object)): Wrong => ({
  claims: (right) => ({ ...right, ...(typeof others === 'function' ? others() : others) }),
});
const document = (others: object): Wrong => ({ document: (right) => ({ ...right, ...others }) });

const seconds = (fromNow: number) => Math.floor(Date.now() / 1_000) + fromNow;
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
/** The claims of a token under another head and signature. */
const resigned = (token: string, head: object, signature = '') =>
  `${encoded(head)}.${token.split('.')[1]}.${signature}`;

const hmac = (text: string) => createHmac('sha256', CLIENT.clientSecret).update(text).digest('base64url');
/** RFC 9207. */
const namesItself = document({ authorization_response_iss_parameter_supported: true });

/** The login pages with a provider whose user is `person`. */
async function start(person: Person = ADA, rows: { signUp?: boolean } = {}, wrong: Wrong = {}) {
  const provider = await startIdentityProvider(person, { ...CLIENT, ...wrong, nowMs: Date.now });
  const oidc = {
    issuer: provider.issuer,
    clientId: CLIENT.clientId,
    clientSecret: new Secret(CLIENT.clientSecret),
    name: 'Company login',
  };
  const started = startPeople({ oidc, ...rows }, undefined, fetch);

  /** Goes to the provider; gives where it sends back to. */
  async function leave(visitor = started.visitor(), next = '/'): Promise<string | undefined> {
    const sent = await visitor.get(`/login/provider?next=${encodeURIComponent(next)}`);
    if (sent.status !== 303) return undefined;
    const back = await fetch(sent.headers.get('location') ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(back.headers.get('location') ?? '');
    return `${pathname}${search}`;
  }
  /** Goes to the provider and comes back; gives the answer to the return. */
  async function through(visitor = started.visitor(), next = '/') {
    return visitor.get((await leave(visitor, next)) ?? '/login/provider');
  }
  /** Whether a visitor is signed in after coming back, and with which status they came. */
  async function comesBack(visitor = started.visitor()) {
    const { status } = await through(visitor);
    return [status, (await started.viewerOf(visitor.request())) !== undefined];
  }
  return {
    ...started,
    provider,
    leave,
    through,
    comesBack,
    async [Symbol.asyncDispose]() {
      started[Symbol.dispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

describe('a login through the identity provider', () => {
  test('finds a user by the verified e-mail, and by the provider’s own name for them ever after', async () => {
    await using started = await start();
    const user = started.made('ada@example.com');
    const visitor = started.visitor();
    expect(await (await visitor.get('/login')).text()).toContain('Sign in with Company login');
    const answer = await started.through(visitor, '/operator/queue');
    expect(answer.headers.get('location')).toBe('/settings/second-factor?next=%2Foperator%2Fqueue');
    expect(await started.viewerOf(visitor.request())).toMatchObject({ userId: user.id });
    started.store.run("UPDATE users SET email = 'renamed@example.com'");
    const again = started.visitor();
    await started.through(again);
    expect(await started.viewerOf(again.request())).toMatchObject({ email: 'renamed@example.com' });
    expect(started.audit.list({ limit: 1 })).toMatchObject([{ action: 'user.link' }]);
  });

  test.each<[string, Person]>([
    ['nobody here knows', { ...ADA, email: 'eve@example.com' }],
    ['whose e-mail nobody verified', { ...ADA, email_verified: false }],
    ['whose e-mail is said to be verified in words', { ...ADA, email_verified: 'true' }],
    ['without an e-mail', { sub: '7' }],
  ])('lets in no one %s', async (_, person) => {
    await using started = await start(person);
    started.made('ada@example.com');
    expect(await started.comesBack()).toEqual([403, false]);
    expect(started.auth.users.list()).toHaveLength(1);
  });

  test('makes an account on the trial plan where signing up is allowed, and leads to no other origin', async () => {
    await using started = await start(ADA, { signUp: true });
    const visitor = started.visitor();
    expect((await started.through(visitor, '//evil.example')).headers.get('location')).toBe('/');
    expect(await started.viewerOf(visitor.request())).toMatchObject({ role: 'customer' });
    expect(started.accounts.list()).toMatchObject([{ name: 'ada@example.com', plan: 'trial' }]);
  });

  test('asks for the second factor of whoever has one', async () => {
    await using started = await start();
    const user = started.made('ada@example.com');
    const secret = started.auth.secondFactor.begin(user);
    started.auth.secondFactor.confirm(user, started.codeNow(secret));
    const visitor = started.visitor();
    const answer = await started.through(visitor, '/settings');
    expect(answer.headers.get('location')).toBe('/login/second-step?next=%2Fsettings');
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
  });
});

describe('a login whose e-mail nobody verified', () => {
  const SQUATTED = { account: 'ada', email: 'ada@example.com', 'new-password': PASSWORD };

  test('P1 is not given to who has the e-mail at the provider, and keeps nothing of theirs', async () => {
    await using started = await start(ADA, { signUp: true });
    const attacker = started.visitor();
    expect((await attacker.post('/sign-up', SQUATTED)).status).toBe(303);
    const owner = started.visitor('192.0.2.2');
    const answer = await started.through(owner);
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('never verified')]);
    expect(await started.viewerOf(owner.request())).toBeUndefined();
    expect(started.auth.users.list()).toMatchObject([{ subject: undefined, isEmailVerified: false }]);
    // An operator removes it: then the e-mail is its owner's.
    const [squatter] = started.auth.users.list();
    if (squatter === undefined) throw new Error('nobody signed up');
    started.auth.users.remove(squatter, BY);
    expect((await started.through(owner)).headers.get('location')).toBe('/');
    expect(await started.viewerOf(attacker.request())).toBeUndefined();
    const { accountId } = (await started.viewerOf(owner.request())) ?? {};
    expect(started.accounts.findById(accountId ?? 0)).toMatchObject({ name: 'ada@example.com' });
  });

  test('P1 is linked, with all it has, by who is signed in to it in the same browser', async () => {
    await using started = await start(ADA, { signUp: true });
    const visitor = started.visitor();
    await visitor.post('/sign-up', SQUATTED);
    expect(await (await visitor.get('/settings')).text()).toContain('Link Company login');
    const answer = await started.through(visitor, '/settings');
    expect(answer.headers.get('location')).toBe('/settings');
    const again = started.visitor('192.0.2.2');
    expect((await started.through(again)).headers.get('location')).toBe('/');
    expect(await started.viewerOf(again.request())).toMatchObject({ email: 'ada@example.com' });
    expect((await logIn(started.visitor('192.0.2.3'), 'ada@example.com')).status).toBe(303);
    expect(await (await visitor.get('/settings')).text()).not.toContain('Link Company login');
  });

  test('P1 is not linked by who is signed in to another login', async () => {
    await using started = await start(ADA, { signUp: true });
    await started.visitor().post('/sign-up', SQUATTED);
    started.made('eve@example.com');
    const eve = started.visitor('192.0.2.2');
    await logIn(eve, 'eve@example.com');
    expect((await started.through(eve)).status).toBe(403);
    expect(started.auth.users.list().every(({ subject }) => subject === undefined)).toBe(true);
  });

  test('P1 is every one that signed up before this was kept, and none that an operator made', () => {
    using store = opened(':memory:', { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
    store.run(`INSERT INTO users (id, email, role, created_at_ms) VALUES
      ('a', 'typed@example.com', 'operator', 1), ('b', 'made@example.com', 'operator', 2)`);
    store.run(`INSERT INTO audit (at_ms, actor_kind, actor_id, action, subject, detail_json) VALUES
      (1, 'operator', 'a', 'user.create', 'a', '{}'), (2, 'operator', 'a', 'user.create', 'b', '{}')`);
    store.run('ALTER TABLE users DROP COLUMN email_verified');
    store.run(USERS_MIGRATIONS['users-verified-1'] ?? '');
    const rows = store.query('SELECT id, email_verified FROM users ORDER BY id').all();
    expect(rows).toEqual([
      { id: 'a', email_verified: 0 },
      { id: 'b', email_verified: 1 },
    ]);
  });
});

test('P2 a link to the provider is never replaced by another subject', async () => {
  await using started = await start({ ...ADA, sub: '8' });
  const user = started.made('ada@example.com');
  expect(started.auth.users.setSubject(user, `${started.provider.issuer} 7`)).toBe(true);
  const visitor = started.visitor();
  await logIn(visitor, 'ada@example.com');
  const answer = await started.through(visitor);
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('another identity')]);
  expect(started.auth.users.setSubject(user, `${started.provider.issuer} 8`)).toBe(false);
  expect(started.auth.users.byId(user.id)?.subject).toBe(`${started.provider.issuer} 7`);
  started.auth.users.unlink(user, BY);
  expect((await started.through(started.visitor())).status).toBe(303);
  expect(started.auth.users.byId(user.id)?.subject).toBe(`${started.provider.issuer} 8`);
});

test('P3 an e-mail with a letter that only looks like another’s is somebody else’s', async () => {
  // The lower case of U+212A KELVIN SIGN is the k of ASCII.
  await using started = await start({ ...ADA, email: 'root@\u212aite.example' }, { signUp: true });
  const operator = started.made('root@kite.example');
  const visitor = started.visitor();
  await started.through(visitor);
  expect(await started.viewerOf(visitor.request())).toMatchObject({ role: 'customer' });
  expect(started.auth.users.byId(operator.id)?.subject).toBeUndefined();
  expect((await logIn(started.visitor(), 'root@\u212aite.example')).status).toBe(401);
  expect((await logIn(started.visitor(), ' Root@KITE.example')).status).toBe(303);
});

describe('P10 a return from the provider is refused', () => {
  test('in another browser than the one that left, and after ten minutes', async () => {
    await using started = await start();
    started.made('ada@example.com');
    const [visitor, victim] = [started.visitor(), started.visitor()];
    const back = (await started.leave(visitor)) ?? '';
    expect((await victim.get(back)).status).toBe(400);
    await victim.get('/login/provider');
    expect((await victim.get(back)).status).toBe(400);
    expect(await started.viewerOf(victim.request())).toBeUndefined();
    await started.clock.advance(10 * 60_000);
    expect((await visitor.get(back)).status).toBe(400);
  });

  test.each<[string, Wrong]>([
    ['of another issuer', claims({ iss: 'https://evil.example' })],
    ['for another client', claims({ aud: 'another' })],
    ['given to another client', claims({ aud: ['sluice', 'b'], azp: 'b' })],
    ['that is over', claims({ exp: 1 })],
    ['of another login', claims({ nonce: 'another' })],
    ['that names nobody', claims({ sub: '' })],
    ['that was over for longer than clocks differ', claims(() => ({ exp: seconds(-90) }))],
    ['that is not good yet', claims(() => ({ nbf: seconds(90) }))],
    ['for one client, given to another', claims({ azp: 'b' })],
    ['that nobody signed', { sign: (token) => resigned(token, { alg: 'none' }) }],
    [
      'with a signature of its length that is none',
      { sign: (token) => resigned(token, { alg: 'RS256' }, 'A'.repeat(342)) },
    ],
    [
      'signed with the client’s secret',
      {
        sign: (token) =>
          resigned(token, { alg: 'HS256' }, hmac(resigned(token, { alg: 'HS256' }).slice(0, -1))),
      },
    ],
    [
      'that came back in the name of another issuer',
      { back: { iss: 'https://evil.example' }, ...namesItself },
    ],
    ['that came back in nobody’s name where it has one', namesItself],
  ])('with an ID token %s', async (_, wrong) => {
    await using started = await start(ADA, {}, wrong);
    started.made('ada@example.com');
    expect(await started.comesBack()).toEqual([503, false]);
    expect(started.reasons).toHaveLength(1);
  });
});

test.each<[string, Wrong, string]>([
  ['calls itself by another name', document({ issuer: 'https://other.example' }), ''],
  ['names an endpoint without TLS', document({ token_endpoint: 'http://a.example/t' }), 'safe'],
  ['says nothing', { document: () => ({}) }, ''],
  ['answers without end', document({ filler: 'x'.repeat(300_000) }), 'too much'],
])('nobody is sent to a provider that %s', async (_, wrong, reason) => {
  await using started = await start(ADA, {}, wrong);
  const answer = await started.visitor().get('/login/provider');
  expect([answer.status, answer.headers.get('location')]).toEqual([503, null]);
  expect(started.reasons).toEqual([expect.stringContaining(reason)]);
});

test.each<[string, Wrong]>([
  ['is over for less than clocks differ', claims(() => ({ exp: seconds(-30) }))],
  ['is from a clock that is ahead', claims(() => ({ iat: seconds(30), nbf: seconds(30) }))],
  ['is for several, and given to us', claims({ aud: ['sluice', 'b'], azp: 'sluice' })],
  [
    'is of a provider that takes the secret in the body alone',
    document({ token_endpoint_auth_methods_supported: ['client_secret_post'] }),
  ],
])('an ID token is taken that %s', async (_, token) => {
  await using started = await start(ADA, {}, token);
  started.made('ada@example.com');
  expect((await started.through()).status).toBe(303);
});

test('the provider’s document is asked for once an hour', async () => {
  await using started = await start();
  const asked = () => started.provider.asked.filter((line) => line.includes('well-known')).length;
  await started.visitor().get('/login/provider');
  await started.visitor().get('/login/provider');
  expect(asked()).toBe(1);
  await started.clock.advance(3_600_000);
  await started.visitor().get('/login/provider');
  expect(asked()).toBe(2);
});
