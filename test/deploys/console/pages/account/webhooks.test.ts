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
  });

  test.each([
    ['http://hooks.example.com', 'The URL must start with https://.'],
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
  let path: string;
  beforeEach(async () => {
    ({ id } = await world.addWebhook(acme.by, { url: URL_TEXT }));
    path = `/webhooks/${id}`;
  });

  test('says that a rotation is pending while it is, and that none is when it is to be settled', async () => {
    const late = await post(`${path}/rotation/switch`);
    expect([late.status, late.page.text]).toEqual([409, expect.stringContaining('No rotation is pending')]);
    const seen = (await get(path)).field('seen') ?? '';
    await world.clock.advance(1);
    expect((await post(`${path}/rotation`, { 'takes-over': '1h', seen })).status).toBe(200);
    expect((await get(path)).text).toContain('Rotation pending');
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
