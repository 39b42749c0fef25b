import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOTP } from 'otpauth';
import { inviteFirstOperator } from '../../deploys/auth/sign-up.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { firstOperatorLink } from '../../deploys/console/paths.ts';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_FILE, ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { type StartedBrowser, startBrowser } from '../started/browser.ts';
import { PASSWORD, signIn } from './people.ts';
import { opened, temporaryFolder } from '../started/gateway.ts';
import { ROOT, type Started, startProcess } from '../started/process.ts';

const EMAIL = 'ada@example.com';
const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));

let browser: StartedBrowser;
let deploys: Started & AsyncDisposable;
const folder = temporaryFolder();
const dataDir = join(folder.path, 'data');

beforeAll(async () => {
  const config = join(folder.path, 'sluice.toml');
  writeFileSync(
    config,
    `[storage]\ndata_dir = "${dataDir}"\n[deploys]\nlisten = "127.0.0.1:0"\nmetrics = "127.0.0.1:0"\nrpc_urls = ["http://127.0.0.1:1"]\n`,
  );
  [browser, deploys] = await Promise.all([
    startBrowser(),
    startProcess([join(ROOT, 'deploys/main.ts'), '--config', config], folder.path),
  ]);
}, 30_000);
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await deploys[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** A link as `bun start` makes it, beside the running app. */
function link(): string {
  const store = opened(join(dataDir, ACCOUNTS_FILE), { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const token = inviteFirstOperator({ store, clock: systemClock, random });
  store.close();
  if (token === undefined) throw new Error('there is an operator already');
  return firstOperatorLink(deploys.url, token);
}

describe('in a browser, without scripts', () => {
  let key = '';
  let backupCode = '';

  test('the first operator is made by the link, which then is used up, and sets up a second factor', async () => {
    const address = link();
    const { origin } = deploys.url;
    await using ada = await browser.open({ origin, javaScript: false });
    await ada.page.goto(address);
    await ada.page.getByLabel('Email').fill(EMAIL);
    await ada.page.getByLabel('Password').fill(PASSWORD);
    await ada.page.getByRole('button', { name: 'Create login' }).click();
    expect(await ada.page.textContent('h1')).toBe('Two-factor authentication');

    await ada.page.getByRole('button', { name: 'Set up' }).click();
    expect(await ada.page.getByRole('img', { name: 'QR code' }).isVisible()).toBe(true);
    key = (await ada.page.textContent('.totp-key')) ?? '';
    await ada.page.getByRole('textbox', { name: 'Code' }).fill(new TOTP({ secret: key }).generate());
    await ada.page.getByRole('button', { name: 'Turn on' }).click();
    backupCode = (await ada.page.textContent('.backup-codes code')) ?? '';
    expect(backupCode).toMatch(/^[a-z2-7]{5}-[a-z2-7]{5}$/);

    await using eve = await browser.open({ origin, javaScript: false, expectedStatuses: [410] });
    await eve.page.goto(address);
    await eve.page.getByLabel('Email').fill('eve@example.com');
    await eve.page.getByLabel('Password').fill(PASSWORD);
    await eve.page.getByRole('button', { name: 'Create login' }).click();
    expect(await eve.page.getByRole('alert').textContent()).toContain('has been used');
    expect([ada.faults, eve.faults]).toEqual([[], []]);
  }, 30_000);

  test.each(['127.0.0.1', 'localhost'])(
    'one signs in with both factors and out again, on http://%s',
    async (host) => {
      const url = new URL(deploys.url);
      url.hostname = host;
      await using ada = await browser.open({ origin: url.origin, javaScript: false });
      await ada.page.goto('/settings');
      expect(new URL(ada.page.url()).pathname).toBe('/login');
      await signIn(ada.page, EMAIL, PASSWORD);
      expect(await ada.page.textContent('h1')).toBe('Two-factor authentication');
      // A code of the step after now is taken too, so that each of these tests has one of its own.
      const code =
        host === 'localhost'
          ? backupCode
          : new TOTP({ secret: key }).generate({ timestamp: Date.now() + 30_000 });
      await ada.page.getByRole('textbox', { name: 'Code' }).fill(code);
      await ada.page.getByRole('button', { name: 'Sign in' }).click();
      expect(await ada.page.textContent('h1')).toBe('Settings');
      expect(await ada.page.textContent('main')).toContain(EMAIL);
      const cookies = await ada.context.cookies();
      expect(cookies).toMatchObject([
        { name: '__Host-sluice', httpOnly: true, secure: true, sameSite: 'Lax', path: '/', domain: host },
      ]);

      await ada.page.getByRole('button', { name: 'Sign out', exact: true }).click();
      expect(await ada.page.textContent('h1')).toBe('Sign in');
      await ada.page.goto('/settings');
      expect(new URL(ada.page.url()).pathname).toBe('/login');
      expect(ada.faults).toEqual([]);
    },
    30_000,
  );

  test('a form of another site changes nothing', async () => {
    const { origin } = deploys.url;
    await using ada = await browser.open({ origin, javaScript: false, expectedStatuses: [403] });
    // The same machine under its other name is another site to a browser.
    const other = new URL(deploys.url);
    other.hostname = 'localhost';
    const html = `<form method="post" action="${origin}/login"><button>Win</button></form>`;
    await ada.page.route(
      () => true,
      (route) =>
        new URL(route.request().url()).hostname === 'localhost'
          ? route.fulfill({ contentType: 'text/html', body: html })
          : route.continue(),
    );
    await ada.page.goto(other.href);
    await ada.page.getByRole('button', { name: 'Win' }).click();
    expect(await ada.page.textContent('h1')).toBe('Rejected');
  }, 30_000);
});
