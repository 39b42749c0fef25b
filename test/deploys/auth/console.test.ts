import { describe, expect, test } from 'bun:test';
import { createRequestLog } from '../../../deploys/api/request-log.ts';
import { createAdmit } from '../../../deploys/api/webhook-requests.ts';
import { createClientAddresses } from '../../../deploys/auth/attempts.ts';
import { createConsoleKeys, createTickets } from '../../../deploys/auth/console-keys.ts';
import { consoleComplaint } from '../../../deploys/auth/provider.ts';
import { readEmail } from '../../../deploys/auth/users.ts';
import { Secret } from '../../../shared/secret.ts';
import { COMMAND_LINE, logIn, ORIGIN, random, startPeople, testKeys } from './people.ts';

describe('the console is', () => {
  test.each([
    'https://console.example.com',
    'http://127.0.0.1:8910',
    'http://127.8.8.8:1',
    'http://localhost:8910',
    'http://[::1]:8910',
  ])('there under %s', (url) => expect(consoleComplaint(new URL(url))).toBeUndefined());
  test.each([
    'http://console.example.com',
    'http://10.0.0.7:8910',
    'http://localhost.example.com',
    'http://0.0.0.0:1',
  ])('off under %s, with a sentence that says what to do', (url) => {
    const sentence = consoleComplaint(new URL(url));
    expect(sentence).toStartWith('The console is off: ');
    expect(sentence).toContain('deploys.public_url');
  });
});

describe('where a request comes from', () => {
  const request = new Request('https://a.example', { headers: { 'x-forwarded-for': '6.6.6.6, 192.0.2.9' } });
  test('is the connection’s other end, whatever the client says', () => {
    const addresses = createClientAddresses(undefined);
    expect(addresses.of(request)).toBeUndefined();
    addresses.note(request, '192.0.2.1');
    expect(addresses.of(request)).toBe('192.0.2.1');
  });
  test('is the last address of the proxy’s header where the config names one', () => {
    const addresses = createClientAddresses('x-forwarded-for');
    addresses.note(request, '192.0.2.1');
    expect(addresses.of(request)).toBe('192.0.2.9');
    const bare = new Request('https://a.example');
    addresses.note(bare, '192.0.2.1');
    expect(addresses.of(bare)).toBe('192.0.2.1');
  });
});

test.each([
  ['Ada@Example.com ', 'ada@example.com'],
  ['a+b@c.d', 'a+b@c.d'],
  ['müller@straße.de', 'müller@straße.de'],
  ['ada', undefined],
  ['ada@localhost', undefined],
  ['a b@c.d', undefined],
  ['a@b@c.d', undefined],
  ['a@b..d', undefined],
  ['<a@c.d>', undefined],
  ['a@c.d\nb', undefined],
  [`${'a'.repeat(251)}@c.d`, undefined],
])('the e-mail address in %p is %p', (text, email) =>
  expect(readEmail(text) as string | undefined).toBe(email),
);

describe('a ticket', () => {
  const tickets = createTickets(testKeys, 'a use', 1_000);
  const ticket = tickets.make({ a: 'b' }, 0);
  test('is read while it lasts', () => {
    expect(tickets.read(ticket, 999)).toEqual({ a: 'b' });
    expect(tickets.read(ticket, 1_000)).toBeUndefined();
  });
  test('is worth nothing for another use, under another key, or changed', () => {
    expect(createTickets(testKeys, 'another', 1_000).read(ticket, 0)).toBeUndefined();
    const otherKeys = createConsoleKeys([new Secret(Buffer.alloc(32, 2).toString('base64'))], random);
    expect(createTickets(otherKeys, 'a use', 1_000).read(ticket, 0)).toBeUndefined();
    const forged = Buffer.from(JSON.stringify({ fields: { a: 'c' }, untilMs: 9_999 })).toString('base64url');
    expect(tickets.read(`${forged}.${ticket.split('.')[1]}`, 0)).toBeUndefined();
  });
  test('is still read after the key was exchanged for a newer one', () => {
    const [old, newer] = [1, 2].map((fill) => new Secret(Buffer.alloc(32, fill).toString('base64')));
    if (old === undefined || newer === undefined) throw new Error('both were made above');
    const keys = createConsoleKeys([newer, old], random);
    expect(createTickets(keys, 'a use', 1_000).read(ticket, 0)).toEqual({ a: 'b' });
    const sealed = testKeys.seal(Buffer.from('secret'), 'me');
    expect(keys.unseal(sealed, 'me')?.toString()).toBe('secret');
    expect(keys.unseal(sealed, 'you')).toBeUndefined();
  });
});

describe('an API that takes a login beside its keys', () => {
  async function start() {
    const started = startPeople();
    const account = started.accounts.create('acme', 'trial', COMMAND_LINE);
    if (account.kind !== 'account') throw new Error(account.kind);
    const { id } = account.account;
    const user = started.made('ada@example.com', { role: 'customer', accountId: id });
    const visitor = started.visitor();
    await logIn(visitor, 'ada@example.com');
    return {
      ...started,
      user,
      id,
      ada: visitor,
      admit: createAdmit({
        identify: () => ({ kind: 'missing-key' }),
        enter: createRequestLog(),
        clock: started.clock,
        session: { viewerOf: started.viewerOf, origin: ORIGIN, enter: createRequestLog<string>() },
      }),
    };
  }

  test('lets it change only from the console’s own pages', async () => {
    using started = await start();
    const asked = (headers: Record<string, string>) =>
      started.admit(started.ada.request('/api/v1/webhooks', { method: 'POST', headers }));
    expect(await asked({ 'sec-fetch-site': 'same-origin' })).toMatchObject({ kind: 'admitted' });
    expect(await asked({ origin: ORIGIN })).toMatchObject({ kind: 'admitted' });
    expect(await asked({ 'sec-fetch-site': 'cross-site' })).toEqual({ kind: 'other-origin' });
    expect(await asked({ origin: 'https://evil.example' })).toEqual({ kind: 'other-origin' });
    expect(await asked({})).toEqual({ kind: 'other-origin' });
  });

  test('has the rate of a key for every user', async () => {
    using started = await start();
    for (let i = 0; i < 60; i++) await started.admit(started.ada.request('/api/v1/webhooks'));
    expect(await started.admit(started.ada.request('/api/v1/webhooks'))).toMatchObject({ kind: 'over-rate' });
  });

  test('knows neither strangers nor an operator without an account', async () => {
    using started = await start();
    started.made('root@example.com');
    const root = started.visitor();
    await logIn(root, 'root@example.com');
    expect(await started.admit(root.request())).toEqual({ kind: 'missing-key' });
    expect(await started.admit(started.visitor().request())).toEqual({ kind: 'missing-key' });
  });
});
