import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { logIn, ORIGIN, PASSWORD, startPeople } from '../../../auth/people.ts';
import { accessibilityFaults } from '../../../../started/accessibility.ts';
import { startBrowser, type StartedBrowser } from '../../../../started/browser.ts';

/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');
const LONG_MS = 60_000;
const ADA = 'ada@example.com';
const OIDC = {
  issuer: new URL('https://login.example.com'),
  clientId: 'sluice',
  clientSecret: undefined,
  name: 'Example Login',
};

let auth: ReturnType<typeof startPeople>;
let browser: StartedBrowser;
let server: Bun.Server<undefined>;
/** Carried by every request to `/as-ada…`: a login in a browser of these tests would be one more thing that can break. */
let cookie = '';

beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  auth = startPeople({ signUp: true, oidc: OIDC as never }); // its button alone is looked at
  auth.made(ADA);
  const [ada, phone] = [auth.visitor(), auth.visitor()];
  await logIn(ada, ADA);
  await phone.post(
    '/login',
    { email: ADA, password: PASSWORD },
    {
      'sec-fetch-site': 'same-origin',
      'user-agent':
        'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
    },
  );
  cookie = [...ada.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  browser = await startBrowser();
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      if (pathname.startsWith('/settings')) headers.set('cookie', cookie);
      const body = request.method === 'POST' ? await request.text() : null;
      return auth.handle(
        new Request(`${ORIGIN}${pathname}${search}`, { method: request.method, headers, body }),
      );
    },
  });
}, LONG_MS);
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await server.stop(true);
  auth[Symbol.dispose]();
});

const PAGES: Readonly<Record<string, string>> = {
  login: '/login',
  'second-step': '/login/second-step',
  'sign-up': '/sign-up',
  'first-operator': '/first-operator?token=x',
  settings: '/settings',
  'second-factor': '/settings/second-factor',
};

describe.each(['light', 'dark'] as const)('in %s colours', (theme) => {
  describe.each([360, 1_280])('%i pixels wide', (width) => {
    const open = () => browser.open({ origin: server.url.origin, theme, width, height: 900 });
    test.each(Object.keys(PAGES))(
      '%s is without a fault, and nothing is cut off',
      async (name) => {
        await using opened = await open();
        const { page, faults } = opened;
        await page.goto(PAGES[name] ?? '');
        await page.screenshot({ path: join(PICTURES, `${name}-${theme}-${width}.png`), fullPage: true });
        expect(await accessibilityFaults(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
        expect(faults).toEqual([]);
      },
      LONG_MS,
    );
  });
});

const REFUSED = [
  [
    '/login',
    { email: 'nobody@example.com', password: 'wrong' },
    '[role=alert]',
    'The e-mail or the password is wrong.',
    401,
  ],
  [
    '/settings',
    { password: 'wrong', 'new-password': 'four other plain words' },
    '#password-error',
    'That is not your password.',
    422,
  ],
  ['/settings', { password: PASSWORD, 'new-password': 'short' }, '#new-password-error', 'at least 12', 422],
  [
    '/sign-up',
    { account: 'acme', email: 'new@example.com', 'new-password': 'short' },
    '#new-password-error',
    'at least 12',
    422,
  ],
  [
    '/sign-up',
    { account: 'acme', email: ADA, 'new-password': 'four other plain words' },
    '#email-error',
    'has a login already',
    422,
  ],
] as const;

test.each(REFUSED)(
  'what is wrong on %s with %p is said there',
  async (path, fields, where, sentence, status) => {
    await using opened = await browser.open({ origin: server.url.origin, expectedStatuses: [status] });
    const { page, faults } = opened;
    await page.goto(path);
    for (const [name, value] of Object.entries(fields)) await page.fill(`#${name}`, value);
    await page.click('main form button[type=submit]');
    await page.waitForSelector(where);
    expect(await page.textContent(where)).toContain(sentence);
    await page.screenshot({
      path: join(PICTURES, `refused${path.replace('/', '-')}-${where.replaceAll(/\W/g, '')}.png`),
      fullPage: true,
    });
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
  },
  LONG_MS,
);

test(
  'the second factor is set up with a code, and its backup codes are seen',
  async () => {
    await using opened = await browser.open({ origin: server.url.origin });
    const { page, faults } = opened;
    await page.goto('/settings/second-factor');
    await page.click('text=Set up the second factor');
    await page.waitForSelector('.qr');
    await page.screenshot({ path: join(PICTURES, 'second-factor-begun-light-1280.png'), fullPage: true });
    expect(await accessibilityFaults(page)).toEqual([]);
    const user = auth.auth.users.byId(
      auth.auth.sessionOf(new Request(ORIGIN, { headers: { cookie } }))?.userId ?? '',
    );
    const secret = user && auth.auth.secondFactor.pending(user);
    if (!secret) throw new Error('no second factor was begun');
    await page.fill('#code', auth.codeNow(secret));
    await page.click('text=Turn it on');
    await page.waitForSelector('.backup-codes');
    await page.screenshot({ path: join(PICTURES, 'second-factor-on-light-1280.png'), fullPage: true });
    expect(await page.locator('.backup-codes li').count()).toBeGreaterThan(5);
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
  },
  LONG_MS,
);
