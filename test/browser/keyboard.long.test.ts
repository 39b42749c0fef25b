import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { createNamespace } from '../deploys/delivery/namespace/network.ts';
import { type StartedBrowser, startBrowser } from '../started/browser.ts';
import { createKeyboard } from './keyboard.ts';
import { PASSWORD } from './people.ts';
import { HOOKS } from './world/place.ts';
import { type StartedWorld, startWorld } from './world/start.ts';

// A browser and whole services on a busy machine take their time.
setDefaultTimeout(120_000);

const ANN = 'ann@example.com';

const namespace = createNamespace();
afterAll(namespace[Symbol.dispose]);
const reason = namespace.reasonAgainst();
if (reason !== undefined) console.log(`The console by keyboard is not tested here: ${reason}`);

describe.skipIf(reason !== undefined)('with the keyboard alone', () => {
  let world: StartedWorld;
  let browser: StartedBrowser;
  beforeAll(async () => {
    [world, browser] = await Promise.all([startWorld(namespace), startBrowser()]);
    await world.addCustomer('Acme', ANN, PASSWORD);
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  test('a customer signs in, makes a key that works, and a webhook that is tested, and sees where the focus is', async () => {
    await using opened = await browser.open({ origin: world.origin });
    const { page } = opened;
    const unseen: string[] = [];
    const { tab, tabTo, press, fill, follow } = createKeyboard(page, unseen);
    await page.goto('/');
    expect(await tab()).toBe('Skip to content');
    await fill('Email', ANN);
    await fill('Password', PASSWORD);
    await follow('Sign in', 'Overview');

    await follow('API keys', 'API keys');
    await follow('Create key', 'Create API key');
    // The first stop leads past the navigation: what follows it is the page's own.
    await tabTo('Skip to content');
    await press('Enter');
    expect(await tab()).toBe('API keys');
    await fill('Name', 'by hand');
    await follow('Create key', 'by hand');
    const key = ((await page.textContent('#secret')) ?? '').trim();
    expect((await world.call(key, 'getSlot')).status).toBe(200);

    await follow('Webhooks', 'Webhooks');
    await follow('Add webhook', 'Add webhook');
    await fill('URL', `https://${HOOKS}/by-hand`);
    await tabTo('All 115 watched programs');
    await press('ArrowDown');
    await fill('Search programs', 'whirlpool');
    await tab();
    await press('Space');
    await follow('Add webhook', 'Webhook created');
    await follow('I have saved it', HOOKS);
    await tabTo('Send test');
    await press('Space');
    await page.getByText('Test: Endpoint returned 200').waitFor();
    expect(await page.evaluate<string>('document.activeElement.textContent')).toBe('Send test');

    await follow('Deliveries', 'Deliveries');
    const opener = /^\d{4}-/;
    await tabTo(opener);
    await press('Enter');
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('heading', { level: 1 }).waitFor();
    await press('Escape');
    await drawer.waitFor({ state: 'hidden' });
    expect(await page.evaluate<string>('document.activeElement.textContent')).toMatch(opener);
    expect(unseen).toEqual([]);
    expect(opened.faults).toEqual([]);
  });
});
