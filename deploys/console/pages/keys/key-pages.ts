import type { PageDeps } from '../../page-services.ts';
import { forAccount, type Route } from '../../router.ts';
import { createRenameAction, createRevokeAction, createRotateAction } from './change.ts';
import { createNewKeyPage } from './create.tsx';
import { createKeyListPage } from './list.tsx';
import { createKeyPage } from './one.tsx';

/** Every page on the keys of an account. */
export function keyPages(deps: Pick<PageDeps, 'keys' | 'usage' | 'reveals' | 'random'>): readonly Route[] {
  const one = '/keys/:keyId';
  return [
    forAccount('/keys', { get: createKeyListPage(deps) }),
    forAccount('/keys/new', createNewKeyPage(deps)),
    forAccount(one, { get: createKeyPage(deps) }),
    forAccount(`${one}/rename`, { post: createRenameAction(deps) }),
    forAccount(`${one}/rotate`, { post: createRotateAction(deps) }),
    forAccount(`${one}/revoke`, { post: createRevokeAction(deps) }),
  ];
}
