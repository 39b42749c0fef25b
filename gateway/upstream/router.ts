import { PROFILES } from '../../shared/config/profiles.ts';
import { DECLARED_UNKNOWN, isSubscription, type Method, METHODS } from '../methods/table.ts';
import { type Backend, numberOf } from './backend.ts';

export type ForwardRoute = Readonly<{
  kind: 'forward';
  name: string;
  /** `,"method":"NAME"` in bytes, as it stands in a request. */
  member: Buffer;
  /** A number of its own, for hashes. */
  seed: number;
  method: Method;
  backends: readonly Backend[];
}>;

/** Where the calls of one method go. */
export type Route =
  | ForwardRoute
  /** No backend serves it; `reason` is the -32601's message. */
  | { readonly kind: 'not-found'; readonly reason: string };

export type RouteOf = (method: string) => Route;

const NOT_FOUND: Route = { kind: 'not-found', reason: 'Method not found' };
const NO_WEBSOCKET: Route = {
  kind: 'not-found',
  reason: 'Method not found: subscriptions need WebSocket, which this endpoint does not offer',
};

/** Routes by method over a fixed set of backends; decided once for every known name. */
export function createRouter(backends: readonly Backend[]): RouteOf {
  const routes = new Map<string, Route>();
  for (const [name, method] of METHODS) routes.set(name, routeFrom(name, method, backends));
  for (const name of backends.flatMap(({ config }) => config.methods)) {
    if (!METHODS.has(name)) routes.set(name, routeFrom(name, DECLARED_UNKNOWN, backends));
  }
  return function routeOf(method) {
    return routes.get(method) ?? (isSubscription(method) ? NO_WEBSOCKET : NOT_FOUND);
  };
}

function routeFrom(name: string, method: Method, all: readonly Backend[]): Route {
  const backends = all.filter(({ config }) => serves(config, name, method));
  if (backends.length === 0) return NOT_FOUND;
  return {
    kind: 'forward',
    name,
    member: Buffer.from(`,"method":${JSON.stringify(name)}`),
    seed: numberOf(name),
    method,
    backends,
  };
}

function serves({ methods, lanes, profile }: Backend['config'], name: string, method: Method): boolean {
  if (methods.includes(name)) return true;
  const { serves: only } = PROFILES[profile];
  return !method.declared && lanes.includes(method.lane) && (only === undefined || only.has(name));
}
