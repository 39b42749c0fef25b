import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { shownBytes } from '../../../../../deploys/console/pages/account/deliveries.tsx';
import { addressOf } from '../../../../fakes/chain.ts';
import { decoded } from '../../page-text.ts';
import { answered, failedWith } from '../../../../fakes/scripted-send.ts';
import { type Customer, HOUR_MS, startWorld, type World } from '../../world.ts';

const HOSTILE = '<script>alert("x")</script>';

let world: World;
let acme: Customer;
let id: string;
let secret: string;
beforeEach(async () => {
  world = startWorld();
  acme = world.customer();
  ({ id, secret } = await world.addWebhook(acme.by, { url: "https://hooks.example.com/it's?a=$HOME" }));
});
afterEach(() => {
  expect(world.lines).toEqual([]);
  world[Symbol.dispose]();
});

const get = (path: string) => acme.get(`/accounts/1${path}`);
const ping = () => world.enqueue.ping(id, world.clock.now());
const newest = () => world.webhooks.deliveries(1, { webhookId: id, limit: 1 })?.[0]?.id ?? '';

describe('the list', () => {
  test('is narrowed by state, event, webhook, program and time, and searched by id', async () => {
    const other = await world.addWebhook(acme.by, {
      url: 'https://other.example.com/',
      programs: [addressOf('B')],
    });
    world.upgrade(addressOf('A'), 5);
    await world.attemptDue(() => answered(200));
    await world.clock.advance(25 * HOUR_MS);
    acme = { ...acme, ...world.session(acme.user) };
    world.upgrade(addressOf('B'), 6);
    ping();
    await world.attemptDue(() => answered(500));
    const rowsOf = async (query: string) =>
      (await get(`/deliveries?${query}`)).html.match(/data-drawer/g)?.length ?? 0;
    expect(await rowsOf('')).toBe(4);
    expect(await rowsOf('state=delivered')).toBe(1);
    expect(await rowsOf('event=ping')).toBe(1);
    expect(await rowsOf(`webhook=${other.id}`)).toBe(1);
    expect(await rowsOf(`program=${addressOf('B')}`)).toBe(2);
    expect(await rowsOf('time=24h')).toBe(3);
    expect(await rowsOf(`time=7d&state=delivered&program=${addressOf('A')}&webhook=${id}`)).toBe(1);
    expect(await rowsOf(`q=${newest().slice(0, 8).toUpperCase()}`)).toBeGreaterThanOrEqual(1);
    expect((await get('/deliveries?q=abc')).text).toContain('Enter at least 8 characters');
    expect(await rowsOf('state=nonsense&time=x&after=y')).toBe(4);
  });
});

describe('a delivery', () => {
  test('shows its envelope, the headers as sent, the schedule and every attempt with its answer', async () => {
    world.upgrade(addressOf('A'), 5);
    await world.attemptDue(() => answered(503, HOSTILE));
    const { text, html } = await get(`/deliveries/${newest()}`);
    expect(text).toContain('"previous_slot": 4');
    expect(text).toContain('X-Service-Signature: sha256=');
    expect(text).toContain('Endpoint returned 503');
    expect(text).toContain('198.41.0.44');
    for (const part of ['DNS', 'Connect', 'TLS', 'First byte', 'Total']) expect(text).toContain(part);
    expect(text).toMatch(/Attempt 2 of 6 Due in 30 s/);
    expect(text).toContain('Attempt 6 of 6 2 h after attempt 5 fails');
    expect(text).toContain(HOSTILE);
    expect(html).not.toContain('<script>');
    expect(html).not.toContain(secret);
  });

  test('keeps itself up to date while something may happen, and no longer', async () => {
    ping();
    const path = `/deliveries/${newest()}`;
    expect((await get(path)).html).toContain('data-live');
    await world.attemptDue(() => answered(200));
    const settled = await get(path);
    expect(settled.html).not.toContain('data-live');
    expect(settled.text).not.toContain('Attempt 2 of 6');
  });

  test('is copied as one curl that a shell reads as it was sent', async () => {
    ping();
    await world.attemptDue(() => answered(200));
    const { html } = await get(`/deliveries/${newest()}`);
    const curl = /id="curl"[^>]*><code>([\s\S]*?)<\/code>/.exec(html)?.[1] ?? '';
    const script = `curl() { printf '%s\\0' "$@"; }\n${decoded(curl)}`;
    const words = (await Bun.$`sh -c ${script}`.text()).split('\0').slice(0, -1);
    const body = world.webhooks.delivery(1, id, newest())?.body ?? [];
    expect(words.slice(0, 3)).toEqual(['-X', 'POST', "https://hooks.example.com/it's?a=$HOME"]);
    expect(words.slice(-2)).toEqual(['--data-binary', Buffer.from(body).toString()]);
    expect(words.filter((word) => word.startsWith('X-Service-'))).toHaveLength(4);
  });

  test('is resent by hand, and says why when it cannot be', async () => {
    ping();
    const path = `/accounts/1/deliveries/${newest()}`;
    const early = await acme.post(`${path}/resend`);
    expect([early.status, early.page.text]).toEqual([409, expect.stringContaining('already scheduled')]);
    await world.attemptDue(() => answered(200));
    expect((await acme.post(`${path}/resend`)).to).toBe(`${path}?done=delivery-resent`);
    await world.attemptDue(() => answered(201));
    const { text } = await get(`/deliveries/${newest()}`);
    expect(text).toContain('Resend (2)');
    expect(text).toContain('Trigger Manual');
    expect(world.actions(1)[0]).toBe(`webhook.resend user ${acme.user.id}`);
  });

  test('tells what only operators may know to operators alone', async () => {
    ping();
    await world.attemptDue(() => failedWith('connection_refused'));
    const path = `/accounts/1/deliveries/${newest()}`;
    const texts = [(await acme.get(path)).text, (await world.operator.get(path)).text];
    expect(texts.map((text) => text.includes('connection_refused in the script'))).toEqual([false, true]);
    expect(texts.map((text) => text.includes('Connection refused'))).toEqual([true, true]);
  });
});

