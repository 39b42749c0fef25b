import { unreachable } from '../../shared/brand.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Prices } from '../../shared/config/prices.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Charge, Charging } from '../limits/charge.ts';
import type { Price } from '../limits/charge.ts';
import type { ScanPermits } from '../limits/scans.ts';
import type { Call, Element, Envelope } from '../request/envelope.ts';
import { corsFields } from '../request/http.ts';
import type { Sibling } from '../upstream/backend.ts';
import { failureOf } from '../upstream/failure.ts';
import type { Forward, Reply } from '../upstream/forward.ts';
import { SPENT } from '../upstream/http-connection.ts';
import type { Begun, StreamBody, StreamEnd } from '../upstream/response-reader.ts';
import type { Route, RouteOf } from '../upstream/router.ts';
import { countedBody, type Tally } from '../usage/usage.ts';
import { type Beat, type OnWait, type Part, type Start, streamBatch } from './batch.ts';
import { divided, NDJSON_TYPE, wantsLines } from './ndjson.ts';
import { INVALID_REQUEST, METHOD_NOT_FOUND, NO_BACKEND, rateFields, refuse, rpcError } from './refusal.ts';

/** What is to be done for one element, and what it costs. */
export type Work =
  | Forwarded
  /** The gateway answers it itself. */
  | { readonly kind: 'answered'; readonly bytes: Uint8Array<ArrayBuffer>; readonly credits: number }
  /** A notification: nothing is sent and nothing is answered. */
  | { readonly kind: 'silent'; readonly credits: 0 };

/** A call for a backend. */
type Forwarded = Readonly<{
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

/** Who asks a backend for a call, and how. */
type AskedBy = Readonly<{
  caller: Caller;
  plan: Plan;
  acceptEncoding: string;
  /** Aborts when the caller leaves. */
  signal: AbortSignal;
  /** Told when the call must wait for a permit or for a place at a backend. */
  onWait?: OnWait;
  /** Where the call stands in its batch. */
  sibling?: Sibling;
}>;

/** Asks a backend for a call, when the call is a scan with a permit. Never rejects. */
type Ask = (work: Forwarded, by: AskedBy) => Promise<Reply>;

function createAsk(forward: Forward, permits: ScanPermits): Ask {
  return async function ask({ call, route }, { caller, plan, acceptEncoding, signal, onWait, sibling }) {
    const { accountId } = caller;
    let onOver = nothing;
    if (route.method.class === 'scan') {
      const permit = permits.take(accountId, plan.scans, signal);
      const onPermit = permit instanceof Promise ? onWait?.() : undefined;
      // Without a wait when there is one: a batch's calls ask for places in its order.
      onOver = permit instanceof Promise ? await permit : permit;
      onPermit?.();
    }
    return forward(call, route, {
      acceptEncoding,
      signal,
      onOver,
      accountId,
      ...(onWait && { onWait }),
      ...(sibling && { sibling }),
    });
  };
}

function nothing(): void {
  // a call that holds no permit has none to give back
}

/** How a call ended. */
type Outcome = 'answered' | Exclude<Reply['kind'], 'whole' | 'stream'>;

function outcomeOf({ kind }: Reply): Outcome {
  return kind === 'whole' || kind === 'stream' ? 'answered' : kind;
}

/** Whether no backend took the call, so that it is not paid for. */
function isUnanswered(reply: Reply): boolean {
  if (reply.kind === 'caller-left') return reply.unsent === true;
  return reply.kind === 'no-backend' || reply.kind === 'too-large';
}

/** Gives the price of the call at a place back to the account, and takes it out of its usage; once, however often it is called. */
type Refund = (place: number) => void;

type Paid = Readonly<{
  works: readonly Work[];
  caller: Caller;
  plan: Plan;
  tally: Pick<Tally, 'refund'>;
}>;

/** The refunds of one request that was paid for. */
export function refundsOf(charging: Charging, { works, caller, plan, tally }: Paid): Refund {
  const given: boolean[] = [];
  return function refund(place) {
    if (given[place]) return;
    given[place] = true;
    charging.refund(caller, plan, { calls: 0, credits: works[place]?.credits ?? 0 });
    tally.refund(place);
  };
}

/**
 * One backend's answer as a body of ours, piece by piece, waiting while its reader is behind. It ends cleanly only
 * when the answer was whole; otherwise the caller's connection is cut (DESIGN 3.6). `onEnd` is told how it ended.
 */
export function streamSingle(body: StreamBody, onEnd: (end: StreamEnd) => void): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      const end = await body.pipe((piece) => {
        const wait: unknown = controller.write(piece);
        return wait instanceof Promise ? wait.then(() => SPENT) : SPENT;
      });
      onEnd(end);
      if (end.kind === 'complete') controller.close();
      else controller.close(new Error(`the answer broke off: ${end.reason}`));
    },
    cancel: () => body.cancel(),
  };
  return new ReadableStream(source);
}

