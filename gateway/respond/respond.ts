import type { Coding } from '../../shared/config/kinds.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/source.ts';
import type { CallPermits } from '../limits/calls.ts';
import { type Charge, type Charging, rateFields } from '../limits/charge.ts';
import type { Envelope } from '../request/envelope.ts';
import { corsFields, type Fields, type RpcRequest, RpcResponse } from '../listener/rpc.ts';
import { bodyOf } from '../upstream/cache.ts';
import type { CallReply } from '../upstream/failover.ts';
import { isUnread, type StreamEnd, watched } from '../http/stream-body.ts';
import { type ResponseStart, WHOLE_BYTES_MAX } from '../upstream/response-reader.ts';
import { countedBody, type RequestUsage } from '../usage/usage.ts';
import { type Beat, type Evict, type OnWait, type Part, spliceBatch } from './batch.ts';
import { codingFor, compressed } from './compress.ts';
import { divided, wantsLines } from './ndjson.ts';
import {
  type AnsweredCall,
  type ForwardCall,
  isForward,
  isLight,
  type PlannedCall,
  type Send,
} from './planned-call.ts';
import { JSON_TYPE, type Refusal, refusalError, refuse } from './refusal.ts';

/** A request that was let in and paid for. One that has a call for a backend was let in with a permit for its first. */
type Admitted = Readonly<{
  request: RpcRequest;
  envelope: Envelope;
  /** One for each of its elements, in order. */
  planned: readonly PlannedCall[];
  caller: Caller;
  plan: Plan;
  credits: number;
  charge: Extract<Charge, { kind: 'charged' }>;
  usage: Pick<RequestUsage, 'answered' | 'bytes' | 'error' | 'refund'>;
}>;

/** Answers an admitted request: one element as it comes, or a batch spliced in order. */
export type Respond = (admitted: Admitted) => RpcResponse | Promise<RpcResponse>;

type WholeReply = Extract<CallReply, { kind: 'whole' }>;
type UnansweredReply = Exclude<CallReply, ResponseStart>;

type CallOutcome = 'answered' | UnansweredReply['kind'];

type RespondParts = Readonly<{
  send: Send;
  charging: Pick<Charging, 'refund' | 'creditsLeft'>;
  permits: Pick<CallPermits, 'ofBatch' | 'giveBack'>;
  /** Called once with the outcome of a call, and again when it was sent again without an answer. */
  onCall(method: string, outcome: CallOutcome): void;
  /** Called with the outcome of an admitted request; a batch counts as answered, whatever its calls return. */
  onOutcome(outcome: CallOutcome): void;
  /** Codings of large plain answers; none: they go out as they are. */
  codings: readonly Coding[];
  /** The names by which callers see backends; `undefined`: they do not. */
  backendNames: ReadonlyMap<string, string> | undefined;
  gather: Beat;
  beat: Beat;
}>;

