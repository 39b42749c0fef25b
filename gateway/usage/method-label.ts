import type { Element } from '../request/call.ts';
import { METHODS } from '../route/methods.ts';
import type { RouteOf } from '../route/router.ts';

/** What has no method: a notification, a malformed element, a request that was not read. */
export const NO_METHOD = '-';
/** Every method that neither the table nor a backend's config knows: callers must not be able to make up labels. */
const UNKNOWN_METHOD = 'unknown';

/** Gives the name that an element is counted under: one of the table, one that a backend declares, or one of two others. */
export function createMethodLabel(routeOf: RouteOf): (element: Element) => string {
  return function methodLabel(element) {
    if (element.kind !== 'call') return NO_METHOD;
    const route = routeOf(element.method);
    if (route.kind === 'forward') return route.name;
    return METHODS.has(element.method) ? element.method : UNKNOWN_METHOD;
  };
}
