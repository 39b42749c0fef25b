import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { type PageOptions, type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { logIn, startPeople } from '../auth/people.ts';
import { addressOf } from '../../fakes/chain.ts';
import { answered, failedWith } from '../../fakes/scripted-send.ts';
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

/** A console with data as a service of some size has it; `names` are pages whose addresses are known once it stands. */
type Seeded = Disposable &
  Readonly<{
    handle(request: Request): Response | Promise<Response>;
    names: Readonly<Record<string, string>>;
  }>;

/** Operators see the pages of customers too, so that one world has them all. */
const WORLDS: Readonly<Record<string, () => Promise<Seeded>>> = {
  async service() {
    const world = startSeeded();
    const [account, , , trial, suspended] = world.ids;
    const keys = seedKeys(world);
    const webhooks = await seedWebhooks(world);
    const delivery = (state: string) =>
      world.store
        .query<{ id: string }, [string]>('SELECT id FROM deliveries WHERE state = ? ORDER BY rowid DESC')
        .get(state)?.id ?? '';
    const operator = world.session(world.operator.user); // the first one has ended by now
    const handle = (request: Request) => {
      request.headers.set('cookie', operator.cookie);
      return world.app.handle(request);
    };
    const names = {
      key: `/accounts/1/keys/${keys.indexer}`,
      'key-expiring': `/accounts/1/keys/${keys.rotated}`,
      'webhook-healthy': `/accounts/1/webhooks/${webhooks.healthy}`,
      'webhook-failing': `/accounts/1/webhooks/${webhooks.failing}`,
      'webhook-rotating': `/accounts/1/webhooks/${webhooks.rotating}`,
      'webhook-retry': `/accounts/1/webhooks/${webhooks.failing}/resend-failed?since=7d`,
      'delivery-delivered': `/accounts/1/deliveries/${delivery('delivered')}`,
      'delivery-retry_scheduled': `/accounts/1/deliveries/${delivery('retry_scheduled')}`,
      account: `/operator/accounts/${account}`,
      'account-trial': `/operator/accounts/${trial}`,
      'account-suspended': `/operator/accounts/${suspended}`,
      'account-suspend': `/operator/accounts/${account}/suspend`,
      user: `/operator/users/${world.dana.id}`,
      'user-second-factor': `/operator/users/${world.dana.id}/second-factor`,
    };
    return { handle, names, [Symbol.dispose]: world[Symbol.dispose] };
  },
  async login() {
    const oidc = { issuer: new URL('https://login.example.com'), clientId: 'sluice', name: 'Example Login' };
    const people = startPeople({ signUp: true, oidc: oidc as never }); // its button alone is looked at
    people.made('ada@example.com');
    const ada = people.visitor();
    await logIn(ada, 'ada@example.com');
    const cookie = [...ada.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const handle = (request: Request) => {
      if (new URL(request.url).pathname.startsWith('/settings')) request.headers.set('cookie', cookie);
      return people.handle(request);
    };
    return { handle, names: {}, [Symbol.dispose]: people[Symbol.dispose] };
  },
};

/** Pages that are not named above, by the world they are in; what is not listed here or there is in the journey's list. */
const PAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  service: {
    overview: '/accounts/1/overview',
    usage: '/accounts/1/usage',
    'usage-month-by-key': '/accounts/1/usage?period=30d&by=key&show=credits',
    'usage-empty': '/accounts/1/usage?method=getNothing',
    keys: '/accounts/1/keys',
    'quick-start-rust': '/accounts/1/quick-start?in=rust',
    programs: '/accounts/1/programs',
    program: `/accounts/1/programs/${PROGRAM}`,
    webhooks: '/accounts/1/webhooks',
    'webhook-new': `/accounts/1/webhooks/new?program=${PROGRAM}`,
    deliveries: '/accounts/1/deliveries',
    accounts: '/operator/accounts',
    'account-new': '/operator/accounts/new',
    backends: '/operator/backends',
    traffic: '/operator/traffic?hours=24',
    queue: '/operator/queue',
    audit: '/operator/audit',
    'audit-unknown': '/operator/audit?account=nobody',
    health: '/operator/health',
  },
  login: {
    login: '/login',
    'second-step': '/login/second-step',
    'sign-up': '/sign-up',
    'first-operator': '/first-operator?token=x',
    settings: '/settings',
    'second-factor': '/settings/second-factor',
  },
};

type SeededWorld = ReturnType<typeof startSeeded>;

/** Keys in every state, and a month of use by day and night. */
function seedKeys({ addKey, keys, count }: SeededWorld) {
  const by = { kind: 'command-line' } as const;
  const add = (name: string) => addKey(name, 'Meridian Labs').id;
  const [indexer, web, old] = [add('indexer, eu-west'), add('web app'), add('old laptop')];
  const rotated = add('trading bot with a rather long name to see what happens');
  keys.revoke(old, by);
  keys.rotate(rotated, 24 * HOUR_MS, by);
  for (let hoursAgo = 0; hoursAgo < 24 * 40; hoursAgo++)
    for (const [k, keyId] of [indexer, web, rotated].entries()) {
      const calls = Math.round((900 * (1 + 0.7 * Math.sin((hoursAgo / 12) * Math.PI))) / (k + 1));
      const [method, errors] = [hoursAgo % 3 === 0 ? 'getTransaction' : 'getAccountInfo', hoursAgo % 7];
      const more = { credits: 2 * calls, bytesOut: 900 * calls, within10Ms: calls - 20, within250Ms: 20 };
      count([{ hoursAgo, keyId, method, calls, errors, refused: hoursAgo % 17, ...more }]);
    }
  return { indexer, rotated };
}

/** Webhooks in every state, with some hours of deliveries. */
async function seedWebhooks(world: SeededWorld) {
  const { addWebhook, attemptDue, upgrade, save, webhooks, enqueue, clock, dana, store } = world;
  const by = { accountId: 1, actor: { kind: 'user', userId: dana.id } } as const;
  const programs = [PROGRAM];
  // The webhooks of the seed have no secrets that could sign: nothing is sent to them.
  store.run('UPDATE deliveries SET next_attempt_at_ms = 9e12 WHERE next_attempt_at_ms IS NOT NULL');
  store.run("UPDATE webhooks SET programs_json = '[]'");
  save([
    [PROGRAM, { status: 'upgradeable', deploySlot: 371_000_000n, upgradeAuthority: addressOf('Z') }],
    [addressOf('B'), { status: 'frozen', deploySlot: 5n }],
  ]);
  const description = 'Alerts of the core team';
  const { id: healthy } = await addWebhook(by, {
    url: 'https://hooks.example.com/sluice?team=core',
    description,
  });
  const { id: failing } = await addWebhook(by, {
    url: 'https://api.trading.example.net:8443/v2/program-upgrades',
  });
  const { id: paused } = await addWebhook(by, { url: 'https://staging.example.org/hook', programs });
  const { id: rotating } = await addWebhook(by, { url: 'https://ops.example.io/in', programs });
  webhooks.pause(by, paused);
  for (let hour = 0; hour < 8; hour++) {
    for (let i = 0; i < hour % 4; i++) enqueue.ping(healthy, clock.now() + i);
    upgrade(PROGRAM, 381_000_000 + hour * 9_000);
    for (const ms of [53 * 60_000, 7 * 60_000]) {
      await attemptDue(({ post }) => {
        if (!post.url.host.includes('trading') || hour < 4) return answered(200, '{"ok":true}');
        return hour % 2 === 0 ? answered(503, '<h1>Service Unavailable</h1>') : failedWith('timeout');
      }, 60);
      await clock.advance(ms);
    }
  }
  webhooks.rotate(by, rotating, '24h');
  return { healthy, failing, rotating };
}

let browser: StartedBrowser;
beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  browser = await startBrowser();
});
afterAll(() => browser[Symbol.asyncDispose]());

