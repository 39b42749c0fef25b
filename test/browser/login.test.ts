import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOTP } from 'otpauth';
import { ACCOUNTS_FILE } from '../../shared/keys/schema.ts';
import { type StartedBrowser, startBrowser } from '../started/browser.ts';
import { createLogin, inviteOperator, PASSWORD, setUpSecondFactor, signIn } from './people.ts';
import { temporaryFolder } from '../started/gateway.ts';
import { ROOT, type Started, startProcess } from '../started/process.ts';

const EMAIL = 'ada@example.com';

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

describe('in a browser, without scripts', () => {
  let factor = { key: '', backupCode: '' };

  test('the link creates the first operator, who then sets up a second factor', async () => {
    const { origin } = deploys.url;
    await using ada = await browser.open({ origin, javaScript: false });
    await ada.page.goto(inviteOperator(join(dataDir, ACCOUNTS_FILE), origin));
    await createLogin(ada.page, EMAIL);
    expect(await ada.page.textContent('h1')).toBe('Two-factor authentication');
    factor = await setUpSecondFactor(ada.page);
    expect(factor.backupCode).toMatch(/^[a-z2-7]{5}-[a-z2-7]{5}$/);
    expect(ada.faults).toEqual([]);
  }, 30_000);

  test.each(['127.0.0.1', 'localhost'])(
    'a user signs in with both factors and out again, on http://%s',
    async (host) => {
      const url = new URL(deploys.url);
      url.hostname = host;
      await using ada = await browser.open({ origin: url.origin, javaScript: false });
      await ada.page.goto('/settings');
      expect(new URL(ada.page.url()).pathname).toBe('/login');
      await signIn(ada.page, EMAIL, PASSWORD);
      expect(await ada.page.textContent('h1')).toBe('Two-factor authentication');
      // A code is accepted once. That of the next period is valid too.
      const next = new TOTP({ secret: factor.key }).generate({ timestamp: Date.now() + 30_000 });
      const code = host === 'localhost' ? factor.backupCode : next;
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
});