describe('programs', () => {
  test('are listed with the newest deploy first, and found by name, address and status', async () => {
    const authority = addressOf('Z');
    world.save([
      [addressOf('A'), { status: 'frozen', deploySlot: 5n }],
      [addressOf('B'), { status: 'upgradeable', deploySlot: 1_234_567n, upgradeAuthority: authority }],
    ]);
    const { text } = await get('/programs');
    expect(text).toMatch(/Program B G.*Program A 6/);
    expect(text).toContain('1,234,567');
    const namesOf = async (query: string) => (await get(`/programs?${query}`)).html.match(/>Program \w</g);
    expect(await namesOf('q=gram+b')).toEqual(['>Program B<']);
    expect(await namesOf(`q=${addressOf('A')}`)).toEqual(['>Program A<']);
    expect(await namesOf('status=frozen')).toEqual(['>Program A<']);
    expect(await namesOf('status=missing')).toBeNull();
  });

  test('have a page with the deploys that were seen, which leads to a webhook', async () => {
    for (const deploySlot of [5n, 9n]) world.save([[addressOf('A'), { status: 'frozen', deploySlot }]]);
    const { text, html } = await get(`/programs/${addressOf('A')}`);
    expect(text).toMatch(/Authority 9 5 Unknown/);
    expect(html).toContain(`/accounts/1/webhooks/new?program=${addressOf('A')}`);
    expect((await acme.ask(`/accounts/1/programs/${addressOf('Z')}`)).status).toBe(404);
  });
});

const bytes = (text: string) => new TextEncoder().encode(text);
const CUT = bytes('ok 🦀').subarray(0, -1);

test.each<[string, Uint8Array, isWhole: boolean, 'text' | 'binary', string | RegExp]>([
  ['nothing', bytes(''), true, 'text', ''],
  ['lines', bytes('plain\ttext\r\n'), true, 'text', 'plain\ttext\r\n'],
  ['letters beyond ASCII', bytes('schön 🦀'), true, 'text', 'schön 🦀'],
  ['what was cut in the middle of a character', CUT, false, 'text', 'ok '],
  ['what ends in the middle of a character', CUT, true, 'binary', /^0000 {2}6f 6b 20/],
  ['a control character', bytes('a\u0000b'), true, 'binary', '0000  61 00 62'],
  ['an escape sequence', bytes('\u001b[31m'), true, 'binary', '0000  1b 5b 33 31 6d'],
  ['no UTF-8', Uint8Array.of(0xff, 0xfe), true, 'binary', '0000  ff fe'],
  ['many, from their beginning', new Uint8Array(16_384).fill(0xff), true, 'binary', /^(?:.+\n){15}.+$/],
])('the bytes of an answer are shown: %s', (_, given, isWhole, kind, text) => {
  const shown = shownBytes(given, isWhole);
  expect(shown.kind).toBe(kind);
  if (typeof text === 'string') expect(shown.text).toBe(text);
  else expect(shown.text).toMatch(text);
});
