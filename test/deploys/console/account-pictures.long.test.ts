import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { startSeededAccount } from './account-seed.ts';
import { PICTURES, startPictured } from './pictured.ts';

const LONG_MS = 60_000;

let world: ReturnType<typeof startSeededAccount>;
let pictured: Awaited<ReturnType<typeof startPictured>>;

beforeAll(async () => {
  world = startSeededAccount();
  pictured = await startPictured(world);
}, LONG_MS);
afterAll(() => pictured[Symbol.asyncDispose]());

const PAGES: Readonly<Record<string, () => string>> = {
  overview: () => '/overview',
  usage: () => '/usage',
  'usage-month-by-key': () => '/usage?period=30d&by=key&show=credits',
  'usage-empty': () => '/usage?method=getNothing',
  keys: () => '/keys',
  'key-new': () => '/keys/new',
  key: () => `/keys/${world.ids.indexer}`,
  'key-expiring': () => `/keys/${world.ids.rotated}`,
  'quick-start': () => '/quick-start',
  'quick-start-rust': () => '/quick-start?in=rust',
};

describe.each(['light', 'dark'] as const)('in %s colours', (theme) => {
  describe.each([360, 1_280])('%i pixels wide', (width) => {
    test.each(Object.keys(PAGES))(
      '%s is without a fault, and nothing is cut off',
      async (name) => {
        await using opened = await pictured.browser.open({
          origin: pictured.origin,
          theme,
          width,
          height: 900,
        });
        const { page, faults } = opened;
        await page.goto(`/accounts/7${PAGES[name]?.() ?? ''}`);
        if ((await page.locator('[data-chart]').count()) > 0) await page.waitForSelector('.uplot');
        await page.screenshot({ path: join(PICTURES, `${name}-${theme}-${width}.png`), fullPage: true });
        expect(await accessibilityFaults(page)).toEqual([]);
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
        expect(faults).toEqual([]);
      },
      LONG_MS,
    );
  });
});

test(
  'a new key is seen in the browser once, and copied whole',
  async () => {
    await using opened = await pictured.browser.open({ origin: pictured.origin });
    const { page, faults } = opened;
    await page.goto('/accounts/7/keys/new');
    await page.fill('#name', 'from a browser');
    await page.click('text=Create the key');
    await page.waitForSelector('#secret');
    expect(await page.textContent('#secret')).toMatch(/^sluice_/);
    expect(new URL(page.url()).search).toBe('');
    await page.screenshot({ path: join(PICTURES, 'key-made-light-1280.png'), fullPage: true });
    await page.reload();
    expect(await page.locator('#secret').count()).toBe(0);
    expect(faults).toEqual([]);
  },
  LONG_MS,
);
