import type { Plan } from '../shared/config/plans.ts';
import type { Prices } from '../shared/config/prices.ts';
import { extractApiKey } from '../shared/keys/carrier.ts';
import type { Caller, Identity } from '../shared/keys/identify.ts';
import { type Charge, type Charging, priceOf } from './limits/charge.ts';
import type { ScanPermits } from './limits/scans.ts';
import { corsFields, preflight, readBody, refusalOfHead } from './request/http.ts';
import type { Barred, IdentifyCaller, Peers } from './request/auth.ts';
import { type Envelope, type Malformed, readEnvelope } from './request/envelope.ts';
import { isScan, type PlannedCall, planCall } from './respond/planned-call.ts';
import type { Respond } from './respond/respond.ts';
import { type Refusal, refuse } from './respond/refusal.ts';
import type { RouteOf } from './upstream/router.ts';
import type { Usage } from './usage/usage.ts';

/** Answers one RPC request with a finished Response. */
export type AnswerRequest = (request: Request, peers: Peers) => Response | Promise<Response>;

/** What may change while the gateway runs: plans and prices, reloaded from the config. */
export type Terms = Readonly<{ plans: ReadonlyMap<string, Plan>; prices: Prices }>;

/** The stages that touch the world. Every other step is a pure import. */
export type Stages = Readonly<{
  bodyBytesMax: number;
  terms(): Terms;
  identify: IdentifyCaller;
  routeOf: RouteOf;
  charging: Charging;
  permits: ScanPermits;
  respond: Respond;
  usage: Pick<Usage, 'begin' | 'refused'>;
  /** Called for each request that is refused before it is sent to a backend. */
  onOutcome(outcome: Refusal['kind']): void;
}>;

/** A refused batch is answered call by call up to this many; no plan's `max_batch` matters for a caller without one. */
const REFUSED_BATCH_MAX = 1_000;

/** The whole way of a request: head, body, key, envelope, price, charge, answer. */
export function createAnswer({
  bodyBytesMax,
  terms,
  identify,
  routeOf,
  charging,
  permits,
  respond,
  usage,
  onOutcome,
}: Stages) {
  return function answer(request: Request, peers: Peers): Response | Promise<Response> {
    if (request.method === 'OPTIONS') return preflight(request.headers);
    const wrong = refusalOfHead(request);
    if (wrong !== undefined) return refuseUnread(wrong, request, peers);
    return readBody(request, bodyBytesMax).then((body) => {
      if (body.kind === 'caller-left') return new Response(null, { status: 400 });
      return body.kind === 'body'
        ? answerBody(body.bytes, request, peers)
        : refuseUnread(body, request, peers);
    });
  };

  function answerBody(body: Buffer, request: Request, peers: Peers): Response | Promise<Response> {
    const identity = identify(extractApiKey(request.headers, request.url), request, peers);
    return identity instanceof Promise
      ? identity.then((found) => answerIdentified(found, body, request))
      : answerIdentified(identity, body, request);
  }

  function answerIdentified(
    identity: Identity | Barred,
    body: Buffer,
    request: Request,
  ): Response | Promise<Response> {
    if (identity.kind !== 'known')
      return refuseRequest(request, identity, readEnvelope(body, REFUSED_BATCH_MAX));

    const { caller } = identity;
    const { plans, prices } = terms();
    const plan = caller.plan === undefined ? undefined : plans.get(caller.plan);
    if (plan === undefined)
      return refuseRequest(request, { kind: 'invalid-key' }, readEnvelope(body, REFUSED_BATCH_MAX));

    const envelope = readEnvelope(body, plan.batchMax);
    if (envelope.kind === 'malformed') return refuseCaller(request, caller, envelope);
    const [only] = envelope.elements;
    if (envelope.kind === 'single' && only?.kind === 'invalid') {
      const refusal: Refusal = { kind: 'malformed', code: -32600, reason: only.reason };
      return refuseCaller(request, caller, refusal, envelope);
    }

    const planned = envelope.elements.map((element) => planCall(element, routeOf, prices));
    if (planned.some(isScan) && !permits.hasRoom(caller.accountId, plan.scans))
      return refuseCaller(request, caller, { kind: 'over-scans', max: plan.scans }, envelope, planned);

    const counted = usage.begin(caller, planned);
    const { calls, credits } = priceOf(planned);
    const admit = (charge: Charge): Response | Promise<Response> => {
      if (charge.kind !== 'charged') return refuseCaller(request, caller, charge, envelope, planned);
      counted.admit();
      return respond({ request, envelope, planned, caller, plan, credits, charge, usage: counted });
    };
    const charge = charging.charge(caller, plan, { calls, credits, usageHook: counted });
    return charge instanceof Promise ? charge.then(admit) : admit(charge);
  }

  /** Refuses a request of a known caller; `planned` are its elements, when they are known. */
  function refuseCaller(
    request: Request,
    caller: Caller,
    refusal: Refusal,
    to?: Envelope,
    planned?: readonly PlannedCall[],
  ): Response {
    usage.refused(caller, planned);
    return refuseRequest(request, refusal, to);
  }

  /** Refuses a request that was not read; its caller is looked up only to count it. */
  async function refuseUnread(refusal: Refusal, request: Request, peers: Peers): Promise<Response> {
    const identity = await identify(extractApiKey(request.headers, request.url), request, peers);
    if (identity.kind === 'known') usage.refused(identity.caller);
    return refuseRequest(request, refusal);
  }

  /** Refuses a request, in a form that its page may read. */
  function refuseRequest(request: Request, refusal: Refusal, to?: Envelope | Malformed): Response {
    onOutcome(refusal.kind);
    return refuse(refusal, to, corsFields(request.headers));
  }
}