/** A request that was let in and paid for. */
type Admitted = Readonly<{
  request: Request;
  envelope: Envelope;
  /** What is to be done for each of its elements, in order. */
  works: readonly Work[];
  caller: Caller;
  plan: Plan;
  price: Price;
  charge: Extract<Charge, { kind: 'charged' }>;
  /** Counts what becomes of it; places are those of `works`. */
  tally: Pick<Tally, 'answered' | 'bytes' | 'error' | 'refund'>;
}>;

/** Answers an admitted request: one element as it comes, or a batch spliced in order. */
export type Respond = (admitted: Admitted) => Promise<Response>;

/** Told how the call of a method ended, once; and again of one that was asked again and then had no answer. */
type OnCall = (method: string, outcome: Outcome) => void;

/** Told how an admitted request ended; a batch is answered, whatever its calls say. */
type OnAnswer = (outcome: Outcome) => void;

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
  const ask = createAsk(forward, permits);

  return async function respond(admitted) {
    const [first] = admitted.works;
    return admitted.envelope.kind === 'single' && first !== undefined
      ? single(first, admitted)
      : batch(admitted);
  };

  async function single(work: Work, admitted: Admitted): Promise<Response> {
    const headers = headersOf(admitted);
    const { request, caller, plan, tally } = admitted;
    if (work.kind !== 'forward') {
      onOutcome('answered');
      if (work.kind === 'answered') {
        tally.error(0);
        tally.answered(0);
        tally.bytes(0, work.bytes.length);
      }
      return new Response(work.kind === 'answered' ? work.bytes : null, { headers });
    }
    const { signal } = request;
    const asLines = work.route.name === 'getProgramAccounts' && wantsLines(request.headers);
    const acceptEncoding = asLines ? 'identity' : (request.headers.get('accept-encoding') ?? 'identity');
    const reply = await ask(work, { caller, plan, acceptEncoding, signal });
    const refund = refundsOf(charging, admitted);
    onCall(work.route.name, outcomeOf(reply));
    onOutcome(outcomeOf(reply));
    if (isUnanswered(reply)) refund(0);
    if (reply.kind === 'no-backend' || reply.kind === 'too-large') {
      tally.error(0);
      // The whole request is refused, so it takes no rate either: its Retry-After is true.
      charging.refund(caller, plan, { calls: 1, credits: 0 });
      const fields = { ...rateFields(admitted.charge.rate), ...corsFields(request.headers) };
      const refusal =
        reply.kind === 'no-backend' ? reply : ({ kind: 'body-too-large', isEndless: false } as const);
      return refuse(refusal, admitted.envelope, fields);
    }
    if (reply.kind === 'caller-left') return new Response(null, { status: 499 });
    const { kind, answer } = asLines ? await divided(reply, signal) : { kind: 'json', answer: reply };
    if (kind === 'lines') headers.set('content-type', NDJSON_TYPE);
    if (answer.encoding !== undefined) {
      headers.set('content-encoding', answer.encoding);
      headers.set('vary', 'accept-encoding');
    }
    if (answer.kind === 'whole') {
      if (isError(answer)) tally.error(0);
      tally.answered(0);
      tally.bytes(0, answer.bytes.length);
      return new Response(answer.bytes, { headers });
    }
    const settle = (end: StreamEnd) => refundIfCut(end, refund, tally);
    return new Response(streamSingle(countedBody(answer.body, tally, 0), settle), { headers });
  }

  function batch(admitted: Admitted): Response {
    onOutcome('answered');
    const { request, tally } = admitted;
    const abort = new AbortController();
    const refund = refundsOf(charging, admitted);
    const spoken: Spoken[] = [...admitted.works.entries()].flatMap(([place, work]) =>
      work.kind === 'silent' ? [] : [{ place, work, asks: 0 }],
    );
    // What nobody was asked for costs nothing, whoever broke the batch off.
    const refundUnasked = () => spoken.forEach(({ place, asks }) => asks === 0 && refund(place));
    abort.signal.addEventListener('abort', refundUnasked, { once: true });
    // The caller may have left while the charge was written; an aborted signal fires no event.
    const leave = () => abort.abort(request.signal.reason);
    if (request.signal.aborted) leave();
    else request.signal.addEventListener('abort', leave, { once: true });
    const starts = spoken.map((one) => startOf(one, admitted, refund, abort.signal));
    const headers = headersOf(admitted);
    if (starts.length === 0) return new Response(null, { headers });
    return new Response(streamBatch(starts, abort, refundFrom, beat), { headers });

    /** What a batch that broke off did not deliver is not paid for: the answer at `first` and all behind it. */
    function refundFrom(first: number): void {
      if (request.signal.aborted) return;
      for (const { place } of spoken.slice(first)) {
        refund(place);
        tally.error(place);
      }
    }
  }

  /** Begins the answer of a batch's element; that of a call whose answer was let go, once more. */
  function startOf(one: Spoken, admitted: Admitted, refund: Refund, signal: AbortSignal): Start {
    const { place, work } = one;
    const { caller, plan, tally } = admitted;
    return async (onWait) => {
      const isFirst = one.asks++ === 0;
      if (work.kind === 'answered') {
        tally.error(place);
        return countedAnswer(work.bytes);
      }
      const sibling = { batch: admitted, place };
      const reply = await ask(work, { caller, plan, acceptEncoding: 'identity', signal, onWait, sibling });
      const outcome = outcomeOf(reply);
      if (isFirst || outcome !== 'answered') onCall(work.route.name, outcome);
      // One that was let go has been sent before.
      if (isUnanswered(reply) && (isFirst || outcome !== 'caller-left')) refund(place);
      return partOf(reply, work);
    };

    function partOf(reply: Reply, { call, route }: Forwarded): Part {
      switch (reply.kind) {
        case 'whole':
          if (isError(reply)) tally.error(place);
          return countedAnswer(reply.bytes);
        case 'stream':
          return countedStream(reply.body, route.method.class !== 'write');
        case 'too-large':
          tally.error(place);
          return countedBytes(rpcError(INVALID_REQUEST, 'Request body too large', call.id));
        case 'no-backend':
          tally.error(place);
          return countedBytes(rpcError(NO_BACKEND, 'No backend available', call.id));
        case 'caller-left':
          return { kind: 'bytes', bytes: rpcError(NO_BACKEND, 'No backend available', call.id) };
        default:
          return unreachable(reply);
      }
    }

    function countedAnswer(bytes: Uint8Array<ArrayBuffer>): Part {
      const onSent = () => {
        tally.answered(place);
        tally.bytes(place, bytes.length);
      };
      return { kind: 'bytes', bytes, onSent };
    }

    function countedBytes(bytes: Uint8Array<ArrayBuffer>): Part {
      return { kind: 'bytes', bytes, onSent: () => tally.bytes(place, bytes.length) };
    }

    function countedStream(body: StreamBody, mayRepeat: boolean): Part {
      return { kind: 'stream', body: countedBody(body, tally, place), mayRepeat };
    }
  }
}

/** An element of a batch that is answered, and how often its answer was begun. */
type Spoken = { readonly place: number; readonly work: Exclude<Work, { kind: 'silent' }>; asks: number };

/** A stream that its backend cut is not paid for; one whose caller left is (DESIGN 3.8). */
function refundIfCut(end: StreamEnd, refund: Refund, tally: Admitted['tally']): void {
  if (end.kind === 'complete' || end.reason === 'cancelled') return;
  refund(0);
  tally.error(0);
}

/** Whether a small answer is an error of the method; a compressed one is not looked into. */
function isError({ bytes, encoding }: Extract<Begun, { kind: 'whole' }>): boolean {
  return encoding === undefined && failureOf(bytes) !== undefined;
}

function headersOf({ request, price, charge }: Admitted): Headers {
  const headers = new Headers({ 'content-type': JSON_TYPE, 'x-credits-cost': String(price.credits) });
  if (charge.creditsLeft !== undefined) headers.set('x-credits-left', String(charge.creditsLeft));
  const fields = { ...rateFields(charge.rate), ...corsFields(request.headers) };
  for (const [name, value] of Object.entries(fields)) headers.set(name, value);
  return headers;
}
