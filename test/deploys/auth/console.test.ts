import { describe, expect, test } from 'bun:test';
import { createRequestLog } from '../../../deploys/api/request-log.ts';
import { createAdmit } from '../../../deploys/api/webhook-requests.ts';
import { createClientAddresses } from '../../../deploys/auth/attempts.ts';
import { createConsoleKeys, createTickets } from '../../../deploys/auth/console-keys.ts';
import { consoleComplaint } from '../../../deploys/auth/provider.ts';
import { readEmail } from '../../../deploys/auth/users.ts';
import { Secret } from '../../../shared/secret.ts';
import { customerOf, logIn, ORIGIN, random, startPeople, testKeys } from './people.ts';

test('the console is off where browsers keep no login, with a sentence that says what to do', () => {
  const complaints = (...hosts: string[]) => hosts.map((host) => consoleComplaint(new URL(host)));
  const local = ['127.0.0.1:8910', '127.8.8.8:1', 'localhost:8910', '[::1]:8910'];
  const good = ['https://console.example.com', ...local.map((host) => `http://${host}`)];
  expect(complaints(...good)).toEqual(good.map(() => undefined));
  const far = ['console.example.com', '10.0.0.7:8910', 'localhost.example.com', '0.0.0.0:1'];
  for (const sentence of complaints(...far.map((host) => `http://${host}`))) {
    expect(sentence).toStartWith('The console is off: ');
    expect(sentence).toContain('deploys.public_url');
  }
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
  ['müller@straße.de', 'müller@straße.de'],
  ['ada', undefined],
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

test('an API takes a session beside its keys, for changes only from the console’s own pages, at the rate of a key', async () => {
  using started = startPeople();
  started.made('ada@example.com', customerOf(started));
  started.made('root@example.com');
  const [ada, root] = [started.visitor(), started.visitor()];
  await logIn(ada, 'ada@example.com');
  await logIn(root, 'root@example.com');
  const admit = createAdmit({
    identify: () => ({ kind: 'missing-key' }),
    enter: createRequestLog(),
    clock: started.clock,
    session: { viewerOf: started.viewerOf, origin: ORIGIN, enter: createRequestLog<string>() },
  });
  const change = async (headers: Record<string, string>) =>
    (await admit(ada.request('/api/v1/webhooks', { method: 'POST', headers }))).kind;
  expect(await change({ 'sec-fetch-site': 'same-origin' })).toBe('admitted');
  expect(await change({ origin: ORIGIN })).toBe('admitted');
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }, {}])
    expect(await change(headers)).toBe('other-origin');
  for (let i = 2; i < 60; i++) expect((await admit(ada.request())).kind).toBe('admitted');
  expect((await admit(ada.request())).kind).toBe('over-rate');
  // An operator without an account, and a browser without a session.
  for (const visitor of [root, started.visitor()])
    expect(await admit(visitor.request())).toEqual({ kind: 'missing-key' });
});
