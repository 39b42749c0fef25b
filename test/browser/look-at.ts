import type { Page } from 'playwright-core';
import { accessibilityFaults } from '../started/accessibility.ts';

const DESK = { width: 1_280, height: 800 } as const;
/** The narrowest window that is promised. */
const PHONE = { width: 360, height: 800 } as const;

/** Resolves when the page is drawn in its new size and colours, its charts too. */
const SETTLED = `new Promise((resolve) => {
  let frames = 4;
  const next = () => (frames-- > 0 ? requestAnimationFrame(next) : resolve());
  next();
})`;

/** How wide the page is, and how many texts of its head reach out of their boxes. */
const MEASURED = `({
  width: document.documentElement.scrollWidth,
  outside: [...document.querySelectorAll('.stats > div')].filter((each) => each.scrollWidth > each.clientWidth).length,
})`;

/**
 * What is wrong with the page as it stands, a line each: what axe-core finds, and what stands out of a window of a desk
 * or, in dark colours, of a phone. `pictures.long.test.ts` looks at both themes with axe-core. The window is the desk's
 * again afterwards.
 */
export async function lookAt(page: Page): Promise<readonly string[]> {
  const faults = [...(await accessibilityFaults(page))];
  for (const [colorScheme, size] of [
    ['dark', PHONE],
    ['light', DESK],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await page.evaluate(SETTLED);
    const { width, outside } = await page.evaluate<{ width: number; outside: number }>(MEASURED);
    if (outside > 0) faults.push(`${size.width}: ${outside} numbers reach into their neighbours`);
    if (width > size.width) faults.push(`${size.width}: ${width} pixels wide`);
  }
  return faults;
}
