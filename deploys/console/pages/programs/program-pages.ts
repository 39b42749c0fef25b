import { forAccount, type Route } from '../../router.ts';
import type { WebhookPageDeps } from '../../page-services.ts';
import { programListPage } from './list.tsx';
import { programPage } from './one.tsx';

/** Every page on the programs that are watched. */
export function programPages(deps: WebhookPageDeps): readonly Route[] {
  return [
    forAccount('/programs', { get: programListPage(deps) }),
    forAccount('/programs/:programId', { get: programPage(deps) }),
  ];
}
