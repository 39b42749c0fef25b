import type { Clock } from '../../shared/clock.ts';
import type { Call } from '../request/call.ts';
import type { Method } from '../route/methods.ts';
import type { Route } from '../route/router.ts';
import { type Backend, inOrder } from './backend.ts';
import { type Failure, failureFrom, isItsFault, mayTryAnother } from './failure.ts';
import { deadlineMsOf } from './deadline.ts';
import { type Begun, readHead } from './head.ts';
import { requestBody } from './request-body.ts';
import type { Transport } from './transport.ts';

/** A backend's answer under way, or what is left to say when no backend gave one. */
export type Reply =
  | Begun
  | { readonly kind: 'no-backend' }
  /** The caller left before an answer began; what was sent was sent, so the call is paid for. */
  | { readonly kind: 'caller-left' };

/**
 * Sends a call to its route's backends in order until one begins an answer. Only before the first byte is another
 * tried, so no caller ever sees two answers. Aborting `signal` (the caller left) aborts the backend's request. Never rejects.
 */
export type Forward = (
  call: Call,
  route: Extract<Route, { kind: 'forward' }>,
  acceptEncoding: string,
  signal: AbortSignal,
) => Promise<Reply>;

/** Told of every attempt that failed, for metrics and logs. */
export type OnFailure = (backend: Backend, failure: Failure) => void;

/** Told how long a call waited for its answer to begin, in milliseconds. */
export type OnBegun = (method: Method, ms: number) => void;

type Forwarding = Readonly<{
  transport: Transport;
  clock: Clock;
  idleMs: number;
  onBegun: OnBegun;
  onFailure: OnFailure;
}>;

const NO_BACKEND: Reply = { kind: 'no-backend' };
const CALLER_LEFT: Reply = { kind: 'caller-left' };

export function createForward({ transport, clock, idleMs, onBegun, onFailure }: Forwarding): Forward {
  return async function forward(call, { name, method, backends }, acceptEncoding, signal) {
    const body = requestBody(call, name);
    const deadlineMs = deadlineMsOf(method.class, idleMs);
    const startedMs = clock.monotonic();
    for (const backend of inOrder(backends, body.length, clock)) {
      const outcome = await attempt(backend, body, acceptEncoding, deadlineMs, signal);
      if (outcome.kind === 'whole' || outcome.kind === 'stream') {
        onBegun(method, clock.monotonic() - startedMs);
        return outcome;
      }
      if (signal.aborted) return CALLER_LEFT;
      onFailure(backend, outcome);
      if (isItsFault(outcome)) backend.markFailed(clock);
      if (!mayTryAnother(outcome, method.class)) break;
    }
    return NO_BACKEND;
  };

  async function attempt(
    backend: Backend,
    body: Uint8Array<ArrayBuffer>,
    acceptEncoding: string,
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<Begun | Failure> {
    using _entered = backend.enter();
    using deadline = startDeadline(clock, deadlineMs, signal);
    try {
      return await readHead(await transport(backend, body, acceptEncoding, deadline.signal), acceptEncoding);
    } catch (error) {
      return failureFrom(error);
    }
  }
}

/**
 * A signal that aborts with `outer`, or after `ms` unless disposed of first. The link to `outer` stays after
 * disposal: the stream that began under it ends when the caller leaves.
 */
function startDeadline(
  clock: Clock,
  ms: number,
  outer: AbortSignal,
): Disposable & { readonly signal: AbortSignal } {
  const [controller, timer] = [new AbortController(), new AbortController()];
  const abort = () => controller.abort(outer.reason);
  if (outer.aborted) abort();
  else outer.addEventListener('abort', abort, { once: true });
  void clock.sleep(ms, timer.signal).then(() => {
    if (!timer.signal.aborted) controller.abort(new DOMException('no answer in time', 'TimeoutError'));
  });
  return { signal: controller.signal, [Symbol.dispose]: () => timer.abort() };
}
