import { expect, test } from 'bun:test';
import type { PageServices } from '../../deploys/console/page-services.ts';
import { routesOf } from '../../deploys/console/routes.ts';
import { NOT_PAGES, PAGES } from './pages.ts';

test('every route that answers GET is a page of the list, or is named as none', () => {
  const deps = {
    origin: 'https://console.example.com',
    rpcUrl: new URL('https://rpc.example.com'),
    auth: { config: { signUp: true, oidc: {} }, providerLogin: {} },
    operator: {},
  } as unknown as PageServices; // enough for the table with all that a config can allow
  const shown = routesOf(deps).filter(({ answers }) => answers.get !== undefined);
  const paths = shown.map(({ path }) => path);
  expect(paths.length).toBeGreaterThan(30);
  expect([...Object.keys(PAGES), ...Object.keys(NOT_PAGES)].toSorted()).toEqual(paths.toSorted());
});