export function createRespond(parts: RespondParts): Respond {
  const { send, charging, permits, onCall, onOutcome, codings, backendNames } = parts;

  return function respond(admitted) {
    const [first] = admitted.planned;
    if (admitted.envelope.kind === 'single' && first?.kind === 'forward') return forwarded(first, admitted);
    onOutcome('answered');
    if (admitted.envelope.kind === 'single' && first?.kind === 'answered')
      return answered(first.answer, JSON_TYPE, admitted);
    const isSilent = admitted.planned.every(({ kind }) => kind === 'notification');
    if (isSilent) return new RpcResponse({ status: 200, fields: fieldsOf(admitted, JSON_TYPE) });
    const refund = refundsOf(charging, admitted);
    const { request } = admitted;
    return batchBody(parts, admitted, refund).then((body) => {
      // What is given back later, of an answer that has begun, its head cannot say.
      const paid = { ...admitted, credits: admitted.credits - refund.credits() };
      const isWhole = body instanceof Uint8Array;
      const isLarge = !isWhole || body.length > WHOLE_BYTES_MAX;
      const coding = isLarge && codings.length > 0 ? wantedBy(request) : undefined;
      const fields = fieldsOf(paid, JSON_TYPE, coding);
      if (isLarge && codings.length > 0) fields['vary'] = VARY;
      if (coding === undefined) return new RpcResponse({ status: 200, fields, body });
      return new RpcResponse({
        status: 200,
        fields,
        body: compressed(isWhole ? bodyOf([body]) : body, coding),
      });
    });
  };

  function forwarded(planned: ForwardCall, admitted: Admitted): Promise<RpcResponse> {
    const { request, caller, plan } = admitted;
    const { accountId } = caller;
    const asLines = planned.route.method.lines && wantsLines(request.headers);
    return send(planned, plan, {
      accountId,
      // Lazy: the runtime makes the signal when it is first read.
      get signal() {
        return request.signal;
      },
      request,
    }).then((reply) => {
      request.onSent(() => permits.giveBack(accountId));
      const outcome = outcomeOf(reply);
      onCall(planned.label, outcome);
      onOutcome(outcome);
      if (reply.kind !== 'whole' && reply.kind !== 'stream') return unanswered(reply, admitted, charging);
      if (!asLines) return answered(reply, JSON_TYPE, admitted);
      return divided(reply, request.signal).then(({ type, answer }) => answered(answer, type, admitted));
    });
  }

  function wantedBy({ headers }: RpcRequest): Coding | undefined {
    return codingFor(headers.get('accept-encoding'), codings);
  }

  /** An answer is compressed when it is large, or does not say how long it is. */
  function answered(answer: ResponseStart, type: string, admitted: Admitted): RpcResponse {
    const isLarge = answer.kind === 'stream' || answer.bytes.length > WHOLE_BYTES_MAX;
    const varies = isLarge && codings.length > 0;
    const coding = varies ? wantedBy(admitted.request) : undefined;
    const fields = fieldsOfAnswer(admitted, type, answer, coding);
    if (varies) fields['vary'] = VARY;
    if (answer.kind === 'whole' && coding === undefined) {
      if (answer.code !== undefined) admitted.usage.error(0);
      admitted.usage.answered(0, answer.bytes.length);
      return new RpcResponse({ status: 200, fields, body: answer.bytes });
    }
    const onEnd = (end: StreamEnd) => {
      // A stream that its backend cut is not paid for; one whose caller left or did not read it is.
      if (end.kind === 'complete' || end.reason === 'cancelled' || isUnread(end)) return;
      refundsOf(charging, admitted)(0);
      admitted.usage.error(0);
    };
    // Bytes count as the backend sent them.
    const { code } = answer;
    const sent = answer.kind === 'stream' ? answer.body : bodyOf([answer.bytes]);
    const body = countedBody({ body: sent, code }, admitted.usage, 0);
    if (coding !== undefined)
      return new RpcResponse({ status: 200, fields, body: compressed(body, coding), onEnd });
    const length = answer.kind === 'stream' ? answer.length : undefined;
    return new RpcResponse({ status: 200, fields, body, length, onEnd });
  }

  function fieldsOf({ request, credits, charge, caller, plan }: Admitted, type: string, encoding?: string) {
    const fields: Fields = rateFields(charge.rate);
    fields['content-type'] = type;
    fields['x-credits-cost'] = String(credits);
    if (request.headers.has('origin')) Object.assign(fields, corsFields(request.headers));
    const left = charging.creditsLeft(caller.accountId, plan);
    if (left !== undefined) fields['x-credits-left'] = String(left);
    if (encoding !== undefined) {
      fields['content-encoding'] = encoding;
      fields['vary'] = VARY;
    }
    return fields;
  }

  function fieldsOfAnswer(
    admitted: Admitted,
    type: string,
    answer: ResponseStart,
    encoding?: string,
  ): Fields {
    const fields = fieldsOf(admitted, type, encoding);
    const name = backendNames?.get(answer.backend ?? '');
    if (name === undefined) return fields;
    fields['x-sluice-backend'] = name;
    const { slot = 0 } = answer;
    if (slot > 0) fields['x-sluice-slot'] = String(slot);
    return fields;
  }
}

function unanswered(
  reply: UnansweredReply,
  admitted: Admitted,
  charging: RespondParts['charging'],
): RpcResponse {
  if (isUnanswered(reply)) refundsOf(charging, admitted)(0, !keepsRate(reply));
  if (reply.kind === 'caller-left') return new RpcResponse({ status: 499, fields: {} });
  const { request, envelope, charge, usage } = admitted;
  usage.error(0);
  return refuse(refusalOf(reply), envelope, { ...rateFields(charge.rate), ...corsFields(request.headers) });
}

