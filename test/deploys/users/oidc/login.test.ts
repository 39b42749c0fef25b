import { describe, expect, test } from 'bun:test';
import { Secret } from '../../../../shared/secret.ts';
import {
  type Person,
  type ProviderOptions,
  startIdentityProvider,
} from '../../../fakes/identity-provider.ts';
import { startPeople } from '../people.ts';

const CLIENT = { clientId: 'sluice', clientSecret: 'the secret of the client' };
const ADA: Person = { sub: '7', email: 'ada@example.com', email_verified: true };
type Wrong = Pick<ProviderOptions, 'claims' | 'document'>;

/** The login pages with a provider whose user is `person`. */
function start(person: Person = ADA, rows: { signUp?: boolean } = {}, wrong: Wrong = {}) {
  let nowMs = () => 0;
  const provider = startIdentityProvider(person, { ...CLIENT, ...wrong, nowMs: () => nowMs() });
  const oidc = {
    issuer: provider.issuer,
    clientId: CLIENT.clientId,
    clientSecret: new Secret(CLIENT.clientSecret),
    name: 'Company login',
  };
  const started = startPeople({ oidc, ...rows }, undefined, fetch);
  nowMs = () => started.clock.now();

  /** Goes to the provider and comes back; gives the answer to the return. */
  async function through(visitor = started.visitor(), next = '/') {
    const sent = await visitor.get(`/login/provider?next=${encodeURIComponent(next)}`);
    if (sent.status !== 303) return sent;
    const back = await fetch(sent.headers.get('location') ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(back.headers.get('location') ?? '');
    return visitor.get(`${pathname}${search}`);
  }
  return {
    ...started,
    provider,
    through,
    async [Symbol.asyncDispose]() {
      started[Symbol.dispose]();
      await provider[Symbol.asyncDispose]();
    },
  };
}

describe('a login through the identity provider', () => {
  test('is offered by name where one is configured', async () => {
    await using started = start();
    expect(await (await started.visitor().get('/login')).text()).toContain('Sign in with Company login');
  });

  test('finds a user by the verified e-mail, and by the provider’s own name for them ever after', async () => {
    await using started = start();
    const user = started.made('ada@example.com');
    const visitor = started.visitor();
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
    await using started = start(person);
    started.made('ada@example.com');
    const visitor = started.visitor();
    expect((await started.through(visitor)).status).toBe(403);
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
    expect(started.people.users.list()).toHaveLength(1);
  });

  test('makes an account on the trial plan where signing up is allowed', async () => {
    await using started = start(ADA, { signUp: true });
    const visitor = started.visitor();
    expect((await started.through(visitor)).headers.get('location')).toBe('/');
    expect(await started.viewerOf(visitor.request())).toMatchObject({ role: 'customer' });
    expect(started.accounts.list()).toMatchObject([{ name: 'ada@example.com', plan: 'trial' }]);
  });

  test('asks for the second factor of whoever has one', async () => {
    await using started = start();
    const user = started.made('ada@example.com');
    const secret = started.people.secondFactor.begin(user);
    started.people.secondFactor.confirm(user, started.codeNow(secret));
    const visitor = started.visitor();
    const answer = await started.through(visitor, '/settings');
    expect(answer.headers.get('location')).toBe('/login/second-step?next=%2Fsettings');
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
  });

  test('leads to no other origin afterwards', async () => {
    await using started = start(ADA, { signUp: true });
    expect((await started.through(started.visitor(), '//evil.example')).headers.get('location')).toBe('/');
  });
});

describe('a return from the provider is refused', () => {
  test('in another browser than the one that left', async () => {
    await using started = start();
    started.made('ada@example.com');
    const sent = await started.visitor().get('/login/provider');
    const back = await fetch(sent.headers.get('location') ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(back.headers.get('location') ?? '');
    const victim = started.visitor();
    expect((await victim.get(`${pathname}${search}`)).status).toBe(400);
    await victim.get('/login/provider');
    expect((await victim.get(`${pathname}${search}`)).status).toBe(400);
    expect(await started.viewerOf(victim.request())).toBeUndefined();
  });

  test('after ten minutes', async () => {
    await using started = start();
    started.made('ada@example.com');
    const visitor = started.visitor();
    const sent = await visitor.get('/login/provider');
    const back = await fetch(sent.headers.get('location') ?? '', { redirect: 'manual' });
    const { pathname, search } = new URL(back.headers.get('location') ?? '');
    await started.clock.advance(10 * 60_000);
    expect((await visitor.get(`${pathname}${search}`)).status).toBe(400);
  });

  test.each<[string, Wrong]>([
    ['of another issuer', { claims: (right) => ({ ...right, iss: 'https://evil.example' }) }],
    ['for another client', { claims: (right) => ({ ...right, aud: 'another' }) }],
    ['given to another client', { claims: (right) => ({ ...right, aud: ['sluice', 'b'], azp: 'b' }) }],
    ['that is over', { claims: (right) => ({ ...right, exp: 1 }) }],
    ['of another login', { claims: (right) => ({ ...right, nonce: 'another' }) }],
    ['that names nobody', { claims: (right) => ({ ...right, sub: '' }) }],
  ])('with an ID token %s', async (_, wrong) => {
    await using started = start(ADA, {}, wrong);
    started.made('ada@example.com');
    const visitor = started.visitor();
    const answer = await started.through(visitor);
    expect([answer.status, started.reasons.length]).toEqual([503, 1]);
    expect(await started.viewerOf(visitor.request())).toBeUndefined();
  });
});

test.each<[string, Wrong]>([
  ['calls itself by another name', { document: (right) => ({ ...right, issuer: 'https://other.example' }) }],
  [
    'names an endpoint without TLS',
    { document: (right) => ({ ...right, token_endpoint: 'http://a.example/t' }) },
  ],
  ['says nothing', { document: () => ({}) }],
])('nobody is sent to a provider that %s', async (_, wrong) => {
  await using started = start(ADA, {}, wrong);
  const answer = await started.visitor().get('/login/provider');
  expect([answer.status, answer.headers.get('location')]).toEqual([503, null]);
  expect(started.reasons).toHaveLength(1);
});

test('the provider’s document is asked for once an hour', async () => {
  await using started = start();
  const asked = () => started.provider.asked.filter((line) => line.includes('well-known')).length;
  await started.visitor().get('/login/provider');
  await started.visitor().get('/login/provider');
  expect(asked()).toBe(1);
  await started.clock.advance(3_600_000);
  await started.visitor().get('/login/provider');
  expect(asked()).toBe(2);
});
