import type { Plan } from '../shared/config/plans.ts';
import type { Prices } from '../shared/config/prices.ts';
import { carriedKey } from '../shared/keys/carrier.ts';
import type { Caller } from '../shared/keys/identify.ts';
import type { Charging } from './limits/charge.ts';
import { priceOf } from './limits/price.ts';
import type { ScanPermits } from './limits/scan-permits.ts';
import { corsFields, preflight, readBody, refusalOfHead } from './request/http.ts';
import type { IdentifyCaller, Peers } from './request/auth.ts';
import { type Envelope, type Malformed, readEnvelope } from './request/envelope.ts';
import { isScan, type Respond, workFor } from './respond/respond.ts';
import { type Refusal, refuse } from './respond/refusal.ts';
import type { RouteOf } from './upstream/router.ts';
import type { Usage } from './usage/usage.ts';

/** Answers one RPC request with a finished Response. */
export type AnswerRequest = (request: Request, peers: Peers) => Promise<Response>;

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
  usage: Pick<Usage, 'tally' | 'refused'>;
  /** Told of every request that was refused before a backend was asked. */
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
  return async function answer(request: Request, peers: Peers): Promise<Response> {
    if (request.method === 'OPTIONS') return preflight(request.headers);
    const refused = refuserOf(request, onOutcome);
    const wrong = refusalOfHead(request);
    if (wrong !== undefined) return refusedUnread(wrong);

    const body = await readBody(request, bodyBytesMax);
    if (body.kind === 'caller-left') return new Response(null, { status: 400 });
    if (body.kind !== 'body') return refusedUnread(body);

    const identified = identify(carriedKey(request.headers, request.url), request, peers);
    // The common key is in memory, and an await would cost it a turn.
    const identity = identified instanceof Promise ? await identified : identified;
    if (identity.kind !== 'known') return refused(identity, readEnvelope(body.bytes, REFUSED_BATCH_MAX));

    const { caller } = identity;
    const { plans, prices } = terms();
    const plan = planOf(caller, plans);
    if (plan === undefined)
      return refused({ kind: 'invalid-key' }, readEnvelope(body.bytes, REFUSED_BATCH_MAX));

    const envelope = readEnvelope(body.bytes, plan.batchMax);
    if (envelope.kind === 'malformed') return counted(envelope);
    if (envelope.kind === 'single' && envelope.element.kind === 'invalid') {
      return counted({ kind: 'malformed', code: -32600, reason: envelope.element.reason }, envelope);
    }

    const elements = envelope.kind === 'single' ? [envelope.element] : envelope.elements;
    const works = elements.map((element) => workFor(element, routeOf, prices));
    if (works.some(isScan) && !permits.hasRoom(caller.accountId, plan.scans)) {
      return counted({ kind: 'over-scans', max: plan.scans }, envelope);
    }
    const tally = usage.tally(caller, elements, works);
    const price = { ...priceOf(works), bill: tally };
    const charge = await charging.charge(caller, plan, price);
    if (charge.kind !== 'charged') return counted(charge, envelope);
    tally.admit();

    return respond({ request, envelope, works, caller, plan, price, charge, tally });

    /** Refuses a request of a known caller. */
    function counted(refusal: Refusal, to?: Envelope): Response {
      usage.refused(caller, to);
      return refused(refusal, to);
    }

    /** Refuses a request that was not read; whose it is, is asked only to count it. */
    async function refusedUnread(refusal: Refusal): Promise<Response> {
      const identity = await identify(carriedKey(request.headers, request.url), request, peers);
      if (identity.kind === 'known') usage.refused(identity.caller, undefined);
      return refused(refusal);
    }
  };
}

/** Refuses this request, in a form that its page may read. */
function refuserOf({ headers }: Request, onOutcome: Stages['onOutcome']) {
  return function refused(refusal: Refusal, to?: Envelope | Malformed): Response {
    onOutcome(refusal.kind);
    return refuse(refusal, to, corsFields(headers));
  };
}

function planOf({ plan }: Caller, plans: ReadonlyMap<string, Plan>): Plan | undefined {
  return plan === undefined ? undefined : plans.get(plan);
}