/** The answers to the calls of a batch, spliced in their order. */
function batchBody(
  { send, permits, onCall, gather, beat }: RespondParts,
  admitted: Admitted,
  refund: Refund,
): ReturnType<typeof spliceBatch> {
  const { request, planned, plan, caller, usage } = admitted;
  const answered = planned.flatMap((one, index) => (one.kind === 'notification' ? [] : [{ one, index }]));
  const abort = new AbortController();
  const unsent = new Set(answered.map(({ index }) => index));
  const calls = permits.ofBatch(caller.accountId, plan.inFlight);
  if (planned.some(isForward)) request.onSent(calls.sent);
  // What was never sent costs nothing, whoever broke the batch off.
  const abandon = () => unsent.forEach((index) => refund(index));
  abort.signal.addEventListener('abort', abandon, { once: true });
  // The caller may have left while the charge was written; an aborted signal fires no event.
  const leave = () => abort.abort(request.signal.reason);
  if (request.signal.aborted) leave();
  else request.signal.addEventListener('abort', leave, { once: true });
  const starts = answered.map(({ one, index }) => ({
    isLight: one.kind === 'forward' && isLight(one),
    begin: begin.bind(undefined, one, index),
  }));
  return spliceBatch(starts, abort, refundFrom, gather, beat);

  /** Refunds what a batch that broke off did not deliver: the answer at `first` and all behind it. */
  function refundFrom(first: number): void {
    if (request.signal.aborted) return;
    for (const { index } of answered.slice(first)) {
      refund(index);
      usage.error(index);
    }
  }

  function wholePart(answer: WholeReply, index: number): Part {
    const { bytes, code } = answer;
    if (code !== undefined) usage.error(index);
    return { kind: 'bytes', bytes, onSent: () => usage.answered(index, bytes.length) };
  }

  async function begin(
    one: AnsweredCall | ForwardCall,
    index: number,
    onWait: OnWait,
    evict: Evict,
  ): Promise<Part> {
    const isFirst = unsent.delete(index);
    if (one.kind === 'answered') return wholePart(one.answer, index);
    const { signal } = abort;
    const by = { accountId: caller.accountId, signal, inBatch: { batch: admitted, index, onWait, evict } };
    const permit = calls.wait(signal);
    // Without a wait when there is one: the calls ask for connections in the batch's order.
    const isPermitted = permit instanceof Promise ? await whileWaiting(permit, onWait) : permit;
    const reply = isPermitted ? whenEnded(await send(one, plan, by), signal, calls.done) : NOT_SENT;
    const outcome = outcomeOf(reply);
    if (isFirst || outcome !== 'answered') onCall(one.label, outcome);
    // One that was evicted has been sent before.
    if (isUnanswered(reply) && (isFirst || outcome !== 'caller-left')) refund(index, !keepsRate(reply));
    if (reply.kind === 'whole') return wholePart(reply, index);
    if (reply.kind === 'stream') {
      const mayRepeat = one.route.method.class !== 'write';
      return { kind: 'stream', body: countedBody(reply, usage, index), mayRepeat };
    }
    if (reply.kind !== 'caller-left') usage.error(index);
    const bytes = refusalError(refusalOf(reply), one.call.id);
    return { kind: 'bytes', bytes, onSent: () => usage.bytes(index, bytes.length) };
  }
}

/** Calls `then` when an answer is there whole, or its stream has ended. */
function whenEnded(reply: CallReply, signal: AbortSignal, then: () => void): CallReply {
  if (reply.kind === 'stream') return { ...reply, body: watched(reply.body, signal, then) };
  then();
  return reply;
}

const NOT_SENT: CallReply = { kind: 'caller-left', unsent: true };

function whileWaiting<T>(permit: Promise<T>, onWait: OnWait): Promise<T> {
  const onGranted = onWait();
  return permit.finally(onGranted);
}

function refusalOf({ kind }: UnansweredReply): Refusal {
  if (kind === 'too-large') return { kind: 'body-too-large' };
  return { kind: kind === 'maybe-sent' ? kind : 'no-backend' };
}

/** Gives back the credits of a call by its index in the request, and its token of the rate where `withRate`. */
type Refund = (index: number, withRate?: boolean) => void;

/** Refunds that are taken out of usage too; once for each call, however often they are called. */
function refundsOf(
  charging: Pick<Charging, 'refund'>,
  { planned, caller, plan, usage }: Pick<Admitted, 'planned' | 'caller' | 'plan' | 'usage'>,
): Refund & Readonly<{ credits(): number }> {
  const refunded: boolean[] = [];
  let total = 0;
  function refund(index: number, withRate = false): void {
    if (refunded[index]) return;
    refunded[index] = true;
    const credits = planned[index]?.credits ?? 0;
    total += credits;
    charging.refund(caller, plan, { calls: withRate ? 1 : 0, credits });
    usage.refund(index);
  }
  return Object.assign(refund, { credits: () => total });
}

function outcomeOf({ kind }: CallReply): CallOutcome {
  return kind === 'whole' || kind === 'stream' ? 'answered' : kind;
}

/** Whether no backend took the call, so that it is not paid for. */
function isUnanswered(reply: CallReply): boolean {
  if (reply.kind === 'caller-left') return reply.unsent === true;
  return reply.kind !== 'whole' && reply.kind !== 'stream';
}

/** Whether a call without an answer keeps its token: a backend replied, or may have acted on it, or its caller left. */
function keepsRate(reply: CallReply): boolean {
  if (reply.kind === 'caller-left' || reply.kind === 'maybe-sent') return true;
  return 'replied' in reply && reply.replied === true;
}

const VARY = 'accept-encoding';
