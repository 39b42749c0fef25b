import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import type { Page } from 'playwright-core';
import { SecretBox } from '../../../deploys/console/components/code.tsx';
import { Time } from '../../../deploys/console/components/format.tsx';
import { PostForm, TextField } from '../../../deploys/console/components/forms.tsx';
import { Link } from '../../../deploys/console/components/links.tsx';
import { Live } from '../../../deploys/console/components/panels.tsx';
import { openPage, type PageRoute } from '../../../deploys/console/page.ts';
import { startPage, themePage } from '../../../deploys/console/pages/login/login.tsx';
import { addressOf } from '../../fakes/chain.ts';
import { CUSTOMER, serveInBrowser, startConsole } from './started.tsx';
import { startWorld } from './world.ts';
import { type PageOptions, startBrowser, type StartedBrowser } from '../../started/browser.ts';

/** How often the live page was rendered. */
let rendered = 0;

const PAGES: readonly PageRoute[] = [
  startPage,
  themePage,
  openPage({
    path: '/live',
    show: () => ({
      title: 'Live',
      body: (
        <>
          <Live id="part" everySeconds={0.05}>
            <p id="count">{(rendered += 1)}</p>
            <a href="/plain">inside</a>
            <details id="more">
              <summary>More</summary>
              <p>of it</p>
            </details>
          </Live>
          <button type="button" id="outside">
            outside
          </button>
        </>
      ),
    }),
  }),
  openPage({
    path: '/plain',
    show: (_, { nowMs }) => ({
      title: 'Plain',
      body: (
        <>
          <Link to="/detail" isDrawer>
            Open
          </Link>
          <Link to="/absent" isDrawer>
            Absent
          </Link>
          <SecretBox name="API key" secret="sluice_abc" />
          <Time atMs={nowMs} />
          <PostForm action="/form" button="Send" />
        </>
      ),
    }),
  }),
  openPage({
    path: '/detail',
    show: () => ({
      title: 'Detail',
      crumbs: [['Plain', '/plain']],
      body: (
        <p>
          in detail{' '}
          <Link to="/detail/next" isDrawer>
            Next
          </Link>
        </p>
      ),
    }),
  }),
  openPage({ path: '/detail/next', show: () => ({ title: 'Next one', body: <p>more</p> }) }),
  openPage({
    path: '/form',
    show: () => ({
      title: 'Form',
      body: (
        <PostForm action="/form" button="Send">
          <TextField name="url" label="URL" />
        </PostForm>
      ),
    }),
    forms: { '': () => ({ errors: { url: 'It is wrong.' } }) },
  }),
];

// A browser on a busy machine takes its time.
setDefaultTimeout(60_000);

let browser: StartedBrowser;
let served: ReturnType<typeof serveInBrowser>;
beforeAll(async () => {
  browser = await startBrowser();
  served = serveInBrowser(startConsole(CUSTOMER, PAGES).app.handle);
});
afterAll(async () => {
  await browser[Symbol.asyncDispose]();
  await served[Symbol.asyncDispose]();
});
/** What any wait may take. */
const WAIT_MS = 10_000;
const COUNT = "Number(document.getElementById('count').textContent)";

/** Waits until the live part has been made so often. Asked from outside: the page's policy evaluates no text. */
async function countAbove(page: Page, least: number): Promise<void> {
  const deadline = performance.now() + WAIT_MS;
  while (Number(await page.evaluate(COUNT)) <= least) {
    if (performance.now() > deadline) throw new Error(`the part was made no more than ${least} times`);
    await page.evaluate('new Promise(requestAnimationFrame)');
  }
}
const open = (options: Partial<PageOptions> = {}) => browser.open({ origin: served.origin, ...options });

describe('a live part', () => {
  test('brings itself up to date, keeps what was unfolded, and leaves the focus alone', async () => {
    await using opened = await open();
    const { page, faults } = opened;
    await page.goto('/live');
    await page.click('summary');
    await page.focus('#outside');
    const before = Number(await page.evaluate(COUNT));
    await countAbove(page, before + 2);
    expect(await page.evaluate("document.getElementById('more').open")).toBe(true);
    expect(await page.evaluate('document.activeElement.id')).toBe('outside');
    expect(faults).toEqual([]);
  });

  test.each([
    ['the focus is inside', "document.querySelector('#part a').focus()", 'document.activeElement.blur()'],
    [
      'a text inside is selected',
      "getSelection().selectAllChildren(document.getElementById('part'))",
      'getSelection().removeAllRanges()',
    ],
    [
      'the page is hidden',
      "Object.defineProperty(document, 'hidden', { value: true, configurable: true })",
      'delete document.hidden',
    ],
  ])('waits while %s, and goes on after it', async (_, begin, end) => {
    await using opened = await open();
    const { page } = opened;
    await page.goto('/live');
    await page.evaluate(`(${begin}, undefined)`);
    const before = rendered;
    // Twenty turns of the part's own clock, heard before each request would go out.
    await page.evaluate(
      "new Promise((done) => { let turns = 0; document.body.addEventListener('htmx:beforeRequest', () => { if (++turns === 20) done() }) })",
    );
    expect(rendered).toBeLessThanOrEqual(before + 1); // one may have been under way
    const waited = Number(await page.evaluate(COUNT));
    await page.evaluate(`(${end}, undefined)`);
    await countAbove(page, waited + 2);
  });
});

