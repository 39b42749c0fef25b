import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { pageOf } from '../../page-text.ts';
import { OPERATOR } from '../../started.tsx';
import { startWebhookWorld, type WebhookWorld } from '../../webhook-world.ts';
import { addressOf } from '../../../../fakes/chain.ts';
import { answered } from '../../../../fakes/scripted-send.ts';

const URL_TEXT = 'https://hooks.example.com/in?token=t';
const HOUR_MS = 3_600_000;

let world: WebhookWorld;
beforeEach(() => void (world = startWebhookWorld()));
afterEach(() => {
  expect(world.broken).toEqual([]);
  world[Symbol.dispose]();
});

const get = async (path: string) => pageOf(await (await world.ask(`/accounts/7${path}`)).text());
async function post(path: string, fields: Record<string, string>, headers = {}) {
  const response = await world.post(`/accounts/7${path}`, fields, headers);
  return {
    status: response.status,
    location: response.headers.get('location'),
    cache: response.headers.get('cache-control'),
    page: pageOf(await response.text()),
  };
}
const actions = () =>
  world.entries(7).map(({ action, actorKind, actorId }) => `${action} ${actorKind} ${actorId}`);

describe('adding a webhook', () => {
  test('shows its secret on a response that no cache keeps, with ready verifiers', async () => {
    const once = (await get('/webhooks/new')).field('once') ?? '';
    const made = await post('/webhooks/new', {
      url: ` ${URL_TEXT} `,
      programs: 'all',
      description: 'Core',
      once,
    });
    expect([made.status, made.cache]).toEqual([200, 'no-store']);
    expect(made.page.text).toMatch(/whsec_[0-9a-f]{64}/);
    for (const language of ['TypeScript', 'Python', 'Go', 'Rust']) expect(made.page.text).toContain(language);
    const [webhook] = world.webhooks.list(7);
    expect(webhook).toMatchObject({ url: URL_TEXT, description: 'Core', programs: null });
    expect(actions()).toEqual(['webhook.create user u1']);
  });

  test('that is sent a second time, as by a reload, makes none and shows no secret', async () => {
    const once = (await get('/webhooks/new')).field('once') ?? '';
    await post('/webhooks/new', { url: URL_TEXT, once });
    const again = await post('/webhooks/new', { url: URL_TEXT, once });
    const [{ id } = { id: '' }, ...more] = world.webhooks.list(7);
    expect(again).toMatchObject({
      status: 303,
      location: `/accounts/7/webhooks/${id}?done=webhook-created-before`,
    });
    expect(more).toEqual([]);
  });

  test.each([
    ['http://hooks.example.com', 'The URL must start with https://.'],
    ['https://10.0.0.1/', 'Host resolves to a non-public address.'],
    ['https://inside.example.com/', 'Host resolves to a non-public address.'],
    ['https://nothing.example.com/', 'Host name does not resolve.'],
    ['"><script>alert(1)</script>', 'Enter a valid URL.'],
  ])(
    '%s is refused at its field, with the reason, while it is typed and when it is sent',
    async (url, reason) => {
      world.network.names.set('inside.example.com', ['10.1.2.3']);
      world.network.names.set('nothing.example.com', []);
      const checked = await post('/webhooks/check', { url });
      expect([checked.status, checked.page.text]).toEqual([200, expect.stringContaining(reason)]);
      const sent = await post('/webhooks/new', { url, description: 'kept' });
      expect([
        sent.status,
        sent.page.errorAt('url'),
        sent.page.field('url'),
        sent.page.field('description'),
      ]).toEqual([422, reason, url, 'kept']);
      expect(sent.page.html).not.toContain('<script>');
      expect(world.webhooks.list(7)).toEqual([]);
    },
  );

  test('says while it is typed that a URL is good, looks nothing up for a beginning, and has a rate', async () => {
    expect((await post('/webhooks/check', { url: URL_TEXT })).page.text).toContain(
      'resolves to public addresses',
    );
    expect((await post('/webhooks/check', { url: 'https://h' })).page.text).not.toContain('Valid');
    expect(world.network.asked).toEqual(['hooks.example.com']);
    for (let i = 1; i < 300; i++) await post('/webhooks/check', { url: URL_TEXT });
    expect((await post('/webhooks/check', { url: URL_TEXT })).page.text).toContain('Too many requests');
    const made = await post('/webhooks/new', { url: URL_TEXT });
    expect([made.status, made.page.text]).toEqual([422, expect.stringContaining('Too many requests')]);
  });

  test('takes chosen programs, the one that was clicked before them, and refuses none chosen', async () => {
    const chosen = await get(`/webhooks/new?program=${addressOf('B')}`);
    expect(chosen.html).toMatch(new RegExp(`value="${addressOf('B')}"[^>]* checked`));
    const none = await post('/webhooks/new', { url: URL_TEXT, programs: 'chosen' });
    expect([none.status, none.page.text]).toEqual([422, expect.stringContaining('at least one program')]);
    await post('/webhooks/new', { url: URL_TEXT, programs: 'chosen', program: addressOf('B') });
    expect(world.webhooks.list(7)).toMatchObject([{ programs: [addressOf('B')] }]);
  });
});

