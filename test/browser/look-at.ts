import { mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { accessibilityFaults } from '../started/accessibility.ts';

/** Where the pictures go, to be looked at. */
const PICTURES = join(tmpdir(), 'sluice-console');

/** A window of a desk, in which the pages of these tests are. */
export const DESK = { width: 1_280, height: 800 } as const;
const PHONE = { width: 360, height: 800 } as const;

/** How a page is looked at: both themes, and the narrowest window that is promised. */
const VIEWS = [
  ['light', DESK],
  ['dark', DESK],
  ['dark', PHONE],
] as const;

/** Resolves when the page is drawn in its new size and colours, its charts too. */
const SETTLED = `new Promise((resolve) => {
  let frames = 4;
  const next = () => (frames-- > 0 ? requestAnimationFrame(next) : resolve());
  next();
})`;

/** How many texts of the head of a page reach out of the places that they stand in. */
const TEXTS_OUTSIDE =
  "[...document.querySelectorAll('.stats > div')].filter((each) => each.scrollWidth > each.clientWidth).length";

/**
 * Takes pictures of the page as it stands, under `name`, and gives what is wrong with it, a line each: what axe-core
 * finds, and what stands out of the window. The window is the desk's again afterwards.
 */
export async function lookAt(page: Page, name: string): Promise<readonly string[]> {
  mkdirSync(PICTURES, { recursive: true });
  const faults: string[] = [];
  for (const [theme, size] of VIEWS) {
    await page.emulateMedia({ colorScheme: theme });
    await page.setViewportSize(size);
    await page.evaluate(SETTLED);
    const view = `${theme}-${size.width}`;
    await page.screenshot({ path: join(PICTURES, `whole-${name}-${view}.png`), fullPage: true });
    for (const fault of await accessibilityFaults(page)) faults.push(`${name}, ${view}: ${fault}`);
    const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
    const outside = Number(await page.evaluate(TEXTS_OUTSIDE));
    if (outside > 0) faults.push(`${name}, ${view}: ${outside} numbers reach into their neighbours`);
    if (width > size.width) faults.push(`${name}, ${view}: ${width} pixels wide`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(DESK);
  return faults;
}
