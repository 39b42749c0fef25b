import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { createNamespace } from '../deploys/delivery/namespace/network.ts';
import { type StartedBrowser, startBrowser } from '../started/browser.ts';
import { PASSWORD } from './people.ts';
import { HOOKS } from './world/place.ts';
import { type StartedWorld, startWorld } from './world/start.ts';

// A browser and whole services on a busy machine take their time.
setDefaultTimeout(120_000);

/** What has the focus: how it is called, and whether one sees that it has it. */
type Focused = Readonly<{ name: string; isSeen: boolean }>;

/** Stops before a page is given up. */
const STOPS_MAX = 80;

/**
 * The name as it is read out, by the ways in which these pages give names. The focus is seen by an outline within the
 * window; the fields of a choice that are drawn by others carry theirs too.
 */
const FOCUSED = `(() => {
  const at = document.activeElement;
  // Behind the last stop the focus is the browser's own, before it begins anew.
  if (at === document.body) return { name: '', isSeen: true };
  const label = at.labels?.[0];
  const name = at.getAttribute('aria-label') ?? label?.textContent ?? at.textContent ?? '';
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const { top, bottom, width, height } = at.getBoundingClientRect();
  const isInWindow = width > 0 && height > 0 && bottom > 0 && top < innerHeight;
  const isSeen = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0 && isInWindow;
  return { name: name.replace(/\\s+/g, ' ').trim(), isSeen };
})()`;

/** Resolves when what the focus changes is drawn. */
const DRAWN = 'new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))';

/** Drives a page without a mouse; every stop whose focus cannot be seen is a fault. */
function createKeyboard(page: Page, faults: string[]) {
  const focused = () => page.evaluate<Focused>(FOCUSED);

  /** Goes on by one stop. */
  async function tab(): Promise<string> {
    await page.keyboard.press('Tab');
    await page.evaluate(DRAWN);
    const { name, isSeen } = await focused();
    if (!isSeen) faults.push(`the focus is not seen on "${name}" of ${new URL(page.url()).pathname}`);
    return name;
  }

  /** Goes on to the first stop that begins so, or fits, from where the focus is. */
  async function tabTo(wanted: string | RegExp): Promise<void> {
    const passed: string[] = [];
    while (passed.length < STOPS_MAX) {
      const name = await tab();
      if (typeof wanted === 'string' ? name.startsWith(wanted) : wanted.test(name)) return;
      passed.push(name);
    }
    throw new Error(`no stop is called ${String(wanted)}; there are: ${passed.join(' | ')}`);
  }

  return {
    tab,
    tabTo,
    press: (key: 'Enter' | 'Space' | 'Escape' | 'ArrowDown') => page.keyboard.press(key),
    /** Goes to a field and types into it. */
    async fill(label: string, text: string): Promise<void> {
      await tabTo(label);
      await page.keyboard.type(text);
    },
    /** Goes to a link or button, presses Enter there, and waits for the page that it leads to. */
    async follow(name: string, heading: string): Promise<void> {
      await tabTo(name);
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    },
  };
}

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