describe('a webhook', () => {
  let id: string;
  let secret: string;
  let path: string;
  beforeEach(async () => {
    ({ id, secret } = await world.addWebhook(7, { url: URL_TEXT }));
    path = `/webhooks/${id}`;
  });

  test('is edited, paused and resumed, and every change is noted with who made it', async () => {
    const saved = await post(`${path}/edit`, {
      url: 'https://b.example.com/',
      programs: 'all',
      description: 'New',
    });
    expect(saved).toMatchObject({ status: 303, location: `/accounts/7${path}?done=webhook-saved` });
    const refused = await post(`${path}/edit`, { url: 'http://b.example.com/', programs: 'all' });
    expect([refused.status, refused.page.errorAt('url')]).toEqual([422, 'The URL must start with https://.']);
    expect((await post(`${path}/pause`, {})).status).toBe(303);
    expect((await get('/webhooks')).text).toContain('Paused');
    expect((await post(`${path}/resume`, {})).status).toBe(303);
    expect(world.webhooks.find(7, id)).toMatchObject({
      url: 'https://b.example.com/',
      description: 'New',
      pausedAtMs: null,
    });
    expect(actions()).toEqual(['resume', 'pause', 'edit', 'create'].map((verb) => `webhook.${verb} user u1`));
  });

  test('is deleted by who types its host, and by nobody else', async () => {
    const wrong = await post(`${path}/delete`, { confirm: 'example.com' });
    expect([wrong.status, wrong.page.errorAt('confirm')]).toEqual([
      422,
      'Type hooks.example.com to confirm.',
    ]);
    expect(world.webhooks.list(7)).toHaveLength(1);
    const right = await post(`${path}/delete`, { confirm: ' hooks.example.com ' });
    expect(right).toMatchObject({ status: 303, location: '/accounts/7/webhooks?done=webhook-deleted' });
    expect(world.webhooks.list(7)).toEqual([]);
  });

  test('gets a new secret in stages: shown once, then taken over or cancelled', async () => {
    const seen = (await get(path)).field('seen') ?? '';
    await world.clock.advance(1);
    const rotated = await post(`${path}/rotation`, { 'takes-over': '1h', seen });
    const next = /whsec_[0-9a-f]{64}/.exec(rotated.page.text)?.[0] ?? '';
    expect([rotated.status, rotated.cache, next === '' || next === secret]).toEqual([200, 'no-store', false]);
    const waiting = await get(path);
    expect(waiting.text).toContain('Rotation pending');
    expect(waiting.html).not.toContain(next);
    expect((await post(`${path}/rotation/cancel`, {})).location).toContain('done=rotation-cancelled');
    const late = await post(`${path}/rotation/switch`, {});
    expect([late.status, late.page.text]).toEqual([409, expect.stringContaining('No rotation is pending')]);
    expect(actions().slice(0, 2)).toEqual(['webhook.cancel-rotation user u1', 'webhook.rotate user u1']);
  });

  test('keeps the secret of a rotation whose form is sent a second time', async () => {
    const seen = (await get(path)).field('seen') ?? '';
    await world.clock.advance(1);
    expect((await post(`${path}/rotation`, { 'takes-over': 'now', seen })).page.html).toContain('whsec_');
    const again = await post(`${path}/rotation`, { 'takes-over': 'now', seen });
    expect([again.status, again.page.text]).toEqual([409, expect.stringContaining('was changed after')]);
    expect(again.page.html).not.toContain('whsec_');
  });

  test('answers a test on its own page with JavaScript, and on the delivery’s page without', async () => {
    const plain = await post(`${path}/test`, {});
    expect(plain.location).toMatch(/^\/accounts\/7\/deliveries\/[0-9a-f-]{36}\?done=test-queued$/);
    const { location } = await post(`${path}/test`, {}, { 'hx-request': 'true' });
    expect(location).toMatch(new RegExp(`^/accounts/7${path}\\?test=[0-9a-f-]{36}$`));
    const query = location?.slice(`/accounts/7${path}`.length) ?? '';
    const before = await get(path + query);
    expect(before.html).toContain('hx-trigger="load delay:1s"');
    await world.attemptDue(() => answered(418, '<img src=x onerror=alert(1)>'));
    const after = await get(path + query);
    expect(after.text).toContain('Endpoint returned 418');
    expect(after.html).toContain('&lt;img src=x');
    expect(after.html).not.toMatch(/<img|load delay/);
  });

  test('says on its page that a test must wait, and polls no longer than an attempt can take', async () => {
    const { location } = await post(`${path}/test`, {}, { 'hx-request': 'true' });
    await world.clock.advance(13_001);
    expect((await get(location?.replace('/accounts/7', '') ?? '')).html).not.toContain('load delay');
    for (let i = 0; i < 10; i++) await post(`${path}/test`, {});
    const refused = await post(`${path}/test`, {}, { 'hx-request': 'true' });
    expect([refused.status, refused.page.text]).toEqual([200, expect.stringContaining('Too many requests')]);
    expect((await post(`${path}/test`, {})).status).toBe(429);
  });

  test('that fails says since when, the last error and the next try, on its page and in the list', async () => {
    await post(`${path}/test`, {});
    await world.attemptDue(() => answered(503));
    await post(`${path}/test`, {});
    const { text } = await get(path);
    expect(text).toContain('Failing since');
    expect(text).toContain('last error: 503');
    expect(text).toMatch(/Next attempt in (30|29) s/);
    expect((await get('/webhooks')).text).toContain('Failing for');
  });

  test('resends all that failed after a look at how many they are', async () => {
    for (let i = 0; i < 3; i++) await post(`${path}/test`, {});
    for (let i = 0; i < 6; i++) {
      await world.attemptDue(() => answered(500));
      await world.clock.advance(2 * HOUR_MS);
    }
    expect((await get(`${path}/resend-failed?since=1h`)).text).toContain('No failed deliveries');
    const page = await get(`${path}/resend-failed?since=24h`);
    expect(page.text).toContain('Retry all 3');
    const sent = await post(`${path}/resend-failed`, { since: page.field('since') ?? '' });
    expect(sent.location).toBe(`/accounts/7/deliveries?webhook=${id}&done=deliveries-resent`);
    await world.attemptDue(() => answered(200));
    expect((await get(`/deliveries?state=delivered`)).text.match(/attempt 6\/6/g)).toHaveLength(3);
    expect((await post(`${path}/resend-failed`, { since: 'x' })).status).toBe(404);
  });
});

