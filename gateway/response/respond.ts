import { unreachable } from '../../shared/brand.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Forward, Reply } from '../backend/forward.ts';
import { failureOf } from '../backend/rpc-failure.ts';
import type { Charge, Charging } from '../limits/charge.ts';
import type { ScanPermits } from '../limits/scan-permits.ts';
import type { Price } from '../limits/price.ts';
import type { Envelope } from '../request/envelope.ts';
import type { Begun, StreamEnd } from '../backend/begun.ts';
import { countedBody } from '../usage/counted-body.ts';
import type { Tally } from '../usage/tally.ts';
import { type Beat, type Part, type Start, streamBatch } from './batch.ts';
import { corsFields } from './cors.ts';
import { divided, NDJSON_TYPE, wantsLines } from './ndjson.ts';
import { rateFields } from './rate-fields.ts';
import { refuse } from './refusal.ts';
import { INVALID_REQUEST, NO_BACKEND, rpcError } from './rpc-error.ts';
import { streamSingle } from './single.ts';
import type { Forwarded, Work } from './work.ts';

/** A request that was let in and paid for. */
export type Admitted = Readonly<{
  request: Request;
  envelope: Envelope;
  /** What is to be done for each of its elements, in order. */
  works: readonly Work[];
  caller: Caller;
  plan: Plan;
  price: Price;
  charge: Extract<Charge, { kind: 'charged' }>;
  /** Counts what becomes of it; places are those of `works`. */
  tally: Pick<Tally, 'bytes' | 'error' | 'refund'>;
}>;

/** Answers an admitted request: one element as it comes, or a batch spliced in order. */
export type Respond = (admitted: Admitted) => Promise<Response>;

/** How a call ended. */
export type Outcome = 'answered' | Exclude<Reply['kind'], 'whole' | 'stream'>;

/** Told how the call of a method ended. */
export type OnCall = (method: string, outcome: Outcome) => void;

/** Told how an admitted request ended; a batch is answered, whatever its calls say. */
export type OnAnswer = (outcome: Outcome) => void;

type Deps = Readonly<{
  forward: Forward;
  charging: Charging;
  permits: ScanPermits;
  onCall: OnCall;
  onOutcome: OnAnswer;
  beat: Beat;
}>;

const JSON_TYPE = 'application/json; charset=utf-8';

