import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Named, PAGES } from '../../browser/pages.ts';
import { addressOf } from '../../fakes/chain.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { startSeeded } from './seed.ts';
import { serveInBrowser } from './started.tsx';
import { HOUR_MS } from './world.ts';

// Browsers on a busy machine take their time.
setDefaultTimeout(240_000);

/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');
/** How many tables must be moved sideways to be read. */
const WIDE_TABLES =
  "[...document.querySelectorAll('.table-frame')].filter((each) => each.scrollWidth > each.clientWidth).length";
const PROGRAM = addressOf('A');

/** A console with data as a service of some size has it, for an operator, and its pages in the states that they can have. */
async function startPictured() {
  const world = startSeeded();
  const keys = seedKeys(world);
  const webhooks = await seedWebhooks(world);
  const delivery = (state: string) =>
    world.store
      .query<{ id: string }, [string]>('SELECT id FROM deliveries WHERE state = ? ORDER BY rowid DESC')
      .get(state)?.id ?? '';
  const served = serveInBrowser((request) => {
    if (!/^\/(?:login|sign-up|first-operator)/.test(new URL(request.url).pathname))
      request.headers.set('cookie', world.operator.cookie);
    return world.app.handle(request);
  });
  const ids = { key: keys.indexer, webhook: webhooks.healthy, delivery: delivery('delivered') };
  const named: Named = { account: '1', user: world.dana.id, program: PROGRAM, ...ids };
  const pages = {
    ...Object.fromEntries(Object.entries(PAGES).map(([route, { to }]) => [route, to(named)])),
    'usage-month-by-key': '/accounts/1/usage?period=30d&by=key&show=credits',
    'usage-empty': '/accounts/1/usage?method=getNothing',
    'quick-start-rust': '/accounts/1/quick-start?in=rust',
    'key-expiring': `/accounts/1/keys/${keys.rotated}`,
    'webhook-new': `/accounts/1/webhooks/new?program=${PROGRAM}`,
    'webhook-failing': `/accounts/1/webhooks/${webhooks.failing}`,
    'webhook-rotating': `/accounts/1/webhooks/${webhooks.rotating}`,
    'webhook-retry': `/accounts/1/webhooks/${webhooks.failing}/resend-failed?since=7d`,
    'delivery-retried': `/accounts/1/deliveries/${delivery('retry_scheduled')}`,
    'account-trial': `/operator/accounts/${world.ids[3]}`,
    'account-suspended': `/operator/accounts/${world.ids[4]}`,
    'audit-unknown': '/operator/audit?account=nobody',
  };
  return {
    ...served,
    pages,
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      world[Symbol.dispose]();
    },
  };
}

type SeededWorld = ReturnType<typeof startSeeded>;

/** A key in use and one that expires, with a month of use by day and night. */
function seedKeys({ addKey, keys, count }: SeededWorld) {
  const add = (name: string) => addKey(name, 'Meridian Labs').id;
  const indexer = add('indexer, eu-west');
  const rotated = add('trading bot with a rather long name to see what happens');
  keys.rotate(rotated, 24 * HOUR_MS, { kind: 'command-line' });
  for (let hoursAgo = 0; hoursAgo < 24 * 40; hoursAgo++)
    for (const [k, keyId] of [indexer, rotated].entries()) {
      const calls = Math.round((900 * (1 + 0.7 * Math.sin((hoursAgo / 12) * Math.PI))) / (k + 1));
      const more = { credits: 2 * calls, bytesOut: 900 * calls, within10Ms: calls - 20, within250Ms: 20 };
      count([{ hoursAgo, keyId, calls, errors: hoursAgo % 7, refused: hoursAgo % 17, ...more }]);
    }
  return { indexer, rotated };
}

/** Beside the failing webhooks of the seed a healthy one and one whose secret is being rotated. */
async function seedWebhooks({ addWebhook, attemptDue, upgrade, save, webhooks, dana, store }: SeededWorld) {
  const by = { accountId: 1, actor: { kind: 'user', userId: dana.id } } as const;
  // The webhooks of the seed have no secrets that could sign: nothing is sent to them.
  store.run('UPDATE deliveries SET next_attempt_at_ms = 9e12 WHERE next_attempt_at_ms IS NOT NULL');
  store.run("UPDATE webhooks SET programs_json = '[]'");
  save([
    [PROGRAM, { status: 'upgradeable', deploySlot: 371_000_000n, upgradeAuthority: addressOf('Z') }],
    [addressOf('B'), { status: 'frozen', deploySlot: 5n }],
  ]);
  const healthy = {
    url: 'https://hooks.example.com/sluice?team=core',
    description: 'Alerts of the core team',
  };
  const [{ id }, { id: failing }] = [
    await addWebhook(by, healthy),
    await addWebhook(by, { url: 'https://api.trading.example.net:8443/v2/program-upgrades' }),
  ];
  upgrade(PROGRAM, 381_000_000);
  await attemptDue(
    ({ post }) =>
      post.url.host.includes('trading')
        ? answered(503, '<h1>Service Unavailable</h1>')
        : answered(200, '{"ok":true}'),
    60,
  );
  const { id: rotating } = await addWebhook(by, { url: 'https://ops.example.io/in', programs: [PROGRAM] });
  webhooks.rotate(by, rotating, '24h');
  return { healthy: id, failing, rotating };
}

let browser: StartedBrowser;
let pictured: Awaited<ReturnType<typeof startPictured>>;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  [browser, pictured] = await Promise.all([startBrowser(), startPictured()]);
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await pictured[Symbol.asyncDispose]();
});

test.each([
  ['light', 1_280],
  ['dark', 360],
] as const)('in %s colours, %i pixels wide, no page has a fault or is cut off', async (theme, width) => {
  const { origin, pages } = pictured;
  await using opened = await browser.open({ origin, theme, width, height: 900, expectedStatuses: [404] });
  const { page, faults } = opened;
  const found: unknown[] = [];
  for (const [name, path] of Object.entries({ ...pages, absent: '/operator/accounts/999' })) {
    expect((await page.goto(path))?.status()).toBe(name === 'absent' ? 404 : 200);
    if ((await page.locator('[data-chart]').count()) > 0) await page.waitForSelector('.uplot');
    const file = `${name.replaceAll(/[/:]+/g, '-')}-${theme}-${width}.png`;
    await page.screenshot({ path: join(PICTURES, file), fullPage: true });
    const wide = Number(await page.evaluate('document.documentElement.scrollWidth')) > width;
    const tables = /webhook|program|deliver/.test(path) ? await page.evaluate(WIDE_TABLES) : 0;
    const wrong = await accessibilityFaults(page);
    if (wide || tables !== 0 || wrong.length > 0) found.push([name, { wide, tables, wrong }]);
  }
  expect([...found, ...faults]).toEqual([]);
});
