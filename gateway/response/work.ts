import type { Prices } from '../../shared/config/prices.ts';
import type { Call, Element } from '../request/call.ts';
import type { Route, RouteOf } from '../route/router.ts';
import { INVALID_REQUEST, METHOD_NOT_FOUND, rpcError } from './rpc-error.ts';

/** What is to be done for one element, and what it costs. */
export type Work =
  | Forwarded
  /** The gateway answers it itself. */
  | { readonly kind: 'answered'; readonly bytes: Uint8Array<ArrayBuffer>; readonly credits: number }
  /** A notification: nothing is sent and nothing is answered. */
  | { readonly kind: 'silent'; readonly credits: 0 };

/** A call for a backend. */
export type Forwarded = Readonly<{
  kind: 'forward';
  call: Call;
  route: Extract<Route, { kind: 'forward' }>;
  credits: number;
}>;

/** Whether the work is a scan, which needs a permit. */
export function isScan(work: Work): boolean {
  return work.kind === 'forward' && work.route.method.class === 'scan';
}

const SILENT: Work = { kind: 'silent', credits: 0 };

/**
 * Decides, from the method alone, who answers an element. Only calls cost credits; a method that nobody serves costs
 * the default, whatever the table says of it (DESIGN 3.3).
 */
export function workFor(element: Element, routeOf: RouteOf, prices: Prices): Work {
  if (element.kind === 'notification') return SILENT;
  if (element.kind === 'invalid') {
    return { kind: 'answered', bytes: rpcError(INVALID_REQUEST, element.reason, element.id), credits: 0 };
  }
  const route = routeOf(element.method);
  if (route.kind === 'forward') {
    const { like } = route.method;
    const credits =
      prices.methods.get(element.method) ??
      (like === undefined ? undefined : prices.methods.get(like)) ??
      prices.default;
    return { kind: 'forward', call: element, route, credits };
  }
  const bytes = rpcError(METHOD_NOT_FOUND, route.reason, element.id);
  return { kind: 'answered', bytes, credits: prices.default };
}