export function createRespond({ forward, charging, permits, onCall, onOutcome, beat }: Deps): Respond {
  return async function respond(admitted) {
    const [first] = admitted.works;
    return admitted.envelope.kind === 'single' && first !== undefined
      ? single(first, admitted)
      : batch(admitted);
  };

  async function single(work: Work, admitted: Admitted): Promise<Response> {
    const headers = headersOf(admitted);
    const { tally } = admitted;
    if (work.kind !== 'forward') {
      onOutcome('answered');
      if (work.kind === 'answered') {
        tally.error(0);
        tally.bytes(0, work.bytes.length);
      }
      return new Response(work.kind === 'answered' ? work.bytes : null, { headers });
    }
    const { request } = admitted;
    const asLines = work.route.name === 'getProgramAccounts' && wantsLines(request.headers);
    const acceptEncoding = asLines ? 'identity' : (request.headers.get('accept-encoding') ?? 'identity');
    const reply = await forwarded(work, 0, admitted, acceptEncoding, request.signal);
    onOutcome(outcomeOf(reply));
    if (reply.kind === 'no-backend' || reply.kind === 'too-large') {
      // The whole request is refused, so it takes no rate either: its Retry-After is true.
      charging.refund(admitted.caller, admitted.plan, { calls: 1, credits: 0 });
      const fields = { ...rateFields(admitted.charge.rate), ...corsFields(request.headers) };
      const refusal =
        reply.kind === 'no-backend' ? reply : ({ kind: 'body-too-large', isEndless: false } as const);
      return refuse(refusal, admitted.envelope, fields);
    }
    if (reply.kind === 'caller-left') return new Response(null, { status: 499 });
    const { kind, answer } = asLines ? await divided(reply, request.signal) : { kind: 'json', answer: reply };
    if (kind === 'lines') headers.set('content-type', NDJSON_TYPE);
    if (answer.encoding !== undefined) {
      headers.set('content-encoding', answer.encoding);
      headers.set('vary', 'accept-encoding');
    }
    if (answer.kind === 'whole') {
      if (isError(answer)) tally.error(0);
      tally.bytes(0, answer.bytes.length);
      return new Response(answer.bytes, { headers });
    }
    const settle = (end: StreamEnd) => refundIfCut(end, work.credits, admitted);
    return new Response(streamSingle(countedBody(answer.body, tally, 0), settle), { headers });
  }

  /** A stream that its backend cut is not paid for; one whose caller left is (DESIGN 3.8). */
  function refundIfCut(end: StreamEnd, credits: number, admitted: Admitted): void {
    if (end.kind === 'complete' || end.reason === 'cancelled') return;
    refund(0, credits, admitted);
    admitted.tally.error(0);
  }

  /** Gives the price of a call back to the account, and takes it out of its usage. */
  function refund(place: number, credits: number, { caller, plan, tally }: Admitted): void {
    charging.refund(caller, plan, { calls: 0, credits });
    tally.refund(place);
  }

  function batch(admitted: Admitted): Response {
    onOutcome('answered');
    const abort = new AbortController();
    const { signal } = admitted.request;
    // The caller may have left while the charge was written; an aborted signal fires no event.
    if (signal.aborted) abort.abort(signal.reason);
    else signal.addEventListener('abort', () => abort.abort(signal.reason), { once: true });
    const { tally } = admitted;
    const spoken = [...admitted.works.entries()].flatMap(([place, work]) =>
      work.kind === 'silent' ? [] : [{ place, work, isPaid: true }],
    );
    const starts = spoken.map((element): Start => {
      const { place, work } = element;
      if (work.kind === 'answered') {
        tally.error(place);
        return async () => counted({ kind: 'bytes', bytes: work.bytes }, place);
      }
      return async () => {
        const reply = await forwarded(work, place, admitted, 'identity', abort.signal);
        if (isUnanswered(reply)) element.isPaid = false;
        else if (reply.kind === 'whole' && isError(reply)) tally.error(place);
        return counted(partFrom(reply, work), place);
      };
    });
    const headers = headersOf(admitted);
    if (starts.length === 0) return new Response(null, { headers });
    return new Response(streamBatch(starts, abort, refundFrom, beat), { headers });

    /** What a batch that broke off did not deliver is not paid for: the answer at `first` and all behind it. */
    function refundFrom(first: number): void {
      if (signal.aborted) return;
      for (const { place, work, isPaid } of spoken.slice(first)) {
        if (isPaid) refund(place, work.credits, admitted);
        tally.error(place);
      }
    }

    function counted(part: Part, place: number): Part {
      if (part.kind === 'stream') return { ...part, body: countedBody(part.body, tally, place) };
      return { ...part, onSent: () => tally.bytes(place, part.bytes.length) };
    }
  }

  /** Waits for a permit when the call is a scan; gives what hands it back. */
  async function permitFor(
    { method }: Forwarded['route'],
    { accountId }: Caller,
    { scans }: Plan,
    signal: AbortSignal,
  ): Promise<() => void> {
    return method.class === 'scan' ? permits.take(accountId, scans, signal) : nothing;
  }

  /** Forwards a call and gives its credits back when no backend could answer. */
  async function forwarded(
    { call, route, credits }: Forwarded,
    place: number,
    admitted: Admitted,
    acceptEncoding: string,
    signal: AbortSignal,
  ): Promise<Reply> {
    const { caller, plan } = admitted;
    const onOver = await permitFor(route, caller, plan, signal);
    const reply = await forward(call, route, { acceptEncoding, signal, onOver, accountId: caller.accountId });
    onCall(route.name, outcomeOf(reply));
    if (isUnanswered(reply)) refund(place, credits, admitted);
    if (reply.kind === 'no-backend' || reply.kind === 'too-large') admitted.tally.error(place);
    return reply;
  }
}

function nothing(): void {
  // a call that holds no permit has none to give back
}

function outcomeOf({ kind }: Reply): Outcome {
  return kind === 'whole' || kind === 'stream' ? 'answered' : kind;
}

/** Whether no backend took the call, so that it is not paid for. */
function isUnanswered(reply: Reply): boolean {
  if (reply.kind === 'caller-left') return reply.unsent === true;
  return reply.kind === 'no-backend' || reply.kind === 'too-large';
}

/** Whether a small answer is an error of the method; a compressed one is not looked into. */
function isError({ bytes, encoding }: Extract<Begun, { kind: 'whole' }>): boolean {
  return encoding === undefined && failureOf(bytes) !== undefined;
}

function partFrom(reply: Reply, { call }: Forwarded): Part {
  switch (reply.kind) {
    case 'whole':
      return { kind: 'bytes', bytes: reply.bytes };
    case 'stream':
      return { kind: 'stream', body: reply.body };
    case 'too-large':
      return { kind: 'bytes', bytes: rpcError(INVALID_REQUEST, 'Request body too large', call.id) };
    case 'no-backend':
    case 'caller-left':
      return { kind: 'bytes', bytes: rpcError(NO_BACKEND, 'No backend available', call.id) };
    default:
      return unreachable(reply);
  }
}

function headersOf({ request, price, charge }: Admitted): Headers {
  const headers = new Headers({ 'content-type': JSON_TYPE, 'x-credits-cost': String(price.credits) });
  if (charge.creditsLeft !== undefined) headers.set('x-credits-left', String(charge.creditsLeft));
  const fields = { ...rateFields(charge.rate), ...corsFields(request.headers) };
  for (const [name, value] of Object.entries(fields)) headers.set(name, value);
  return headers;
}
