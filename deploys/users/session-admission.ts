import type { AdmitBySession } from '../api/webhooks/admit.ts';
import { isSameOrigin } from '../console/same-origin.ts';
import type { ViewerOf } from '../console/viewer.ts';

const READS = new Set(['GET', 'HEAD']);

/**
 * Admits to an API by the session of a viewer with an account. `origin` is the console's. Cookies come along with requests
 * that other sites made, so for a change a session counts only from the console's own pages.
 */
export function createAdmitBySession(viewerOf: ViewerOf, origin: string): AdmitBySession {
  return async function admitBySession(request) {
    const viewer = await viewerOf(request);
    if (viewer?.accountId === undefined) return undefined;
    if (!READS.has(request.method) && !isSameOrigin(request, origin)) return undefined;
    const { accountId, role, userId } = viewer;
    const kind = role === 'operator' ? 'operator' : 'user';
    return { kind: 'admitted', by: { accountId, actor: { kind, userId } } };
  };
}
