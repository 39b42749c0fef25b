import { type Carried, extractApiKey, isKeyMisplaced } from '../shared/keys/carrier.ts';
import type { Plan } from '../shared/config/plans.ts';
import type { Caller, Identity } from '../shared/keys/source.ts';
import type { PublishedTerms } from '../shared/publication.ts';
import type { CallPermits } from './limits/calls.ts';
import { type Charge, type Charging, priceOf } from './limits/charge.ts';
import type { ScanPermits } from './limits/scans.ts';
import {
  type RequestBody,
  corsFields,
  type HeadRefusal,
  preflight,
  refusalOfHead,
  type RpcRequest,
  RpcResponse,
} from './listener/rpc.ts';
import type { Barred, IdentifyCaller } from './request/auth.ts';
import { type BodyRead, type Malformed, malformed, readEnvelope } from './request/envelope.ts';
import { isForward, isScan, planCall, type PlannedCall } from './respond/planned-call.ts';
import type { Respond } from './respond/respond.ts';
import { type Refusal, refuse } from './respond/refusal.ts';
import type { RouteOf } from './upstream/selection.ts';
import type { Usage } from './usage/usage.ts';

type RequestAnswer = RpcResponse | Promise<RpcResponse>;
type FoundCaller = Identity | Barred;

/** Answers one RPC request. */
export type AnswerRequest = (request: RpcRequest) => RequestAnswer;

/** The stages that touch the world. Every other step is a pure import. */
type AnswerStages = Readonly<{
  bodyBytesMax: number;
  /** They may change while the gateway runs. */
  terms(): PublishedTerms;
  identify: IdentifyCaller;
  routeOf: RouteOf;
  charging: Charging;
  permits: CallPermits;
  scans: ScanPermits;
  respond: Respond;
  usage: Pick<Usage, 'begin' | 'refused'>;
  /** Called for each request that is refused before it is sent to a backend. */
  onOutcome(outcome: Refusal['kind']): void;
}>;

/** A refused batch is answered call by call up to this many, where no plan applies or the batch exceeds the plan's. */
const REFUSED_BATCH_MAX = 1_000;

/** Refusals and errors of our own that are longer need a permit, as calls do: they too may stay unread. */
const OWN_BYTES_MAX = 16_384;

/** No more is read of the body of a caller without a valid key. */
const KEYLESS_BYTES_MAX = 65_536;

/**
 * The whole way of a request: key, head, body, envelope, key once more, price, charge, answer. A step gives a promise only where
 * it waits: the promises that `async` makes all the same cost as much as Elysia's route.
 */
