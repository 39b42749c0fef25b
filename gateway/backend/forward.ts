import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import type { Call } from '../request/call.ts';
import type { Method } from '../route/methods.ts';
import type { Route } from '../route/router.ts';
import { type Backend, inOrder } from './backend.ts';
import { withRoom } from './room.ts';
import type { Begun, StreamBody, StreamEnd } from './begun.ts';
import { deadlineMsOf } from './deadline.ts';
import { type Failure, isItsFault, mayTryAnother } from './failure.ts';
import { judge } from './judge.ts';
import { adviceOn, failureOf, isThrottling } from './rpc-failure.ts';
import { requestBody } from './request-body.ts';

/** A backend's answer under way, or what is left to say when no backend gave one. */
export type Reply =
  | Begun
  | { readonly kind: 'no-backend' }
  /** The caller left before an answer began; what was sent was sent, so the call is paid for. */
  | { readonly kind: 'caller-left' };

/**
 * Sends a call to its route's backends in order until one begins an answer. Only before the first byte is another
 * tried, so no caller ever sees two answers; an error that another backend may mend is the answer when none does. Aborting `signal` (the caller left) ends the backend's exchange, also
 * in the middle of the answer. Never rejects.
 */
export type Forward = (
  call: Call,
  route: Extract<Route, { kind: 'forward' }>,
  asking: Asking,
) => Promise<Reply>;

/** Who asks, and how. */
export type Asking = Readonly<{
  /** The content encodings the caller can read. */
  acceptEncoding: string;
  /** Aborts when the caller leaves. */
  signal: AbortSignal;
  /** The account that asks. */
  accountId: number;
  /** Asks nodes to leave their long-term storage out, because an archive is asked for that. */
  localOnly?: boolean;
  /** Called once when no backend works on the call any more, with or without an answer: permits are held until then. */
  onOver(): void;
}>;

/** What happens on the way, for metrics and logs. */
export type ForwardEvents = Readonly<{
  /** A call waited `ms` for its answer to begin. */
  onBegun(method: Method, ms: number): void;
  /** An attempt failed before the first byte. */
  onFailure(backend: Backend, failure: Failure): void;
  /** A stream broke off after the first byte, and not because its caller left. */
  onCut(backend: Backend, end: Extract<StreamEnd, { kind: 'cut' }>): void;
}>;

type Forwarding = Readonly<{ clock: Clock; idleMs: number }> & ForwardEvents;

const NO_BACKEND: Reply = { kind: 'no-backend' };
const CALLER_LEFT: Reply = { kind: 'caller-left' };

/** Agave's switch for one request (`rpc_service.rs`). */
const NO_BIGTABLE = ['x-bigtable', 'disabled'] as const;

/** An archive's "skipped" adds nothing to what the first node said of the slot (-32007). */
const SKIPPED_FOR_GOOD = -32009;

export function createForward({ clock, idleMs, onBegun, onFailure, onCut }: Forwarding): Forward {
  return async function forward(call, { name, method, backends }, asking) {
    const { signal } = asking;
    const body = requestBody(call, name);
    const startedMs = clock.monotonic();
    let kept: Begun | undefined;
    let left = Infinity;
    const able = inOrder(backends, body.length, clock);
    for (const backend of await withRoom(able, deadlineMsOf(method.class, idleMs), clock, signal)) {
      if (left-- === 0) break;
      if (signal.aborted) return over(asking, CALLER_LEFT);
      const outcome = await attempt(backend, method, body, asking);
      if (signal.aborted && outcome.kind !== 'stream') return over(asking, CALLER_LEFT);
      if (outcome.kind === 'stream') return begun(outcome);
      if (outcome.kind === 'whole') {
        const failure = outcome.encoding === undefined ? failureOf(outcome.bytes) : undefined;
        const advice = failure === undefined ? 'final' : adviceOn(failure, method.class);
        if (advice === 'final')
          return over(asking, begun(failure?.code === SKIPPED_FOR_GOOD ? (kept ?? outcome) : outcome));
        if (advice === 'once') left = Math.min(left, 1);
        if (failure !== undefined && !isThrottling(failure)) kept ??= outcome;
        continue;
      }
      onFailure(backend, outcome);
      if (isItsFault(outcome)) backend.markFailed(clock);
      if (!mayTryAnother(outcome, method.class)) break;
    }
    return over(asking, kept === undefined ? NO_BACKEND : begun(kept));

    function begun(answer: Begun): Begun {
      onBegun(method, clock.monotonic() - startedMs);
      return answer;
    }
  };

  async function attempt(
    backend: Backend,
    method: Method,
    body: Uint8Array,
    { acceptEncoding, signal, onOver, localOnly = false }: Asking,
  ): Promise<Begun | Failure> {
    const leave = backend.enter();
    const request = {
      body,
      acceptEncoding,
      dueMs: deadlineMsOf(method.class, idleMs),
      fresh: method.class === 'write',
      extra: localOnly && PROFILES[backend.config.profile].bigtable ? NO_BIGTABLE : undefined,
    };
    const reply = await backend.client.send(request, signal);
    const outcome =
      reply.kind === 'reply' ? await judge(reply, acceptEncoding, backend.config.trustsEnd) : reply;
    if (outcome.kind !== 'stream') {
      leave();
      return outcome;
    }
    return { ...outcome, body: watched(outcome.body, signal, (end) => ended(backend, end, leave, onOver)) };
  }

  function ended(backend: Backend, end: StreamEnd, leave: () => void, onOver: () => void): void {
    leave();
    onOver();
    if (end.kind === 'complete' || end.reason === 'cancelled') return;
    onCut(backend, end);
    backend.markFailed(clock);
  }
}

function over(asking: Asking, reply: Reply): Reply {
  asking.onOver();
  return reply;
}

/** The body, cancelled when `signal` aborts; `onEnd` is called once, however it ends. */
function watched(body: StreamBody, signal: AbortSignal, onEnd: (end: StreamEnd) => void): StreamBody {
  let piped = false;
  let over = false;
  const finish = (end: StreamEnd) => {
    if (over) return;
    over = true;
    signal.removeEventListener('abort', cancel);
    onEnd(end);
  };
  function cancel() {
    body.cancel();
    // A body that nobody pipes has nobody else to say that it is over.
    if (!piped) finish({ kind: 'cut', reason: 'cancelled', bytes: 0 });
  }
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  return {
    cancel,
    async pipe(write) {
      piped = true;
      const end = await body.pipe(write);
      finish(end);
      return end;
    },
  };
}