describe('the drawer', () => {
  test('shows a page at the side, and gives the focus back', async () => {
    await using opened = await open();
    const { page, faults } = opened;
    await page.goto('/plain');
    await page.focus('text=Open');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#drawer[open]');
    expect(await page.textContent('#drawer-body')).toBe('Detailin detail Next');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
    await page.click('#drawer >> text=Next');
    await page.waitForSelector('#drawer h1:text-is("Next one")');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#drawer:not([open])', { state: 'attached' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Open');
    expect(new URL(page.url()).pathname).toBe('/plain');
    expect(faults).toEqual([]);
  });

  test('gives way to the full page when there is none to show', async () => {
    await using opened = await open({ expectedStatuses: [404] });
    await opened.page.goto('/plain');
    await opened.page.click('text=Absent');
    await opened.page.waitForURL('**/absent');
  });
});

test('a secret is copied whole', async () => {
  await using opened = await open();
  const { page, context } = opened;
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.goto('/plain');
  await page.click('[data-copy]');
  await page.waitForSelector('[data-copied]');
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe('sluice_abc');
});

test('a time is in UTC, with the time of the viewer in its tooltip', async () => {
  await using opened = await open();
  await opened.page.goto('/plain');
  const time = opened.page.locator('main time');
  expect(await time.textContent()).toBe('2026-11-21 22:05:09UTC');
  expect(await time.getAttribute('title')).toMatch(/2026/);
});

test('a message and the ticket of a secret leave the address', async () => {
  await using opened = await open();
  await opened.page.goto('/plain?done=saved&shown=abc&q=1');
  expect(await opened.page.textContent('#flash')).toBe('Saved.');
  expect(opened.page.url()).toBe(`${served.origin}/plain?q=1`);
});

test.each([true, false])('the colours are chosen with scripts: %p', async (javaScript) => {
  await using opened = await open({ javaScript });
  const { page } = opened;
  const ground = async (theme: string) => {
    await page.waitForSelector(`html${theme}`);
    await page.waitForLoadState();
    return page.evaluate('getComputedStyle(document.body).backgroundColor');
  };
  await page.goto('/plain?q=1');
  expect(await ground(':not([data-theme])')).toBe('rgb(246, 247, 248)');
  await page.click('text=Dark theme');
  expect(await ground('[data-theme=dark]')).toBe('rgb(14, 17, 19)');
  expect(page.url()).toBe(`${served.origin}/plain?q=1`);
  await page.click('text=System theme');
  expect(await ground(':not([data-theme])')).toBe('rgb(246, 247, 248)');
});

test('what was wrong with a form takes the focus, and leads to its field', async () => {
  await using opened = await open({ expectedStatuses: [422] });
  const { page } = opened;
  await page.goto('/plain');
  await page.click('text=Send');
  await page.waitForSelector('.error-summary:focus');
  await page.click('.error-summary a');
  expect(await page.evaluate('document.activeElement.id')).toBe('url');
  expect(await page.getAttribute('#url', 'aria-describedby')).toBe('url-error');
});

test('without scripts no part that needs them is shown', async () => {
  await using opened = await open({ javaScript: false });
  await opened.page.goto('/plain');
  expect(await opened.page.locator('[data-copy]').isVisible()).toBe(false);
  expect(opened.faults).toEqual([]);
});

/** The name of what has the focus, and whether one sees by an outline within the window that it has it. */
const FOCUSED = `(() => {
  const at = document.activeElement;
  const name = at.getAttribute('aria-label') ?? at.labels?.[0]?.textContent ?? at.textContent;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const { top, bottom, width } = at.getBoundingClientRect();
  const isOutlined = outlineStyle !== 'none' && parseFloat(outlineWidth) > 0;
  return { name: name.trim(), isSeen: isOutlined && width > 0 && bottom > 0 && top < innerHeight };
})()`;

test('without scripts a webhook is added, tested, paused and deleted by the keyboard alone, whose focus is always seen', async () => {
  using world = startWorld();
  const { cookie } = world.customer();
  await using pages = serveInBrowser((request) => {
    request.headers.set('cookie', cookie);
    return world.app.handle(request);
  });
  await using opened = await browser.open({ origin: pages.origin, javaScript: false });
  const { page, faults } = opened;
  const stops: string[] = [];
  async function tabTo(wanted: string): Promise<void> {
    for (let name = ''; !name.startsWith(wanted); stops.push(name)) {
      if (stops.length > 200) throw new Error(`no stop is called ${wanted}: ${stops.join(' | ')}`);
      await page.keyboard.press('Tab');
      const look = () => page.evaluate<{ name: string; isSeen: boolean }>(FOCUSED);
      let focused = await look();
      // What the focus changes may not be drawn yet.
      for (let looks = 0; looks < 100 && !focused.isSeen; looks++) focused = await look();
      ({ name } = focused);
      expect(focused).toEqual({ name, isSeen: true });
    }
  }
  /** Presses Enter on a link or button, and waits for a text of the page that it leads to. */
  async function follow(wanted: string, text: string): Promise<void> {
    await tabTo(wanted);
    await page.keyboard.press('Enter');
    await page.locator('main').getByText(text).first().waitFor();
  }
  await page.goto(`/accounts/1/webhooks/new?program=${addressOf('B')}`);
  await follow('Skip to content', 'Add webhook');
  await tabTo('URL');
  await page.keyboard.type('https://hooks.example.com/in');
  await follow('Add webhook', 'I have saved it');
  await follow('I have saved it', 'Send test');
  const webhook = page.url();
  await follow('Send test', 'Test event queued.');
  expect(new URL(page.url()).pathname).toStartWith('/accounts/1/deliveries/');
  await page.goto(webhook);
  await follow('Pause', 'Webhook paused.');
  await tabTo('Type hooks.example.com to confirm');
  await page.keyboard.type('hooks.example.com');
  await follow('Delete webhook', 'Webhook deleted.');
  expect(world.webhooks.list(1)).toEqual([]);
  expect(faults).toEqual([]);
});
