import type { Clock } from '../../shared/clock.ts';
import type { Plan, Prices } from '../../shared/config/plans.ts';
import type { ScanPermits } from '../limits/scans.ts';
import { METHODS } from '../../shared/config/methods.ts';
import { type Call, type Element, type OwnAnswer, rpcError } from '../request/envelope.ts';
import type { RpcRequest } from '../listener/rpc.ts';
import type { Direct } from '../upstream/direct.ts';
import type { FanOut } from '../upstream/fan-out.ts';
import type { CallReply } from '../upstream/failover.ts';
import type { CallContext, Forward } from '../upstream/forward.ts';
import type { ForwardRoute, RouteOf } from '../upstream/selection.ts';
import { NO_METHOD } from '../usage/usage.ts';

/** The price of an element, and the name that it is counted under. */
type Priced = Readonly<{ credits: number; label: string }>;

/** A call for a backend. */
export type ForwardCall = Priced & Readonly<{ kind: 'forward'; call: Call; route: ForwardRoute }>;

/** A call that the gateway answers itself, with an error. */
export type AnsweredCall = Priced & Readonly<{ kind: 'answered'; answer: OwnAnswer }>;

/** The work for one element; for a notification nothing is sent and nothing is answered. */
export type PlannedCall = ForwardCall | AnsweredCall | (Priced & Readonly<{ kind: 'notification' }>);

/** Every method that neither the table nor a backend's config knows: callers must not be able to make up labels. */
const UNKNOWN_METHOD = 'unknown';

/** JSON-RPC 2.0, section 5.1. */
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;

const NOTIFICATION: PlannedCall = { kind: 'notification', credits: 0, label: NO_METHOD };

/** Decides by the method who answers an element. Only calls cost credits; a method that nobody serves costs the default. */
export function planCall(element: Element, routeOf: RouteOf, prices: Prices): PlannedCall {
  if (element.kind === 'notification') return NOTIFICATION;
  if (element.kind === 'invalid') {
    const answer = rpcError(INVALID_REQUEST, element.reason, element.id);
    return { kind: 'answered', answer, credits: 0, label: NO_METHOD };
  }
  const { method } = element;
  const route = routeOf(method);
  if (route.kind === 'forward') {
    const { default: usual, methods } = prices;
    const credits = methods.get(method) ?? methods.get(route.method.like ?? method) ?? usual;
    return { kind: 'forward', call: element, route, credits, label: route.name };
  }
  const answer = rpcError(METHOD_NOT_FOUND, route.reason, element.id);
  const label = METHODS.has(method) ? method : UNKNOWN_METHOD;
  return { kind: 'answered', answer, credits: prices.default, label };
}

/** Whether a backend is to answer, which needs a permit. */
export function isForward(planned: PlannedCall): planned is ForwardCall {
  return planned.kind === 'forward';
}

/** Whether the call is a read that a backend may get in one exchange with others of its batch. */
export function isLight({ route: { method } }: ForwardCall): boolean {
  return method.answering === 'direct' && method.class === 'light';
}

/** Whether the call is a scan, which needs a permit of its own. */
export function isScan(planned: PlannedCall): boolean {
  return planned.kind === 'forward' && planned.route.method.class === 'scan';
}

/** `request`: the call is all of it, and its scan has a permit until the answer has been sent. */
type SendContext = CallContext & Readonly<{ request?: Pick<RpcRequest, 'onSent'> }>;

/** Sends a call to a backend, a scan when it has a permit, a transaction to as many as the plan says. Never rejects. */
export type Send = (planned: ForwardCall, plan: Plan, context: SendContext) => Promise<CallReply>;

export function createSend(
  direct: Direct,
  forward: Forward,
  permits: ScanPermits,
  clock: Clock,
  fanOut: FanOut,
): Send {
  return function send({ call, route }, plan, context) {
    if (route.method.answering === 'direct')
      return new Promise((resolve) => direct(call, route, context, resolve));
    const { sendFanout = 1 } = plan;
    if (sendFanout > 1 && route.method.fanOut)
      return fanOut(call, route, { ...context, startedMs: clock.monotonic() }, sendFanout);
    const begin = (onSettled = context.onSettled) =>
      forward(call, route, { ...context, onSettled, startedMs: clock.monotonic() });
    if (route.method.class !== 'scan') return begin();
    const { request } = context;
    const scan = (giveBack: () => void) =>
      begin(request === undefined ? giveBack : () => request.onSent(giveBack));
    const permit = permits.take(context.accountId, plan.scans, context.signal);
    // Without a wait when there is one: a batch's calls ask for places in its order.
    if (!(permit instanceof Promise)) return scan(permit);
    const onPermit = context.inBatch?.onWait();
    return permit.then((giveBack) => {
      onPermit?.();
      return scan(giveBack);
    });
  };
}
