import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { type PageOptions, type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { logIn, startPeople } from '../auth/people.ts';
import { startSeededAccount } from './account-seed.ts';
import { startSeededOperatorWorld } from './operator-seed.ts';
import { serveInBrowser } from './started.tsx';
import { startSeededWorld } from './webhook-seed.ts';

// Browsers on a busy machine take their time.
setDefaultTimeout(60_000);

/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');
/** How many tables must be moved sideways to be read. */
const WIDE_TABLES =
  "[...document.querySelectorAll('.table-frame')].filter((each) => each.scrollWidth > each.clientWidth).length";
const PROGRAM = '675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8';

/** A console with data as a service of some size has it; `names` are pages whose addresses are known once it stands. */
type Seeded = Disposable &
  Readonly<{
    handle(request: Request): Response | Promise<Response>;
    names: Readonly<Record<string, string>>;
  }>;

const WORLDS: Readonly<Record<string, () => Seeded | Promise<Seeded>>> = {
  account() {
    const world = startSeededAccount();
    const { indexer, rotated } = world.ids;
    const names = { key: `/accounts/7/keys/${indexer}`, 'key-expiring': `/accounts/7/keys/${rotated}` };
    return { handle: world.app.handle, names, [Symbol.dispose]: world[Symbol.dispose] };
  },
  async webhooks() {
    const world = await startSeededWorld();
    const { healthy, failing, rotating } = world.ids;
    const delivery = (state: string) =>
      world.queue.store
        .query<{ id: string }, [string]>('SELECT id FROM deliveries WHERE state = ? ORDER BY rowid DESC')
        .get(state)?.id ?? '';
    const names = {
      'webhook-healthy': `/accounts/7/webhooks/${healthy}`,
      'webhook-failing': `/accounts/7/webhooks/${failing}`,
      'webhook-rotating': `/accounts/7/webhooks/${rotating}`,
      'webhook-retry': `/accounts/7/webhooks/${failing}/resend-failed?since=7d`,
      ...Object.fromEntries(
        ['delivered', 'retry_scheduled', 'failed'].map((state) => [
          `delivery-${state}`,
          `/accounts/7/deliveries/${delivery(state)}`,
        ]),
      ),
    };
    return { handle: world.app.handle, names, [Symbol.dispose]: world[Symbol.dispose] };
  },
  operator() {
    const world = startSeededOperatorWorld();
    const [account, , , trial, suspended] = world.ids;
    const names = {
      account: `/operator/accounts/${account}`,
      'account-trial': `/operator/accounts/${trial}`,
      'account-suspended': `/operator/accounts/${suspended}`,
      'account-suspend': `/operator/accounts/${account}/suspend`,
      user: `/operator/users/${world.customer.id}`,
      'user-second-factor': `/operator/users/${world.customer.id}/second-factor`,
    };
    const handle = (request: Request) => {
      request.headers.set('cookie', world.operator.cookie);
      return world.app.handle(request);
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
  account: {
    overview: '/accounts/7/overview',
    usage: '/accounts/7/usage',
    'usage-month-by-key': '/accounts/7/usage?period=30d&by=key&show=credits',
    'usage-empty': '/accounts/7/usage?method=getNothing',
    keys: '/accounts/7/keys',
    'quick-start-rust': '/accounts/7/quick-start?in=rust',
  },
  webhooks: {
    programs: '/accounts/7/programs',
    program: `/accounts/7/programs/${PROGRAM}`,
    webhooks: '/accounts/7/webhooks',
    'webhook-new': `/accounts/7/webhooks/new?program=${PROGRAM}`,
    deliveries: '/accounts/7/deliveries',
  },
  operator: {
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
        const tables = name === 'webhooks' ? await page.evaluate(WIDE_TABLES) : 0;
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

  if (name === 'operator')
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
