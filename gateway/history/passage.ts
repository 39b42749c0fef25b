import type { Backend } from '../upstream/backend.ts';
import type { Asking, Forward, Reply } from '../upstream/forward.ts';
import type { Call } from '../request/envelope.ts';
import { METHODS } from '../methods/table.ts';
import type { Route } from '../upstream/router.ts';
import type { Tiers } from './tiers.ts';

/** How a tier is asked, where that differs from how the caller asked. */
export type Asked = Readonly<{
  params?: Uint8Array | undefined;
  /** Another method than the caller's. */
  method?: string;
  localOnly?: boolean;
  /** The answer must come uncompressed, because it is read here. */
  readable?: boolean;
  signal?: AbortSignal;
}>;

/** One call on its way through the tiers. */
export type Passage = Readonly<{
  call: Call;
  /** The method's name to backends. */
  name: string;
  tiers: Tiers;
  signal: AbortSignal;
  /** Asks some backends of the route. Never rejects. */
  ask(backends: readonly Backend[], asked?: Asked): Promise<Reply>;
  /** Asks live nodes exactly as the caller asked, for their own words about odd parameters; archives overlook some. */
  through(): Promise<Reply>;
}>;

/** A route to backends. */
export type ForwardRoute = Extract<Route, { kind: 'forward' }>;

/**
 * Takes a call through its tiers by `rule`. However many backends are asked meanwhile, `asking.onOver` is called once,
 * when the rule has its answer and no backend works on the call any more.
 */
export async function pass(
  rule: (passage: Passage) => Promise<Reply>,
  forward: Forward,
  call: Call,
  route: ForwardRoute,
  asking: Asking,
  tiers: Tiers,
): Promise<Reply> {
  let open = 1;
  let asks = 0;
  const close = () => void (--open === 0 && asking.onOver());

  function send(sent: Call, to: ForwardRoute, changes: Partial<Asking>): Promise<Reply> {
    open++;
    asks++;
    return forward(sent, to, { ...asking, ...changes, onOver: close });
  }

  const passage: Passage = {
    call,
    name: route.name,
    tiers,
    signal: asking.signal,
    ask(backends, { params = call.params, method, localOnly = false, readable = false, signal } = {}) {
      const to = { ...(method === undefined ? route : routeOf(method, route)), backends };
      const changes = {
        localOnly,
        ...(readable && { acceptEncoding: 'identity' }),
        ...(signal !== undefined && { signal }),
      };
      return send({ ...call, params, method: to.name }, to, changes);
    },
    through: () => send(call, tiers.live.length > 0 ? { ...route, backends: tiers.live } : route, {}),
  };
  try {
    const reply = await rule(passage);
    // A backend that was asked before the caller left has worked for him.
    return reply.kind === 'caller-left' && asks > 1 ? { kind: 'caller-left' } : reply;
  } finally {
    close();
  }
}

function routeOf(name: string, route: ForwardRoute): ForwardRoute {
  return { ...route, name, method: METHODS.get(name) ?? route.method };
}