describe.each(Object.keys(WORLDS))('the pages of %s', (name) => {
  let world: Seeded;
  let served: ReturnType<typeof serveInBrowser>;
  const open = (options: Partial<PageOptions>) =>
    browser.open({ origin: served.origin, height: 900, ...options });
  beforeAll(async () => {
    world = (await WORLDS[name]?.()) as Seeded; // one of the worlds
    served = serveInBrowser(world.handle);
  });
  afterAll(async () => {
    await served[Symbol.asyncDispose]();
    world[Symbol.dispose]();
  });

  test.each([
    ['light', 1_280],
    ['dark', 360],
  ] as const)(
    'in %s colours, %i pixels wide, are without a fault, and nothing is cut off',
    async (theme, width) => {
      await using opened = await open({ theme, width });
      const { page, faults } = opened;
      const found: unknown[] = [];
      for (const [picture, path] of Object.entries({ ...PAGES[name], ...world.names })) {
        expect((await page.goto(path))?.status()).toBe(200);
        if ((await page.locator('[data-chart]').count()) > 0) await page.waitForSelector('.uplot');
        await page.screenshot({ path: join(PICTURES, `${picture}-${theme}-${width}.png`), fullPage: true });
        const wide = Number(await page.evaluate('document.documentElement.scrollWidth')) > width;
        const tables = /webhook|program|deliver/.test(picture) ? await page.evaluate(WIDE_TABLES) : 0;
        const wrong = await accessibilityFaults(page);
        if (wide || tables !== 0 || wrong.length > 0) found.push([picture, { wide, tables, wrong }]);
      }
      expect([...found, ...faults]).toEqual([]);
    },
  );

  if (name === 'login')
    test.each([
      ['/login', { email: 'nobody@example.com', password: 'wrong' }, '[role=alert]', 'Incorrect email', 401],
      ['/settings', { password: 'wrong', 'new-password': 'x' }, '#password-error', 'Incorrect password', 422],
    ] as const)(
      'what is wrong on %s with %p is said there',
      async (path, fields, where, sentence, status) => {
        await using opened = await open({ expectedStatuses: [status] });
        const { page, faults } = opened;
        await page.goto(path);
        for (const [field, value] of Object.entries(fields)) await page.fill(`#${field}`, value);
        await page.click('main form button[type=submit]');
        await page.waitForSelector(where);
        expect(await page.textContent(where)).toContain(sentence);
        await page.screenshot({
          path: join(PICTURES, `refused${path.replace('/', '-')}.png`),
          fullPage: true,
        });
        expect(await accessibilityFaults(page)).toEqual([]);
        expect(faults).toEqual([]);
      },
    );

  if (name === 'service')
    test.each(['light', 'dark'] as const)(
      'in %s colours, that are not there are without a fault',
      async (theme) => {
        await using opened = await open({ theme, expectedStatuses: [404] });
        await opened.page.goto('/operator/accounts/999');
        expect(await accessibilityFaults(opened.page)).toEqual([]);
        expect(opened.faults).toEqual([]);
      },
    );
});
