import type { Call, Element } from '../request/call.ts';
import type { Route, RouteOf } from '../route/router.ts';
import { INVALID_REQUEST, METHOD_NOT_FOUND, rpcError } from './rpc-error.ts';

/** What is to be done for one element. */
export type Work =
  | { readonly kind: 'forward'; readonly call: Call; readonly route: Extract<Route, { kind: 'forward' }> }
  /** The gateway answers it itself. */
  | { readonly kind: 'answered'; readonly bytes: Uint8Array<ArrayBuffer> }
  /** A notification: nothing is sent and nothing is answered. */
  | { readonly kind: 'silent' };

const SILENT: Work = { kind: 'silent' };

/** Decides, from the method alone, who answers an element. */
export function workFor(element: Element, routeOf: RouteOf): Work {
  if (element.kind === 'notification') return SILENT;
  if (element.kind === 'invalid') {
    return { kind: 'answered', bytes: rpcError(INVALID_REQUEST, element.reason, element.id) };
  }
  const route = routeOf(element.method);
  if (route.kind === 'forward') return { kind: 'forward', call: element, route };
  return { kind: 'answered', bytes: rpcError(METHOD_NOT_FOUND, route.reason, element.id) };
}
