import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { ORIGIN } from './started.tsx';
import { startSeededOperatorWorld } from './operator-seed.ts';

/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');
const LONG_MS = 60_000;

let world: ReturnType<typeof startSeededOperatorWorld>;
let browser: StartedBrowser;
let server: Bun.Server<undefined>;

beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  world = startSeededOperatorWorld();
  browser = await startBrowser();
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: (request) => {
      const asked = new Request(request.url.replace(/^http:\/\/[^/]+/, ORIGIN), request);
      asked.headers.set('cookie', world.operator.cookie);
      return world.app.handle(asked);
    },
  });
}, LONG_MS);
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await server.stop(true);
  world[Symbol.dispose]();
});

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
      await using opened = await browser.open({ origin: server.url.origin, theme, width, height: 900 });
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
