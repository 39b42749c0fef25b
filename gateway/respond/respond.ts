import { corsFields } from '../request/http.ts';
import type { CallContext, Reply } from '../upstream/forward.ts';
import type { ResponseStart, StreamBody, StreamEnd } from '../upstream/response-reader.ts';
import { countedBody } from '../usage/usage.ts';
import { type BatchParts, createBatch } from './batch.ts';
import { divided, NDJSON_TYPE, wantsLines } from './ndjson.ts';
import {
  type Admitted,
  type ForwardCall,
  isMethodError,
  isUnanswered,
  type Outcome,
  outcomeOf,
  refundsOf,
} from './planned-call.ts';
import { rateFields, rateLeft, ratePolicy, refuse } from './refusal.ts';

/** Answers an admitted request: one element as it comes, or a batch spliced in order. */
export type Respond = (admitted: Admitted) => Response | Promise<Response>;

type Parts = BatchParts &
  Readonly<{
    /** Called with the outcome of an admitted request; a batch counts as answered, whatever its calls return. */
    onOutcome(outcome: Outcome): void;
  }>;

/** Header fields of an answer, by name. */
type Fields = Record<string, string>;

const JSON_TYPE = 'application/json; charset=utf-8';

export function createRespond({ onOutcome, ...parts }: Parts): Respond {
  const { send, charging, onCall } = parts;
  const batch = createBatch(parts);

  return function respond(admitted) {
    const [first] = admitted.planned;
    if (admitted.envelope.kind === 'batch' || first === undefined) {
      onOutcome('answered');
      const headers = fieldsOf(admitted);
      const body = batch(admitted);
      return body === undefined
        ? new Response(null, { headers })
        : body.then((bytes) => new Response(bytes, { headers }));
    }
    if (first.kind === 'forward') return forwarded(first, admitted);
    onOutcome('answered');
    if (first.kind === 'notification') return new Response(null, { headers: fieldsOf(admitted) });
    admitted.usage.error(0);
    return whole(first.bytes, admitted, fieldsOf(admitted));
  };

  function forwarded(planned: ForwardCall, admitted: Admitted): Promise<Response> {
    const { request, plan } = admitted;
    const asLines = planned.route.name === 'getProgramAccounts' && wantsLines(request.headers);
    const acceptEncoding = asLines ? 'identity' : (request.headers.get('accept-encoding') ?? 'identity');
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    send(planned, plan, contextOf(admitted, acceptEncoding), (reply) => {
      try {
        const outcome = outcomeOf(reply);
        onCall(planned.label, outcome);
        onOutcome(outcome);
        if (reply.kind !== 'whole' || asLines) return resolve(rare(reply, asLines, admitted));
        if (isMethodError(reply)) admitted.usage.error(0);
        resolve(whole(reply.bytes, admitted, fieldsOf(admitted, reply.encoding)));
      } catch (error) {
        reject(error); // it must not end in the socket's handler, and with it the process
      }
    });
    return promise;
  }

  /** Everything but a small answer as it is. */
  async function rare(reply: Reply, asLines: boolean, admitted: Admitted): Promise<Response> {
    const { request, usage, caller, plan } = admitted;
    const refund = refundsOf(charging, admitted);
    if (isUnanswered(reply)) refund(0);
    if (reply.kind === 'no-backend' || reply.kind === 'too-large') {
      usage.error(0);
      // The whole request is refused, so it takes no rate either: its Retry-After is true.
      charging.refund(caller, plan, { calls: 1, credits: 0 });
      const fields = { ...rateFields(admitted.charge.rate), ...corsFields(request.headers) };
      const refusal =
        reply.kind === 'no-backend' ? reply : ({ kind: 'body-too-large', isEndless: false } as const);
      return refuse(refusal, admitted.envelope, fields);
    }
    if (reply.kind === 'caller-left') return new Response(null, { status: 499 });
    const { kind, answer } = asLines ? await divided(reply, request.signal) : { kind: 'json', answer: reply };
    const fields = fieldsOf(admitted, answer.encoding);
    if (kind === 'lines') fields['content-type'] = NDJSON_TYPE;
    if (answer.kind === 'whole') {
      if (isMethodError(answer)) usage.error(0);
      return whole(answer.bytes, admitted, fields);
    }
    const onEnd = (end: StreamEnd) => {
      // A stream that its backend cut is not paid for; one whose caller left is (DESIGN 3.8).
      if (end.kind === 'complete' || end.reason === 'cancelled') return;
      refund(0);
      usage.error(0);
    };
    return new Response(streamSingle(countedBody(answer.body, usage, 0), onEnd), { headers: fields });
  }
}

/** The context of a single call. The signal is made only where it is read. */
function contextOf({ request, caller }: Admitted, acceptEncoding: string): CallContext {
  const { accountId } = caller;
  return {
    acceptEncoding,
    accountId,
    onSettled: nothing,
    get signal() {
      return request.signal;
    },
  };
}

function nothing(): void {
  // a call that holds no permit has none to give back
}

function whole(bytes: Uint8Array<ArrayBuffer>, { usage }: Admitted, headers: Fields): Response {
  usage.answered(0);
  usage.bytes(0, bytes.length);
  return new Response(bytes, { headers });
}

function fieldsOf({ request, credits, charge }: Admitted, encoding?: ResponseStart['encoding']): Fields {
  const fields: Fields = {
    'content-type': JSON_TYPE,
    'x-credits-cost': String(credits),
    ratelimit: rateLeft(charge.rate),
    'ratelimit-policy': ratePolicy(charge.rate),
  };
  if (charge.creditsLeft !== undefined) fields['x-credits-left'] = String(charge.creditsLeft);
  if (request.headers.has('origin')) Object.assign(fields, corsFields(request.headers));
  if (encoding !== undefined) {
    fields['content-encoding'] = encoding;
    fields['vary'] = 'accept-encoding';
  }
  return fields;
}

/**
 * One backend's answer as a body of ours, piece by piece, waiting while its reader is behind. It ends cleanly only
 * when the answer was whole; otherwise the caller's connection is cut (DESIGN 3.6). `onEnd` gets how it ended.
 */
export function streamSingle(body: StreamBody, onEnd: (end: StreamEnd) => void): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      const end = await body.pipe((piece) => controller.write(piece));
      onEnd(end);
      if (end.kind === 'complete') controller.close();
      else controller.close(new Error(`the answer broke off: ${end.reason}`));
    },
    cancel: () => body.cancel(),
  };
  return new ReadableStream(source);
}
