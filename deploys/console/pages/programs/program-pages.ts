import { forAccount, type Route } from '../../routing/route.ts';
import type { WebhookPageDeps } from '../webhook-page-deps.ts';
import { programListPage } from './list.tsx';
import { programPage } from './one.tsx';

/** Every page on the programs that are watched. */
export function programPages(deps: WebhookPageDeps): readonly Route[] {
  return [
    forAccount('/programs', { get: programListPage(deps) }),
    forAccount('/programs/:programId', { get: programPage(deps) }),
  ];
}
