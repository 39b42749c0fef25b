import type { PageDeps } from '../page-services.ts';
import { forAccount, type Route } from '../router.ts';
import { keyPages } from './keys/key-pages.ts';
import { createOverviewPage } from './overview/overview-page.tsx';
import { createQuickStartPage } from './quick-start/quick-start-page.tsx';
import { createUsageCsv } from './usage/csv.ts';
import { createUsagePage } from './usage/usage-page.tsx';

/** What the pages of `accountPages` stand on. */
export type AccountPageDeps = Pick<
  PageDeps,
  | 'origin'
  | 'accounts'
  | 'keys'
  | 'plans'
  | 'usage'
  | 'turns'
  | 'readUsageView'
  | 'readUsed'
  | 'webhooksOf'
  | 'minutes'
  | 'rpcUrl'
  | 'reveals'
  | 'clock'
  | 'random'
>;

/** Every page on an account's calls and keys. */
export function accountPages(deps: AccountPageDeps): readonly Route[] {
  return [
    forAccount('/overview', { get: createOverviewPage(deps) }),
    forAccount('/usage', { get: createUsagePage(deps) }),
    forAccount('/usage.csv', { get: createUsageCsv(deps) }),
    ...keyPages(deps),
    forAccount('/quick-start', { get: createQuickStartPage(deps) }),
  ];
}
