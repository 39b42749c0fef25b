import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type StartedBrowser, startBrowser } from '../../started/browser.ts';
import { accessibilityFaults } from '../../started/accessibility.ts';
import { GALLERY } from './gallery.tsx';
import { CUSTOMER, ORIGIN, startConsole } from './started.tsx';

const PATH = '/accounts/7/webhooks';
/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');

let browser: StartedBrowser;
let server: Bun.Server<undefined>;

beforeAll(async () => {
  mkdirSync(PICTURES, { recursive: true });
  browser = await startBrowser();
  const { app } = startConsole(CUSTOMER, GALLERY);
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    reusePort: false,
    fetch: (request) => app.handle(new Request(request.url.replace(/^http:\/\/[^/]+/, ORIGIN), request)),
  });
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await server.stop(true);
});

describe.each(['light', 'dark'] as const)('in %s colours', (theme) => {
  test.each([360, 1_280])(
    '%i pixels wide, every part is without a fault and nothing is cut off',
    async (width) => {
      await using opened = await browser.open({ origin: server.url.origin, theme, width, height: 900 });
      const { page, faults } = opened;
      await page.goto(`${PATH}?done=saved`);
      await page.waitForFunction("document.querySelectorAll('.chart canvas').length === 2");
      await page.screenshot({ path: join(PICTURES, `gallery-${theme}-${width}.png`), fullPage: true });
      expect(await accessibilityFaults(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect(faults).toEqual([]);
    },
  );
});
