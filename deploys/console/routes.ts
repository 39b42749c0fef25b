import { personPages } from '../users/person-pages.ts';
import { forAccount, forAnyone, type Route } from './routing/route.ts';
import { keyPages } from './pages/keys/key-pages.ts';
import { createOverviewPage } from './pages/overview/overview-page.tsx';
import { createQuickStartPage } from './pages/quick-start/quick-start-page.tsx';
import { createUsageCsv } from './pages/usage/csv.ts';
import { createUsagePage } from './pages/usage/usage-page.tsx';
import type { PageDeps } from './page-deps.ts';
import { createStartPage } from './start-page.ts';
import { createThemeAction } from './theme-action.ts';

/** Every page of the console, one row each. A page's own file says what it shows. */
export function routesOf(deps: PageDeps): readonly Route[] {
  return [
    forAnyone('/', { get: createStartPage() }),
    forAnyone('/theme', { post: createThemeAction(deps.origin) }),
    forAccount('/overview', { get: createOverviewPage(deps) }),
    forAccount('/usage', { get: createUsagePage(deps) }),
    forAccount('/usage.csv', { get: createUsageCsv(deps) }),
    ...keyPages(deps),
    forAccount('/quick-start', { get: createQuickStartPage(deps) }),
    // These look at the session by themselves: who has half a session is let into the second step alone.
    ...personPages(deps).map(({ path, ...answers }) => forAnyone(path, answers)),
  ];
}
