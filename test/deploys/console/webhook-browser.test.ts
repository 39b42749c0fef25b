import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { addressOf } from '../../fakes/chain.ts';
import { answered } from '../../fakes/scripted-send.ts';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { ORIGIN } from './started.tsx';
import { startWebhookWorld, type WebhookWorld } from './webhook-world.ts';

/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');
const LONG_MS = 60_000;

let browser: StartedBrowser;
let world: WebhookWorld;
let server: Bun.Server<undefined>;

beforeAll(async () => void (browser = await startBrowser()), LONG_MS);
afterAll(() => browser[Symbol.asyncDispose]());
beforeEach(() => {
  world = startWebhookWorld();
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: async (request) => {
      const url = request.url.replace(/^http:\/\/[^/]+/, ORIGIN);
      const body = request.method === 'POST' ? await request.text() : undefined;
      const { method, headers } = request;
      const response = await world.app.handle(
        new Request(url, { method, headers, ...(body !== undefined && { body }) }),
      );
      return response;
    },
  });
});
afterEach(async () => {
  await server.stop(true);
  world[Symbol.dispose]();
});
const open = (javaScript = true) => browser.open({ origin: server.url.origin, javaScript });

describe('in a browser', () => {
  test(
    'a URL is checked while it is typed, programs are searched, and the secret is seen once',
    async () => {
      await using opened = await open();
      const { page, faults } = opened;
      await page.goto('/accounts/7/webhooks');
      await page.getByRole('link', { name: 'Add webhook' }).first().click();
      const url = page.getByLabel('URL');
      const told = page.locator('#url-check');
      await url.pressSequentially('http://hooks.example.com/');
      await told.getByText('The URL must start with https://.').waitFor();
      await url.fill('https://hooks.example.com/in');
      await told.getByText('resolves to public addresses').waitFor();
      expect(world.webhooks.list(7)).toEqual([]);

      await page.getByLabel('Selected programs').check();
      await page.getByLabel('Search programs').fill('gram b');
      expect(await page.getByLabel(/^Program A/).isVisible()).toBe(false);
      await page.getByText('1 found').waitFor();
      await page.getByLabel(/^Program B/).check();
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.getByRole('button', { name: 'Add webhook' }).click();
      await page.screenshot({ path: join(PICTURES, 'webhook-secret.png'), fullPage: true });
      const secret = await page.locator('#secret').textContent();
      expect(secret?.trim()).toMatch(/^whsec_[0-9a-f]{64}$/);
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(world.webhooks.list(7)).toMatchObject([{ programs: [addressOf('B')] }]);

      await page.reload();
      await page.getByText('no second webhook was created').waitFor();
      expect(await page.content()).not.toContain('whsec_');
      expect(world.webhooks.list(7)).toHaveLength(1);
      expect(faults).toEqual([]);
    },
    LONG_MS,
  );

  test(
    'a test is answered on the page it was sent from, and its delivery opens at the side',
    async () => {
      const { id } = await world.addWebhook(7, { url: 'https://hooks.example.com/in' });
      await using opened = await open();
      const { page, faults } = opened;
      await page.goto(`/accounts/7/webhooks/${id}`);
      await page.getByRole('button', { name: 'Send test' }).click();
      await page.getByText('Waiting up to 13 seconds').waitFor();
      await world.attemptDue(() => answered(200, '<b>thanks</b>'));
      await page.getByText('Test: Endpoint returned 200').waitFor();
      await page.getByText('<b>thanks</b>').waitFor();
      await page.screenshot({ path: join(PICTURES, 'webhook-test.png') });
      expect(new URL(page.url()).pathname).toBe(`/accounts/7/webhooks/${id}`);

      await page.goto('/accounts/7/deliveries');
      await page.locator('a[data-drawer]').first().click();
      const drawer = page.locator('#drawer');
      await drawer.getByText('Attempt 1 of 6').waitFor();
      await drawer.getByText('"event": "ping"').waitFor();
      expect(await accessibilityFaults(page)).toEqual([]);
      await page.screenshot({ path: join(PICTURES, 'delivery-drawer.png') });
      await drawer.getByRole('button', { name: 'Resend' }).click();
      await page.getByText('Delivery queued for another attempt.').waitFor();
      await world.attemptDue(() => answered(204));
      await page.getByText('Resend (2)').waitFor();
      expect(faults).toEqual([]);
    },
    LONG_MS,
  );

  test(
    'everything is done without JavaScript too',
    async () => {
      await using opened = await open(false);
      const { page, faults } = opened;
      await page.goto(`/accounts/7/webhooks/new?program=${addressOf('B')}`);
      await page.getByLabel('URL').fill('https://hooks.example.com/in');
      await page.getByRole('button', { name: 'Add webhook' }).click();
      await page.getByRole('link', { name: 'I have saved it' }).click();
      await page.getByRole('button', { name: 'Send test' }).click();
      await page.getByText('Test event queued.').waitFor();
      expect(new URL(page.url()).pathname).toStartWith('/accounts/7/deliveries/');
      await page.goBack();
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('Webhook paused.').waitFor();
      await page.getByLabel('Type hooks.example.com to confirm').fill('hooks.example.com');
      await page.getByRole('button', { name: 'Delete webhook' }).click();
      await page.getByText('Webhook deleted.').waitFor();
      expect(world.webhooks.list(7)).toEqual([]);
      expect(faults).toEqual([]);
    },
    LONG_MS,
  );
});
