import { expect, test } from 'bun:test';
import { plainTexts, own, startOwned, stored } from './walks.ts';

const once = '0123456789abcdef012345';
const [ACCOUNTS, ACCOUNT, USER] = ['/operator/accounts', '/operator/accounts/1', '/operator/users/USER'];
const [KEYS, KEY] = ['/accounts/1/keys', '/accounts/1/keys/KEY'];
const [WEBHOOKS, WEBHOOK] = ['/accounts/1/webhooks', '/accounts/1/webhooks/WEBHOOK'];
const LABEL = 'Use 1–64 printable characters, with no leading or trailing spaces.';
const user = 'ab'.repeat(12);
const WHOLE = 'Enter a whole number of at least 1';
const TAKEN = 'An account with this name already exists.';
const incomplete = ['form', 'The form was incomplete. Please try again.'] as const;

/** Forms of account 1, of which each has one thing wrong: its address, its fields, where that is said and how. */
const REFUSED: readonly (readonly [
  path: string,
  fields: Record<string, string>,
  at: string,
  text: string,
])[] = [
  [`${ACCOUNTS}/new`, { name: '', plan: 'pro' }, 'name', LABEL],
  [`${ACCOUNTS}/new`, { name: 'account bob', plan: 'pro' }, 'name', TAKEN],
  [`${ACCOUNTS}/new`, { name: 'acme', plan: 'gold' }, 'plan', 'Plan gold is not in the config.'],
  [`${ACCOUNT}/plan`, { plan: 'gold' }, 'plan', 'Plan gold is not in the config.'],
  [`${ACCOUNT}/credits`, { once, credits: 'many', reason: 'why' }, 'credits', WHOLE],
  [`${ACCOUNT}/credits`, { once, credits: '0', reason: 'why' }, 'credits', WHOLE],
  [`${ACCOUNT}/credits`, { once, credits: '5', reason: '' }, 'reason', 'Use 1–200 printable characters'],
  [`${ACCOUNT}/credits`, { credits: '5', reason: 'why' }, ...incomplete],
  [`${ACCOUNT}/rename`, { name: 'account bob' }, 'name', TAKEN],
  [`${ACCOUNT}/rename`, { name: 'demo' }, 'name', 'cannot be renamed'],
  [`${ACCOUNT}/suspend`, { confirm: 'account an' }, 'confirm', 'Type account ann to confirm.'],
  [`${ACCOUNT}/users`, { user, email: 'nobody' }, 'email', 'Enter a valid email address.'],
  [`${ACCOUNT}/users`, { user, email: 'op@example.com' }, 'email', 'A user with this email already exists.'],
  [`${ACCOUNT}/users`, { user: 'x', email: 'new@example.com' }, ...incomplete],
  [`${USER}/remove`, { confirm: 'ann' }, 'confirm', 'Type ann@example.com to confirm.'],
  [`${USER}/second-factor`, { confirm: '' }, 'confirm', 'Type ann@example.com to confirm.'],
  [`${KEYS}/new`, { once, name: '' }, 'name', LABEL],
  [`${KEYS}/new`, { once, name: 'x'.repeat(65) }, 'name', LABEL],
  [`${KEYS}/new`, { once, name: 'a\u0007b' }, 'name', LABEL],
  ...['', 'x', '../../../../../../x'].map(
    (bad) => [`${KEYS}/new`, { once: bad, name: 'new' }, ...incomplete] as const,
  ),
  [`${KEY}/rename`, { name: '' }, 'name', LABEL],
  [`${KEY}/rotate`, { once, grace: '' }, 'form', 'Choose when the old key expires.'],
  [`${KEY}/rotate`, { once, grace: 'toString' }, 'form', 'Choose when the old key expires.'],
  [`${KEY}/rotate`, { grace: '1h' }, ...incomplete],
  [`${KEY}/revoke`, { confirm: 'key of an' }, 'confirm', 'Type key of ann to confirm.'],
  [`${WEBHOOKS}/new`, { url: 'http://hooks.example.com' }, 'url', 'The URL must start with https://.'],
  [`${WEBHOOKS}/new`, { url: '"><script>alert(1)</script>' }, 'url', 'Enter a valid URL.'],
  [`${WEBHOOKS}/new`, { url: 'https://a.example.com/', programs: 'chosen' }, 'form', 'at least one program'],
  [`${WEBHOOK}/edit`, { url: 'http://b.example.com/' }, 'url', 'The URL must start with https://.'],
  [`${WEBHOOK}/delete`, { confirm: 'example.com' }, 'confirm', 'Type ann.hooks.example.com to confirm.'],
];

test('a form with something wrong comes back with it at its field, filled again, and changes nothing', async () => {
  const { world, ann } = await startOwned();
  await own(world, plainTexts('bob'));
  const before = stored(world);
  for (const [path, fields, at, text] of REFUSED) {
    const asker = path.startsWith('/operator/') ? world.operator : ann;
    const to = path.replace('USER', ann.user.id).replace('KEY', ann.keyId).replace('WEBHOOK', ann.webhookId);
    const { status, page } = await asker.post(to, fields);
    const said = at === 'form' ? page.text : page.errorAt(at);
    expect([path, fields, status, said]).toEqual([path, fields, 422, expect.stringContaining(text)]);
    expect(page.html).not.toContain('<script>');
    for (const name of ['name', 'credits', 'reason', 'email', 'url'])
      if (fields[name]) expect([path, page.field(name)]).toEqual([path, fields[name]]);
  }
  expect(stored(world)).toEqual(before);
  world[Symbol.dispose]();
});
