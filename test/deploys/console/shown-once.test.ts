import { afterEach, beforeEach, expect, test } from 'bun:test';
import { TOTP } from 'otpauth';
import { hashOf, keyIdOf, readApiKey } from '../../../shared/keys/api-key.ts';
import { type Asker, filled, type Owner, pathsOf, startOwned } from './walks.ts';
import type { World } from './world.ts';

let world: World;
let ann: Owner;
beforeEach(async () => void ({ world, ann } = await startOwned()));
afterEach(() => world[Symbol.dispose]());

/** Every page of the console for somebody, with its headers, in one text. */
async function everyPage({ ask }: Asker, query: string) {
  const texts = [];
  for (const path of pathsOf(world)) {
    const answer = await ask(`${filled(path, ann)}${query}`);
    texts.push(await answer.text(), ...answer.headers.values());
  }
  return texts.join('\n');
}

/** No page, for the owner or an operator, and no line of the log has any of these. */
async function expectNowhere(secrets: readonly string[], query = '') {
  const pages = `${await everyPage(ann, query)}${await everyPage(world.operator, query)}`;
  const log = JSON.stringify(world.lines);
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(20);
    expect([secret, pages.includes(secret), log.includes(secret)]).toEqual([secret, false, false]);
  }
}

/** Sends a form and opens the page that it leads to; gives the page and its address. */
async function sent(asker: Asker, path: string, fields: Record<string, string>) {
  const answer = await asker.ask(path, { method: 'POST', body: new URLSearchParams(fields) });
  const to = answer.headers.get('location') ?? '';
  if (to === '') return { html: await answer.text(), to };
  // A HEAD, the refresh of a part and another user at the same address take nothing.
  await asker.ask(to, { method: 'HEAD' });
  await asker.ask(to, { headers: { 'hx-request': 'true' } });
  await (asker === world.operator ? ann : world.operator).ask(to);
  return { html: await (await asker.ask(to)).text(), to };
}

const secretIn = (html: string, like: RegExp) => like.exec(html)?.[0] ?? 'none';

test('keys, signing secrets and tokens of sessions are on no later page', async () => {
  await expectNowhere(ann.secrets);
});

test.each([
  ['a new key', '/accounts/:accountId/keys/new', { name: 'another' }],
  ['a rotated key', '/accounts/:accountId/keys/:keyId/rotate', { grace: '1h' }],
])(
  '%s is on the first page alone, not after a reload, by HEAD or for somebody else',
  async (_, path, fields) => {
    const { html, to } = await sent(ann, filled(path, ann), { ...fields, once: 'a'.repeat(22) });
    const key = secretIn(html, /sluice_\w{38}/);
    const read = readApiKey(key);
    expect(to).toStartWith(`/accounts/${ann.accountId}/keys/${read && keyIdOf(hashOf(read))}?shown=`);
    expect(await (await ann.ask(to)).text()).not.toContain(key);
    await expectNowhere([key], to.slice(to.indexOf('?')));
    const again = await sent(ann, filled(path, ann), { ...fields, once: 'a'.repeat(22) });
    expect(again.html).not.toMatch(/sluice_\w{38}/);
  },
);

test.each([
  [
    'a new webhook',
    '/accounts/:accountId/webhooks/new',
    { url: 'https://a.example.com/', programs: 'all', once: 'b' },
  ],
  ['a rotation', '/accounts/:accountId/webhooks/:webhookId/rotation', { 'takes-over': '24h' }],
])('the signing secret of %s is in the one answer alone', async (_, path, fields) => {
  const seen = world.store
    .query<{ at: number }, []>('SELECT max(updated_at_ms) AS at FROM webhooks')
    .get()?.at;
  const form = { ...fields, seen: String(seen) };
  const { html } = await sent(ann, filled(path, ann), form);
  const secret = secretIn(html, /whsec_[\w+/=]{20,}/);
  await expectNowhere([secret]);
  expect((await sent(ann, filled(path, ann), form)).html).not.toMatch(/whsec_[\w+/=]{20,}/);
});

test('a password that an operator makes is on the first page alone', async () => {
  const { html, to } = await sent(world.operator, filled('/operator/users/:userId/password', ann), {});
  const password = secretIn(html, /\b(?:[a-z2-9A]{5}-){3}[a-z2-9A]{5}\b/);
  await expectNowhere([password], to.slice(to.indexOf('?')));
  expect(world.auth.users.byId(ann.user.id)?.passwordHash).toBe(`plain ${password}`);
});

test('the key of a second factor and its backup codes are on no page once a code has confirmed it', async () => {
  const newcomer = world.session(
    world.made('new@example.com', { role: 'customer', accountId: ann.accountId }),
  );
  await newcomer.post('/settings/second-factor');
  const { html } = await newcomer.get('/settings/second-factor');
  const key = /class="totp-key">([A-Z2-7]{32})</.exec(html)?.[1] ?? 'none';
  const code = new TOTP({ secret: key }).generate({ timestamp: world.clock.now() });
  const { page } = await newcomer.post('/settings/second-factor/confirm', { code });
  const codes = page.html.match(/(?<=<code>)[a-z2-7]{5}-[a-z2-7]{5}(?=<)/g) ?? [];
  expect(codes).toHaveLength(10);
  const pages = await everyPage(newcomer, '');
  for (const secret of [key, ...codes]) expect([secret, pages.includes(secret)]).toEqual([secret, false]);
});
