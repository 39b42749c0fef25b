import type { Page } from 'playwright-core';

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

/** Somebody without a mouse on a page; every stop of theirs that cannot be seen is a fault. */
export function createKeyboard(page: Page, faults: string[]) {
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
