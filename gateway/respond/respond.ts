import { corsFields } from '../request/http.ts';
import type { Reply } from '../upstream/forward.ts';
import type { StreamBody, StreamEnd } from '../upstream/response-reader.ts';
import { type BatchParts, createBatch } from './batch.ts';
import { divided, wantsLines } from './ndjson.ts';
import {
  type Admitted,
  countedPart,
  type ForwardCall,
  isUnanswered,
  nothing,
  type Outcome,
  outcomeOf,
  type Part,
  refundsOf,
} from './planned-call.ts';
import { type Fields, JSON_TYPE, rateFields, refuse } from './refusal.ts';

/** Answers an admitted request: one element as it comes, or a batch spliced in order. */
export type Respond = (admitted: Admitted) => Response | Promise<Response>;

type Parts = BatchParts &
  Readonly<{
    /** Called with the outcome of an admitted request; a batch counts as answered, whatever its calls return. */
    onOutcome(outcome: Outcome): void;
  }>;

export function createRespond({ onOutcome, ...parts }: Parts): Respond {
  const { send, charging, onCall } = parts;
  const batch = createBatch(parts);

  return function respond(admitted) {
    const [first] = admitted.planned;
    if (admitted.envelope.kind === 'single' && first?.kind === 'forward') return forwarded(first, admitted);
    onOutcome('answered');
    const headers = fieldsOf(admitted);
    if (admitted.envelope.kind === 'single' && first?.kind === 'answered') {
      return responseWith(countedPart(first, admitted.usage, 0), headers);
    }
    const body = batch(admitted);
    return body === undefined
      ? new Response(null, { headers })
      : body.then((bytes) => new Response(bytes, { headers }));
  };

  async function forwarded(planned: ForwardCall, admitted: Admitted): Promise<Response> {
    const { request, caller, plan, usage } = admitted;
    const asLines = planned.route.name === 'getProgramAccounts' && wantsLines(request.headers);
    const acceptEncoding = asLines ? 'identity' : (request.headers.get('accept-encoding') ?? 'identity');
    const reply = await send(planned, plan, {
      acceptEncoding,
      accountId: caller.accountId,
      onSettled: nothing,
      // It is made only where it is read.
      get signal() {
        return request.signal;
      },
    });
    const outcome = outcomeOf(reply);
    onCall(planned.label, outcome);
    onOutcome(outcome);
    if (reply.kind !== 'whole' && reply.kind !== 'stream') return unanswered(reply, admitted);
    const { type, answer } = asLines
      ? await divided(reply, request.signal)
      : { type: JSON_TYPE, answer: reply };
    const headers = fieldsOf(admitted, type, answer.encoding);
    return responseWith(countedPart(answer, usage, 0), headers, (end) => {
      // A stream that its backend cut is not paid for; one whose caller left is (DESIGN 3.8).
      if (end.kind === 'complete' || end.reason === 'cancelled') return;
      refundsOf(charging, admitted)(0);
      usage.error(0);
    });
  }

  function unanswered(reply: Exclude<Reply, { kind: 'whole' | 'stream' }>, admitted: Admitted): Response {
    if (isUnanswered(reply)) refundsOf(charging, admitted)(0);
    if (reply.kind === 'caller-left') return new Response(null, { status: 499 });
    const { request, envelope, caller, plan, charge, usage } = admitted;
    usage.error(0);
    // The whole request is refused, so it takes no rate either: its Retry-After is true.
    charging.refund(caller, plan, { calls: 1, credits: 0 });
    const refusal = reply.kind === 'no-backend' ? reply : TOO_LARGE;
    return refuse(refusal, envelope, { ...rateFields(charge.rate), ...corsFields(request.headers) });
  }
}

const TOO_LARGE = { kind: 'body-too-large', isEndless: false } as const;

function responseWith(part: Part, headers: Fields, onEnd: (end: StreamEnd) => void = nothing): Response {
  if (part.kind === 'stream') return new Response(streamSingle(part.body, onEnd), { headers });
  part.onSent?.();
  return new Response(part.bytes, { headers });
}

function fieldsOf({ request, credits, charge }: Admitted, type = JSON_TYPE, encoding?: string): Fields {
  const fields: Fields = {
    'content-type': type,
    'x-credits-cost': String(credits),
    ...rateFields(charge.rate),
    ...corsFields(request.headers),
  };
  if (charge.creditsLeft !== undefined) fields['x-credits-left'] = String(charge.creditsLeft);
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
