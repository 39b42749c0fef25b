import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from 'bun:test';
import { addressOf } from '../../fakes/chain.ts';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { serveInBrowser } from './started.tsx';
import { startWebhookWorld, type WebhookWorld } from './webhook-world.ts';

// A browser on a busy machine takes its time.
setDefaultTimeout(60_000);

let browser: StartedBrowser;
let world: WebhookWorld;
let served: ReturnType<typeof serveInBrowser>;

beforeAll(async () => void (browser = await startBrowser()));
afterAll(() => browser[Symbol.asyncDispose]());
beforeEach(() => {
  world = startWebhookWorld();
  served = serveInBrowser(world.app.handle);
});
afterEach(async () => {
  await served[Symbol.asyncDispose]();
  world[Symbol.dispose]();
});
const open = (javaScript = true) => browser.open({ origin: served.origin, javaScript });

describe('in a browser', () => {
  test('a URL is checked while it is typed, programs are searched, and the secret is seen once', async () => {
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
    const secret = await page.locator('#secret').textContent();
    expect(secret?.trim()).toMatch(/^whsec_[0-9a-f]{64}$/);
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(world.webhooks.list(7)).toMatchObject([{ programs: [addressOf('B')] }]);

    await page.reload();
    await page.getByText('no second webhook was created').waitFor();
    expect(await page.content()).not.toContain('whsec_');
    expect(world.webhooks.list(7)).toHaveLength(1);
    expect(faults).toEqual([]);
  });

  test('everything is done without JavaScript too', async () => {
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
  });
});
