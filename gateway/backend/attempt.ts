import type { Clock } from '../../shared/clock.ts';
import { PROFILES } from '../../shared/config/profiles.ts';
import { NO_BIGTABLE } from '../pool/probe.ts';
import type { Method } from '../route/methods.ts';
import type { Backend } from './backend.ts';
import type { Begun, StreamBody, StreamEnd } from './begun.ts';
import { deadlineMsOf } from './deadline.ts';
import type { Failure } from './failure.ts';
import type { Asking } from './forward.ts';
import { judge } from './judge.ts';

/**
 * Sends a body to one backend once, from a place there that `leave` gives back; gives the answer that began, or why none
 * did. Never rejects.
 */
export type Attempt = (
  backend: Backend,
  method: Method,
  request: Uint8Array,
  asking: Asking,
  leave: () => void,
) => Promise<Begun | Failure>;

/** Told of a stream that broke off after the first byte, and not because its caller left. */
export type OnCut = (backend: Backend, end: Extract<StreamEnd, { kind: 'cut' }>) => void;

type Deps = Readonly<{ clock: Clock; idleMs: number; onCut: OnCut }>;

export function createAttempt({ clock, idleMs, onCut }: Deps): Attempt {
  return async function attempt(backend, method, request, asking, leave) {
    const { acceptEncoding, signal, onOver, localOnly = false } = asking;
    const { profile, trustsEnd } = backend.config;
    const dueMs = deadlineMsOf(method.class, idleMs);
    const patience = { clock, dueAtMs: clock.monotonic() + dueMs, signal };
    const sent = {
      body: request,
      acceptEncoding,
      dueMs,
      fresh: method.class === 'write',
      extra: localOnly && PROFILES[profile].bigtable ? NO_BIGTABLE : undefined,
    };
    const reply = await backend.client.send(sent, signal);
    const outcome = reply.kind === 'reply' ? await judge(reply, acceptEncoding, trustsEnd, patience) : reply;
    if (outcome.kind !== 'stream') {
      leave();
      return outcome;
    }
    const body = watched(outcome.body, signal, (end) => {
      leave();
      onOver();
      if (end.kind === 'cut' && end.reason !== 'cancelled') cut(backend, end);
    });
    const reject = () => {
      body.cancel();
      cut(backend, { kind: 'cut', reason: 'bad-json', bytes: 0 });
    };
    return { ...outcome, body: { ...body, reject } };
  };

  function cut(backend: Backend, end: Extract<StreamEnd, { kind: 'cut' }>): void {
    onCut(backend, end);
    backend.markFailed(clock);
  }
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
