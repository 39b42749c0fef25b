import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { PICTURES, startPictured } from './pictured.ts';
import { startSeededOperatorWorld } from './operator-seed.ts';

const LONG_MS = 60_000;

let world: ReturnType<typeof startSeededOperatorWorld>;
let pictured: Awaited<ReturnType<typeof startPictured>>;

beforeAll(async () => {
  world = startSeededOperatorWorld();
  pictured = await startPictured(world, world.operator.cookie);
}, LONG_MS);
afterAll(() => pictured[Symbol.asyncDispose]());

const PAGES: Readonly<Record<string, () => string>> = {
  accounts: () => '/accounts',
  'account-new': () => '/accounts/new',
  account: () => `/accounts/${world.ids[0]}`,
  'account-trial': () => `/accounts/${world.ids[3]}`,
  'account-suspended': () => `/accounts/${world.ids[4]}`,
  'account-suspend': () => `/accounts/${world.ids[0]}/suspend`,
  user: () => `/users/${world.customer.id}`,
  'user-second-factor': () => `/users/${world.customer.id}/second-factor`,
  backends: () => '/backends',
  traffic: () => '/traffic?hours=24',
  queue: () => '/queue',
  audit: () => '/audit',
  'audit-unknown': () => '/audit?account=nobody',
  health: () => '/health',
};

describe.each([
  ['light', 1_280],
  ['dark', 360],
] as const)('in %s colours, %i pixels wide', (theme, width) => {
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
      await page.goto(`/operator${PAGES[name]?.() ?? ''}`);
      await page.screenshot({
        path: join(PICTURES, `operator-${name}-${theme}-${width}.png`),
        fullPage: true,
      });
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect(faults).toEqual([]);
    },
    LONG_MS,
  );
});