test('what an operator changes is noted as theirs', async () => {
  using operated = startWebhookWorld(OPERATOR);
  const { id } = await operated.addWebhook(8, { url: URL_TEXT });
  await operated.post(`/accounts/8/webhooks/${id}/pause`, {});
  expect(operated.entries(8)[0]).toMatchObject({
    action: 'webhook.pause',
    actorKind: 'operator',
    actorId: 'u2',
  });
});

test('webhooks are listed newest first, twenty at a time', async () => {
  for (let i = 0; i < 21; i++) {
    await world.addWebhook(7, { url: `https://h${i}.example.com/` });
    await world.clock.advance(1);
  }
  const hostsOf = ({ html }: { html: string }) =>
    [...html.matchAll(/<strong>(h\d+)\./g)].map(([, host]) => host);
  const first = await get('/webhooks');
  expect(hostsOf(first)).toEqual(Array.from({ length: 20 }, (_, i) => `h${20 - i}`));
  const older = /href="\/accounts\/7([^"]*)"[^>]*>\s*Older/.exec(first.html)?.[1] ?? '';
  expect(hostsOf(await get(older))).toEqual(['h0']);
});

test('without a webhook the list says how to get one', async () => {
  expect((await get('/webhooks')).text).toContain('No webhooks yet');
});
