import { chromium, type BrowserContext, type Page } from 'playwright-core';
import { BROWSERS } from '../../cli/commands/verify.ts';
import { temporaryFolder } from './gateway.ts';

/** One page with cookies of its own, and all that went wrong on it. */
export type WatchedPage = Readonly<{
  page: Page;
  context: BrowserContext;
  /** Console errors, exceptions and requests to other origins so far, a line each. A test expects it to be empty. */
  faults: readonly string[];
}>;

export type PageOptions = Readonly<{
  /** The console's address: a request to another origin is a fault, and is not made. */
  origin: string;
  /** `false`: as somebody without scripts. */
  javaScript?: boolean;
  theme?: 'light' | 'dark';
  /** In CSS pixels. */
  width?: number;
  height?: number;
  /** Statuses of a page itself that the test provokes: Chromium writes a console error for each. */
  expectedStatuses?: readonly number[];
}>;

/** No sandbox, because tests run as root too; nothing that talks to its maker. */
const ARGUMENTS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** What any one step in a page may take. */
const STEP_MS = 20_000;

/**
 * One Chromium in a folder of its own, for all tests of a file; each asks for pages, which share nothing. It throws
 * where no Chromium is installed: verify installs it.
 */
export async function startBrowser() {
  const executablePath = chromiumPath();
  const folder = temporaryFolder();
  // A persistent start is the one that takes a folder: what Chromium writes goes with it.
  const main = await chromium.launchPersistentContext(folder.path, {
    executablePath,
    headless: true,
    args: ARGUMENTS,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder.path },
  });
  const browser = main.browser();
  if (browser === null) throw new Error('Chromium was started without a browser');

  /** A page of somebody who was never here: no cookies, no cache. */
  async function open(options: PageOptions): Promise<WatchedPage & AsyncDisposable> {
    if (browser === null) throw new Error('unreachable: looked at above');
    const context = await browser.newContext({
      baseURL: options.origin,
      javaScriptEnabled: options.javaScript ?? true,
      colorScheme: options.theme ?? 'light',
      viewport: { width: options.width ?? 1_280, height: options.height ?? 800 },
      reducedMotion: 'reduce',
    });
    context.setDefaultTimeout(STEP_MS);
    const faults: string[] = [];
    const page = await context.newPage();
    await watch(page, options, faults);
    return { page, context, faults, [Symbol.asyncDispose]: () => context.close() };
  }

  return {
    open,
    async [Symbol.asyncDispose]() {
      await main.close();
      folder[Symbol.dispose]();
    },
  };
}

export type StartedBrowser = Awaited<ReturnType<typeof startBrowser>>;

async function watch(page: Page, options: PageOptions, faults: string[]) {
  const { origin } = new URL(options.origin);
  const expected = options.expectedStatuses ?? [];
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() !== 'error') return;
    const status = /responded with a status of (\d+)/.exec(message.text())?.[1];
    if (status !== undefined && expected.includes(Number(status))) return;
    faults.push(`console: ${message.text()}`);
  });
  await page.route(
    (url) => url.origin !== origin,
    async (route) => {
      const url = new URL(route.request().url());
      if (url.protocol === 'data:' || url.protocol === 'blob:') return route.continue();
      faults.push(`request to another origin: ${url.href}`);
      return route.abort();
    },
  );
}

function chromiumPath(): string {
  const found = BROWSERS.map((name) => Bun.which(name)).find((path) => path !== null);
  if (found === undefined || found === null)
    throw new Error('no Chromium here; bun run verify installs it (apt-get install chromium)');
  return found;
}
