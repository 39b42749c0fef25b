import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { PICTURES, startPictured } from './pictured.ts';
import { startSeededWorld } from './webhook-seed.ts';

/** How many tables must be moved sideways to be read. */
const WIDE_TABLES =
  "[...document.querySelectorAll('.table-frame')].filter((each) => each.scrollWidth > each.clientWidth).length";
const LONG_MS = 60_000;

let world: Awaited<ReturnType<typeof startSeededWorld>>;
let pictured: Awaited<ReturnType<typeof startPictured>>;

beforeAll(async () => {
  world = await startSeededWorld();
  pictured = await startPictured(world);
}, LONG_MS);
afterAll(() => pictured[Symbol.asyncDispose]());

const delivery = (state: string) =>
  world.queue.store
    .query<{ id: string }, [string]>('SELECT id FROM deliveries WHERE state = ? ORDER BY rowid DESC')
    .get(state)?.id ?? '';

const PAGES: Readonly<Record<string, () => string>> = {
  programs: () => '/programs',
  program: () => '/programs/675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8',
  webhooks: () => '/webhooks',
  'webhook-new': () => '/webhooks/new?program=675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8',
  'webhook-healthy': () => `/webhooks/${world.ids.healthy}`,
  'webhook-failing': () => `/webhooks/${world.ids.failing}`,
  'webhook-rotating': () => `/webhooks/${world.ids.rotating}`,
  'webhook-resend': () => `/webhooks/${world.ids.failing}/resend-failed?since=7d`,
  deliveries: () => '/deliveries',
  'delivery-delivered': () => `/deliveries/${delivery('delivered')}`,
  'delivery-retrying': () => `/deliveries/${delivery('retry_scheduled')}`,
  'delivery-failed': () => `/deliveries/${delivery('failed')}`,
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
      await page.goto(`/accounts/7${PAGES[name]?.() ?? ''}`);
      await page.screenshot({ path: join(PICTURES, `${name}-${theme}-${width}.png`), fullPage: true });
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect(await page.evaluate(WIDE_TABLES)).toBe(0);
      expect(faults).toEqual([]);
    },
    LONG_MS,
  );
});
