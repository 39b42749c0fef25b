import { afterEach, beforeEach, expect, test } from 'bun:test';
import { TOTP } from 'otpauth';
import { filled, plainTexts, startWholeWorld, type WholeWorld } from './whole-world.ts';

type Member = Awaited<ReturnType<WholeWorld['own']>>;

let world: WholeWorld;
let ann: Member;
beforeEach(async () => {
  world = startWholeWorld();
  ann = await world.own(plainTexts('ann'));
});
afterEach(() => world[Symbol.dispose]());

/** What every page of the console says to whom, in one text. */
async function everyPage({ ask, cookie }: Pick<Member['session'], 'ask' | 'cookie'>, query: string) {
  const texts = [];
  for (const path of world.paths()) {
    const answer = await ask(`${filled(path, ann)}${query}`, { headers: { cookie } });
    texts.push(await answer.text(), ...answer.headers.values());
  }
  return texts.join('\n');
}

/** No page, for the owner or an operator, and no line of the log has any of these. */
async function expectNowhere(secrets: readonly string[], query = '') {
  const pages = `${await everyPage(ann.session, query)}${await everyPage(world.operator, query)}`;
  const log = JSON.stringify(world.lines);
  for (const secret of secrets) {
    expect(secret.length).toBeGreaterThan(20);
    expect([secret, pages.includes(secret), log.includes(secret)]).toEqual([secret, false, false]);
  }
}

/** Sends a form and opens the page that it leads to; gives the page and its address. */
async function sent(
  asker: Pick<Member['session'], 'ask' | 'cookie'>,
  path: string,
  fields: Record<string, string>,
) {
  const headers = { cookie: asker.cookie };
  const answer = await asker.ask(path, { method: 'POST', headers, body: new URLSearchParams(fields) });
  const to = answer.headers.get('location') ?? '';
  // Whoever only looks whether it is there takes nothing, nor does somebody else with the same address.
  if (to !== '') {
    await asker.ask(to, { method: 'HEAD', headers });
    await asker.ask(to, { headers: { ...headers, 'hx-request': 'true' } });
    await (asker === world.operator ? ann.session : world.operator).ask(to);
  }
  const page = to === '' ? answer : await asker.ask(to, { headers });
  return { html: await page.text(), to };
}

const secretIn = (html: string, like: RegExp) => like.exec(html)?.[0] ?? 'none';

test('keys, signing secrets and tokens of sessions are on no page after they were made', async () => {
  await expectNowhere(ann.secrets);
});

test.each([
  ['a new key', '/accounts/:accountId/keys/new', { name: 'another' }],
  ['a rotated key', '/accounts/:accountId/keys/:keyId/rotate', { grace: '1h' }],
])(
  '%s is on the first page alone, not after a reload, by HEAD or for somebody else',
  async (_, path, fields) => {
    const { html, to } = await sent(ann.session, filled(path, ann), { ...fields, once: 'a'.repeat(22) });
    const key = secretIn(html, /sluice_\w{38}/);
    expect(
      await (await ann.session.ask(to, { headers: { cookie: ann.session.cookie } })).text(),
    ).not.toContain(key);
    await expectNowhere([key], to.slice(to.indexOf('?')));
    const again = await sent(ann.session, filled(path, ann), { ...fields, once: 'a'.repeat(22) });
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
  const { html } = await sent(ann.session, filled(path, ann), form);
  const secret = secretIn(html, /whsec_[\w+/=]{20,}/);
  await expectNowhere([secret]);
  expect((await sent(ann.session, filled(path, ann), form)).html).not.toMatch(/whsec_[\w+/=]{20,}/);
});

test('a password that an operator makes is on the first page alone', async () => {
  const { html, to } = await sent(world.operator, filled('/operator/users/:userId/password', ann), {});
  const password = secretIn(html, /\b(?:[a-z2-9A]{5}-){3}[a-z2-9A]{5}\b/);
  await expectNowhere([password], to.slice(to.indexOf('?')));
});

test('the key of a second factor and its backup codes are on no page once a code has confirmed it', async () => {
  const newcomer = world.session(
    world.made('new@example.com', { role: 'customer', accountId: ann.account.id }),
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
