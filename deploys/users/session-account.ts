import { isSameOrigin } from '../console/same-origin.ts';
import type { Viewer, ViewerOf } from '../console/viewer.ts';

/** Whose data a request may work on by its session alone. */
export type SessionAccount =
  | { readonly kind: 'account'; readonly accountId: number; readonly viewer: Viewer }
  /** No session, one that is over, or an operator's without an account. */
  | { readonly kind: 'none' }
  /** A change that did not come from a page of the console: the session must not count. */
  | { readonly kind: 'other-origin' };

const READS = new Set(['GET', 'HEAD']);

/**
 * The account of a request's session, for an API that takes a login beside its keys. `origin` is the console's. Cookies
 * come along with requests that other sites made, so a change counts only from the console's own pages. Never rejects.
 */
export function createSessionAccount(viewerOf: ViewerOf, origin: string) {
  return async function sessionAccount(request: Request): Promise<SessionAccount> {
    const viewer = await viewerOf(request);
    if (viewer?.accountId === undefined) return { kind: 'none' };
    if (!READS.has(request.method) && !isSameOrigin(request, origin)) return { kind: 'other-origin' };
    return { kind: 'account', accountId: viewer.accountId, viewer };
  };
}
