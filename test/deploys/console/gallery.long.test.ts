import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { GALLERY } from './gallery.tsx';
import { CUSTOMER, serveConsole } from './started.tsx';

const PATH = '/accounts/7/webhooks';
/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');

// A browser on a busy machine takes its time.
setDefaultTimeout(30_000);

let browser: StartedBrowser;
let served: ReturnType<typeof serveConsole>;

beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  browser = await startBrowser();
  served = serveConsole(CUSTOMER, GALLERY);
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await served[Symbol.asyncDispose]();
});

describe.each(['light', 'dark'] as const)('in %s colours', (theme) => {
  test.each([360, 1_280])(
    '%i pixels wide, every part is without a fault and nothing is cut off',
    async (width) => {
      await using opened = await browser.open({ origin: served.origin, theme, width, height: 900 });
      const { page, faults } = opened;
      await page.goto(`${PATH}?done=saved`);
      await page.locator('.chart canvas').nth(1).waitFor();
      await page.screenshot({ path: join(PICTURES, `gallery-${theme}-${width}.png`), fullPage: true });
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect(faults).toEqual([]);
    },
  );
});

test.each(['light', 'dark'] as const)(
  'in %s colours a page that is not there, and the drawer, are without a fault',
  async (theme) => {
    await using opened = await browser.open({ origin: served.origin, theme, expectedStatuses: [404] });
    const { page, faults } = opened;
    await page.goto('/accounts/8/webhooks');
    await page.screenshot({ path: join(PICTURES, `not-found-${theme}.png`) });
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.goto(PATH);
    await page.click('text=Jupiter v6');
    await page.waitForSelector('#drawer[open] .facts');
    await page.screenshot({ path: join(PICTURES, `drawer-${theme}.png`) });
    expect(await accessibilityFaults(page)).toEqual([]);
    expect(faults).toEqual([]);
  },
);
