import type { ViewerOf } from '../console/viewer.ts';
import type { People } from './people.ts';

/** Finds the viewer of a request; an operator who must set up a second factor first is nobody until then. */
export function createViewerOf({ sessionOf, mustEnrol }: Pick<People, 'sessionOf' | 'mustEnrol'>): ViewerOf {
  return async function viewerOf(request) {
    const session = sessionOf(request);
    if (session === undefined || mustEnrol(session)) return undefined;
    const { userId, email, role, accountId } = session;
    return { userId, email, role, accountId };
  };
}
