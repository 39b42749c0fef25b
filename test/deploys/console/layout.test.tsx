/** @jsxImportSource preact */
import { describe, expect, test } from 'bun:test';
import { accountPage, openPage, type PageRoute } from '../../../deploys/console/page.ts';
import { PAGES } from '../../../deploys/console/pages.ts';
import type { Viewer } from '../../../deploys/auth/auth-service.ts';
import { CUSTOMER, OPERATOR, startConsole } from './started.tsx';

const show = () => ({ title: 'Keys', body: <p>the body</p> });
const ROUTES: readonly PageRoute[] = [
  ...PAGES.filter(({ entry }) => entry).map((page) => ({ ...page, find: () => 'it', show })),
  accountPage({ path: '/accounts/:accountId/keys/:id', show }),
  openPage({ path: '/login', show }),
];

/** The texts, or an attribute, of what a selector finds in a page. */
async function find(viewer: Viewer | undefined, path: string, selector: string, attribute?: string) {
  const found: string[] = [];
  const { ask } = startConsole(viewer, ROUTES);
  const html = await (await ask(path)).text();
  new HTMLRewriter()
    .on(selector, {
      element: (element) => void found.push(attribute ? (element.getAttribute(attribute) ?? '') : ''),
      text: ({ text }) => {
        if (!attribute) found[found.length - 1] += text;
      },
    })
    .transform(html);
  return found;
}

describe('the navigation', () => {
  const CUSTOMER_PAGES = 'Overview,Usage,API keys,Programs,Webhooks,Deliveries,Quick start'.split(',');
  const OPERATOR_PAGES = 'Accounts,Backends,Traffic,Queue,Audit log,Health'.split(',');

  test.each([
    [CUSTOMER, '/accounts/7/keys', CUSTOMER_PAGES],
    [OPERATOR, '/operator/queue', OPERATOR_PAGES],
    [OPERATOR, '/accounts/8/keys', [...OPERATOR_PAGES, ...CUSTOMER_PAGES]],
    [CUSTOMER, '/login', CUSTOMER_PAGES],
    [undefined, '/login', []],
  ] as const)('of %p at %s has %p', async (viewer, path, pages) => {
    expect(await find(viewer, path, '.navigation a')).toEqual([...pages]);
  });

  test('of an operator leads to the account that is looked at', async () => {
    const hrefs = await find(OPERATOR, '/accounts/8/keys', '.navigation a', 'href');
    expect(hrefs).toContain('/accounts/8/usage');
    expect(await find(OPERATOR, '/accounts/8/keys', '.navigation h2')).toEqual(['Service', 'other']);
  });

  test.each(['/accounts/7/keys', '/accounts/7/keys/3'])('marks where %s is', async (path) => {
    expect(await find(CUSTOMER, path, '.navigation a[aria-current=page]')).toEqual(['API keys']);
  });
});

describe('the document', () => {
  test('has a way out for those who are signed in alone', async () => {
    expect(await find(CUSTOMER, '/login', 'form[action="/logout"]', 'method')).toEqual(['post']);
    expect(await find(undefined, '/login', 'form[action="/logout"]', 'method')).toEqual([]);
  });
});