export function createAnswer(stages: AnswerStages): AnswerRequest {
  const { bodyBytesMax, terms, identify, routeOf, charging, permits, scans, respond, usage } = stages;
  const { refuseCaller, refuseShape, refuseRequest } = createRefusals(stages);

  return function answer(request) {
    if (request.method === 'OPTIONS') return preflight(request.headers);
    const carried = extractApiKey(request.headers, request.url);
    const found = identify(carried, request);
    return found instanceof Promise
      ? found.then((before) => answerKey(request, carried, before))
      : answerKey(request, carried, found);
  };

  function answerKey(request: RpcRequest, carried: Carried, before: FoundCaller): RequestAnswer {
    const body = refusalOfHead(request) ?? readBody(request, before);
    return body instanceof Promise
      ? body.then((each) => answerBody(request, carried, before, each, true))
      : answerBody(request, carried, before, body, false);
  }

  function answerBody(
    request: RpcRequest,
    carried: Carried,
    before: FoundCaller,
    body: RequestBody | HeadRefusal,
    hasWaited: boolean,
  ): RequestAnswer {
    if (body.kind === 'caller-left') return new RpcResponse({ status: 400, fields: {} });
    if (body.kind !== 'body') {
      if (before.kind === 'known') usage.refused(before.caller);
      const isKeyless = before.kind !== 'known' && body.kind === 'body-too-large';
      return refuseRequest(request, isKeyless ? refusalOf(before, request) : body);
    }
    const read = readEnvelope(body.bytes, elementsMaxOf(before));
    if (read instanceof Promise) return read.then((each) => answerLater(request, carried, before, each));
    return hasWaited ? answerLater(request, carried, before, read) : answerAs(request, before, read);
  }

  /** The key may have been revoked, or its account changed, while the body arrived. */
  function answerLater(
    request: RpcRequest,
    carried: Carried,
    before: FoundCaller,
    read: BodyRead,
  ): RequestAnswer {
    const again = before.kind === 'known' ? identify(carried, request) : before;
    return again instanceof Promise
      ? again.then((each) => answerAs(request, each, read))
      : answerAs(request, again, read);
  }

  function answerAs(request: RpcRequest, identity: FoundCaller, read: BodyRead): RequestAnswer {
    if (identity.kind === 'known') return answerCaller(request, identity.caller, read);
    return refuseRequest(request, refusalOf(identity, request), read);
  }

  /** Who has no valid key sends less. */
  function readBody(request: RpcRequest, identity: FoundCaller): RequestBody | Promise<RequestBody> {
    if (identity.kind === 'known') return request.readBody(bodyBytesMax, identity.caller.accountId);
    return request.readBody(Math.min(bodyBytesMax, KEYLESS_BYTES_MAX));
  }

  function planOf({ plan }: Caller): Plan | undefined {
    return plan === undefined ? undefined : terms().plans.get(plan);
  }

  function elementsMaxOf(identity: FoundCaller): number {
    const plan = identity.kind === 'known' ? planOf(identity.caller) : undefined;
    return Math.max(REFUSED_BATCH_MAX, plan?.batchMax ?? 0);
  }

  function answerCaller(request: RpcRequest, caller: Caller, read: BodyRead): RequestAnswer {
    const plan = planOf(caller);
    if (plan === undefined) return refuseRequest(request, { kind: 'invalid-key' }, read);
    if (read.kind === 'malformed') return refuseShape(request, caller, plan, read, read);
    if (read.kind === 'too-long' || read.elements.length > plan.batchMax)
      return refuseShape(request, caller, plan, malformed(`Batch too large; max ${plan.batchMax}`), read);
    const [only] = read.elements;
    if (read.kind === 'single' && only?.kind === 'invalid')
      return refuseShape(request, caller, plan, malformed(only.reason), read);
    const envelope = read;
    const planned: PlannedCall[] = [];
    const { prices } = terms();
    for (const element of envelope.elements) planned.push(planCall(element, routeOf, prices));
    const { calls, credits } = priceOf(planned);
    const refusePlanned = (refusal: Refusal) => {
      usage.refused(caller, planned);
      return refuseCaller(request, caller, plan, refusal, envelope);
    };
    // 402 before 429: permits come back by themselves, and credits do not.
    if (planned.some(isScan) && !scans.hasRoom(caller.accountId, plan.scans))
      return refusePlanned(
        charging.outOfCredits(caller, plan, credits) ?? { kind: 'over-scans', max: plan.scans },
      );
    const isForwarded = planned.some(isForward);
    const needsPermit = isForwarded || ownBytesOf(planned) > OWN_BYTES_MAX;
    if (needsPermit && !permits.take(caller.accountId, plan.inFlight))
      return refusePlanned(
        charging.outOfCredits(caller, plan, credits) ?? { kind: 'over-calls', max: plan.inFlight },
      );

    const counted = usage.begin(caller, planned);
    const admit = (charge: Charge): RequestAnswer => {
      if (charge.kind !== 'charged') {
        if (needsPermit) permits.giveBack(caller.accountId);
        return refusePlanned(charge);
      }
      if (needsPermit && !isForwarded) request.onSent(() => permits.giveBack(caller.accountId));
      counted.admit();
      return respond({ request, envelope, planned, caller, plan, credits, charge, usage: counted });
    };
    const charge = charging.charge(caller, plan, { calls, credits, usageHook: counted });
    return charge instanceof Promise ? charge.then(admit) : admit(charge);
  }
}

/** The refusals of requests, each counted. */
function createRefusals({ charging, permits, usage, onOutcome }: AnswerStages) {
  /** Refuses a request call by call, as far as the account may have so much in memory. */
  function refuseCaller(
    request: RpcRequest,
    { accountId }: Caller,
    { inFlight }: Plan,
    refusal: Refusal,
    to: BodyRead,
  ): RpcResponse {
    const refused = refuseRequest(request, refusal, to);
    if (!(refused.body instanceof Uint8Array) || refused.body.length <= OWN_BYTES_MAX) return refused;
    if (!permits.take(accountId, inFlight)) return refuse(refusal, undefined, corsFields(request.headers));
    request.onSent(() => permits.giveBack(accountId));
    return refused;
  }

  /** Refuses what is no request for its shape, for a token: to read it has cost as much as a call does. */
  function refuseShape(
    request: RpcRequest,
    caller: Caller,
    plan: Plan,
    shape: Malformed,
    to: BodyRead,
  ): RequestAnswer {
    usage.refused(caller);
    const charge = charging.charge(caller, plan, { calls: 1, credits: 0 });
    const refused = (charged: Charge) =>
      refuseCaller(request, caller, plan, charged.kind === 'over-rate' ? charged : shape, to);
    return charge instanceof Promise ? charge.then(refused) : refused(charge);
  }

  /** Refuses a request, in a form that its page may read. */
  function refuseRequest(request: RpcRequest, refusal: Refusal, to?: BodyRead): RpcResponse {
    onOutcome(refusal.kind);
    return refuse(refusal, to, corsFields(request.headers));
  }

  return { refuseCaller, refuseShape, refuseRequest };
}

function ownBytesOf(planned: readonly PlannedCall[]): number {
  let bytes = 0;
  for (const one of planned) if (one.kind === 'answered') bytes += one.answer.bytes.length;
  return bytes;
}

/** Why a request has no caller, with a hint where its key stands in a place that is not read. */
function refusalOf(identity: Refusal, { headers, url }: RpcRequest): Refusal {
  const isMisplaced = identity.kind === 'missing-key' && isKeyMisplaced(headers, url);
  return isMisplaced ? { kind: 'misplaced-key' } : identity;
}
