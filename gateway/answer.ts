import { extractApiKey, isKeyMisplaced } from '../shared/keys/carrier.ts';
import type { Caller } from '../shared/keys/source.ts';
import type { PublishedTerms } from '../shared/publication.ts';
import type { CallPermits } from './limits/calls.ts';
import { type Charge, type Charging, priceOf } from './limits/charge.ts';
import type { ScanPermits } from './limits/scans.ts';
import { corsFields, preflight, refusalOfHead, type RpcRequest, type RpcResponse } from './listener/http.ts';
import type { IdentifyCaller } from './request/auth.ts';
import { type Envelope, type Malformed, readEnvelope } from './request/envelope.ts';
import { isForward, isScan, planCall } from './respond/planned-call.ts';
import type { Respond } from './respond/respond.ts';
import { type Refusal, refuse } from './respond/refusal.ts';
import type { RouteOf } from './upstream/selection.ts';
import type { Usage } from './usage/usage.ts';

type Answer = RpcResponse | Promise<RpcResponse>;

/** Answers one RPC request. */
export type AnswerRequest = (request: RpcRequest) => Answer;

/** The stages that touch the world. Every other step is a pure import. */
type Stages = Readonly<{
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

/** No more is read of the body of a caller without a valid key. */
const KEYLESS_BYTES_MAX = 65_536;

/** The whole way of a request: key, head, body, key once more, envelope, price, charge, answer. */
export function createAnswer(stages: Stages): AnswerRequest {
  const { bodyBytesMax, terms, identify, routeOf, charging, permits, scans, respond, usage, onOutcome } =
    stages;

  return async function answer(request) {
    if (request.method === 'OPTIONS') return preflight(request.headers);
    const carried = extractApiKey(request.headers, request.url);
    const found = identify(carried, request);
    const before = found instanceof Promise ? await found : found;
    const bytesMax = before.kind === 'known' ? bodyBytesMax : Math.min(bodyBytesMax, KEYLESS_BYTES_MAX);
    const body = refusalOfHead(request) ?? (await request.readBody(bytesMax));
    if (body.kind === 'caller-left') return { status: 400, fields: {} };
    // The key may have been revoked, or its account changed, while the body arrived.
    const again = before.kind === 'known' ? identify(carried, request) : before;
    const identity = again instanceof Promise ? await again : again;
    if (identity.kind === 'known') {
      if (body.kind === 'body') return answerCaller(request, identity.caller, body.bytes);
      usage.refused(identity.caller);
      return refuseRequest(request, body);
    }
    const refusal = refusalOf(identity, request);
    if (body.kind === 'body')
      return refuseRequest(request, refusal, readEnvelope(body.bytes, REFUSED_BATCH_MAX));
    return refuseRequest(request, body.kind === 'body-too-large' ? refusal : body);
  };

  function answerCaller(request: RpcRequest, caller: Caller, body: Buffer): Answer {
    const { plans, prices } = terms();
    const plan = caller.plan === undefined ? undefined : plans.get(caller.plan);
    if (plan === undefined)
      return refuseRequest(request, { kind: 'invalid-key' }, readEnvelope(body, REFUSED_BATCH_MAX));

    const envelope = readEnvelope(body, plan.batchMax);
    if (envelope.kind === 'malformed') {
      usage.refused(caller);
      // What is too long for the plan is refused as every batch is.
      return refuseRequest(request, envelope, readEnvelope(body, REFUSED_BATCH_MAX));
    }
    const [only] = envelope.elements;
    const planned = envelope.elements.map((element) => planCall(element, routeOf, prices));
    if (envelope.kind === 'single' && only?.kind === 'invalid')
      return refusePlanned({ kind: 'malformed', code: -32600, reason: only.reason });
    const { calls, credits } = priceOf(planned);
    // 402 before 429: permits come back by themselves, and credits do not.
    if (planned.some(isScan) && !scans.hasRoom(caller.accountId, plan.scans))
      return refusePlanned(
        charging.outOfCredits(caller, plan, credits) ?? { kind: 'over-scans', max: plan.scans },
      );
    const isForwarded = planned.some(isForward);
    if (isForwarded && !permits.take(caller.accountId, plan.inFlight))
      return refusePlanned(
        charging.outOfCredits(caller, plan, credits) ?? { kind: 'over-calls', max: plan.inFlight },
      );

    const counted = usage.begin(caller, planned);
    const admit = (charge: Charge): Answer => {
      if (charge.kind !== 'charged') {
        if (isForwarded) permits.giveBack(caller.accountId);
        return refusePlanned(charge);
      }
      counted.admit();
      return respond({ request, envelope, planned, caller, plan, credits, charge, usage: counted });
    };
    const charge = charging.charge(caller, plan, { calls, credits, usageHook: counted });
    return charge instanceof Promise ? charge.then(admit) : admit(charge);

    function refusePlanned(refusal: Refusal): RpcResponse {
      usage.refused(caller, planned);
      return refuseRequest(request, refusal, envelope);
    }
  }

  /** Refuses a request, in a form that its page may read. */
  function refuseRequest(request: RpcRequest, refusal: Refusal, to?: Envelope | Malformed): RpcResponse {
    onOutcome(refusal.kind);
    return refuse(refusal, to, corsFields(request.headers));
  }
}

/** Why a request has no caller, with a hint where its key stands in a place that is not read. */
function refusalOf(identity: Refusal, { headers, url }: RpcRequest): Refusal {
  const isMisplaced = identity.kind === 'missing-key' && isKeyMisplaced(headers, url);
  return isMisplaced ? { kind: 'misplaced-key' } : identity;
}
