import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { addressOf } from '../../../../fakes/chain.ts';
import { answered } from '../../../../fakes/scripted-send.ts';
import { type Customer, HOUR_MS, startWorld, type World } from '../../world.ts';

const URL_TEXT = 'https://hooks.example.com/in?token=t';

let world: World;
let acme: Customer;
beforeEach(() => {
  world = startWorld();
  acme = world.customer();
});
afterEach(() => {
  expect(world.lines).toEqual([]);
  world[Symbol.dispose]();
});

const get = (path: string) => acme.get(`/accounts/1${path}`);
const post = (path: string, fields = {}, headers = {}) => acme.post(`/accounts/1${path}`, fields, headers);
const listed = () => world.webhooks.list(1);
/** What was done by pages to webhooks. */
const actions = () =>
  world.actions(1).flatMap((line) => /^webhook\.(\S+) user (.*)/.exec(line)?.slice(1, 2) ?? []);

describe('adding a webhook', () => {
  test('shows its secret on a response that no cache keeps, with verifiers', async () => {
    const once = (await get('/webhooks/new')).field('once') ?? '';
    const fields = { url: ` ${URL_TEXT} `, programs: 'all', description: 'Core', once };
    const made = await post('/webhooks/new', fields);
    expect([made.status, made.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(made.page.text).toMatch(/whsec_[0-9a-f]{64}/);
    for (const language of ['TypeScript', 'Python', 'Go', 'Rust']) expect(made.page.text).toContain(language);
    const [webhook] = listed();
    expect(webhook).toMatchObject({ url: URL_TEXT, description: 'Core', programs: null });
    expect(actions()).toEqual(['create']);
  });

  test.each([
    ['http://hooks.example.com', 'The URL must start with https://.'],
    ['https://10.0.0.1/', 'Host resolves to a non-public address.'],
    ['https://inside.example.com/', 'Host resolves to a non-public address.'],
    ['https://nothing.example.com/', 'Host name does not resolve.'],
  ])('%s is refused, with the reason, while it is typed and when it is sent', async (url, reason) => {
    world.network.names.set('inside.example.com', ['10.1.2.3']);
    world.network.names.set('nothing.example.com', []);
    expect((await post('/webhooks/check', { url })).page.text).toContain(reason);
    const { status, page } = await post('/webhooks/new', { url, description: 'kept' });
    expect([status, page.errorAt('url'), page.field('description')]).toEqual([422, reason, 'kept']);
    expect(listed()).toEqual([]);
  });

  test('checks a URL while it is typed, looks up no beginning of one, and has a rate', async () => {
    const check = async (url = URL_TEXT) => (await post('/webhooks/check', { url })).page.text;
    expect(await check()).toContain('resolves to public addresses');
    expect(await check('https://h')).not.toContain('Valid');
    expect(world.network.asked).toEqual(['hooks.example.com']);
    for (let i = 1; i < 60; i++) await check();
    expect(await check()).toContain('Too many requests');
    const made = await post('/webhooks/new', { url: URL_TEXT });
    expect([made.status, made.page.text]).toEqual([422, expect.stringContaining('Too many requests')]);
  });

  test('takes chosen programs, the one that was clicked before them', async () => {
    const chosen = await get(`/webhooks/new?program=${addressOf('B')}`);
    expect(chosen.html).toMatch(new RegExp(`value="${addressOf('B')}"[^>]* checked`));
    await post('/webhooks/new', { url: URL_TEXT, programs: 'chosen', program: addressOf('B') });
    expect(listed()).toMatchObject([{ programs: [addressOf('B')] }]);
  });
});

describe('a webhook', () => {
  let id: string;
  let secret: string;
  let path: string;
  beforeEach(async () => {
    ({ id, secret } = await world.addWebhook(acme.by, { url: URL_TEXT }));
    path = `/webhooks/${id}`;
  });

  test('is edited, paused and resumed, and every change is recorded with its actor', async () => {
    const fields = { url: 'https://b.example.com/', programs: 'all', description: 'New' };
    expect((await post(`${path}/edit`, fields)).to).toBe(`/accounts/1${path}?done=webhook-saved`);
    expect((await post(`${path}/pause`)).status).toBe(303);
    expect((await get('/webhooks')).text).toContain('Paused');
    expect((await post(`${path}/resume`)).status).toBe(303);
    const { url, description } = fields;
    expect(world.webhooks.find(1, id)).toMatchObject({ url, description, pausedAtMs: null });
    expect(actions()).toEqual(['resume', 'pause', 'edit', 'create']);
    await world.operator.post(`/accounts/1${path}/pause`);
    expect(world.actions(1)[0]).toBe(`webhook.pause operator ${world.operator.user.id}`);
  });

  test('is deleted once its host was typed', async () => {
    const right = await post(`${path}/delete`, { confirm: ' hooks.example.com ' });
    expect(right).toMatchObject({ status: 303, to: '/accounts/1/webhooks?done=webhook-deleted' });
    expect(listed()).toEqual([]);
  });

  test('gets a new secret in stages: shown once, then taken over or cancelled', async () => {
    const seen = (await get(path)).field('seen') ?? '';
    await world.clock.advance(1);
    const rotated = await post(`${path}/rotation`, { 'takes-over': '1h', seen });
    const next = /whsec_[0-9a-f]{64}/.exec(rotated.page.text)?.[0] ?? '';
    expect(['', secret]).not.toContain(next);
    expect(rotated.headers.get('cache-control')).toBe('no-store');
    const waiting = await get(path);
    expect(waiting.text).toContain('Rotation pending');
    expect(waiting.html).not.toContain(next);
    expect((await post(`${path}/rotation/cancel`)).to).toContain('done=rotation-cancelled');
    const late = await post(`${path}/rotation/switch`);
    expect([late.status, late.page.text]).toEqual([409, expect.stringContaining('No rotation is pending')]);
    expect(actions().slice(0, 2)).toEqual(['cancel-rotation', 'rotate']);
  });

  test('answers a test on its own page with JavaScript, and on the delivery’s page without', async () => {
    const plain = await post(`${path}/test`);
    expect(plain.to).toMatch(/^\/accounts\/1\/deliveries\/[0-9a-f-]{36}\?done=test-queued$/);
    const { to } = await post(`${path}/test`, {}, { 'hx-request': 'true' });
    expect(to).toMatch(new RegExp(`^/accounts/1${path}\\?test=[0-9a-f-]{36}$`));
    const before = await acme.get(to);
    expect(before.html).toContain('hx-trigger="load delay:1s"');
    await world.attemptDue(() => answered(418, '<img src=x onerror=alert(1)>'));
    const after = await acme.get(to);
    expect(after.text).toContain('Endpoint returned 418');
    expect(after.html).toContain('&lt;img src=x');
    expect(after.html).not.toMatch(/<img|load delay/);
  });

  test('says on its page that a test must wait, and polls no longer than an attempt can take', async () => {
    const { to } = await post(`${path}/test`, {}, { 'hx-request': 'true' });
    await world.clock.advance(13_001);
    expect((await acme.get(to)).html).not.toContain('load delay');
    for (let i = 0; i < 10; i++) await post(`${path}/test`);
    const refused = await post(`${path}/test`, {}, { 'hx-request': 'true' });
    expect([refused.status, refused.page.text]).toEqual([200, expect.stringContaining('Too many requests')]);
    const full = await post(`${path}/test`);
    expect([full.status, full.headers.get('retry-after')]).toEqual([
      429,
      expect.stringMatching(/^[1-9]\d?$/),
    ]);
  });

  test('that fails says since when, the last error and the next try, on its page and in the list', async () => {
    await post(`${path}/test`);
    await world.attemptDue(() => answered(503));
    await post(`${path}/test`);
    const { text } = await get(path);
    expect(text).toContain('Failing since');
    expect(text).toContain('last error: 503');
    expect(text).toMatch(/Next attempt in (30|29) s/);
    expect((await get('/webhooks')).text).toContain('Failing for');
  });

  test('resends all failed deliveries after showing how many they are', async () => {
    for (let i = 0; i < 3; i++) await post(`${path}/test`);
    for (let i = 0; i < 6; i++) {
      await world.attemptDue(() => answered(500));
      await world.clock.advance(2 * HOUR_MS);
    }
    acme = { ...acme, ...world.session(acme.user) };
    expect((await get(`${path}/resend-failed?since=1h`)).text).toContain('No failed deliveries');
    const page = await get(`${path}/resend-failed?since=24h`);
    expect(page.text).toContain('Retry all 3');
    const sent = await post(`${path}/resend-failed`, { since: page.field('since') ?? '' });
    expect(sent.to).toBe(`/accounts/1/deliveries?webhook=${id}&done=deliveries-resent`);
    await world.attemptDue(() => answered(200));
    expect((await get(`/deliveries?state=delivered`)).text.match(/attempt 6\/6/g)).toHaveLength(3);
    expect((await post(`${path}/resend-failed`, { since: 'x' })).status).toBe(404);
  });
});

test('webhooks are listed newest first, twenty at a time', async () => {
  for (let i = 0; i < 21; i++) {
    await world.addWebhook(acme.by, { url: `https://h${i}.example.com/` });
    await world.clock.advance(1);
  }
  const hostsOf = ({ html }: { html: string }) =>
    [...html.matchAll(/<strong>(h\d+)\./g)].map(([, host]) => host);
  const first = await get('/webhooks');
  expect(hostsOf(first)).toEqual(Array.from({ length: 20 }, (_, i) => `h${20 - i}`));
  expect(hostsOf(await acme.get(first.older))).toEqual(['h0']);
});
