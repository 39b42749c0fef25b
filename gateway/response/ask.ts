import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Forward, Reply } from '../backend/forward.ts';
import type { Sibling } from '../backend/turns.ts';
import type { ScanPermits } from '../limits/scan-permits.ts';
import type { OnWait } from './line.ts';
import type { Forwarded } from './work.ts';

/** Who asks a backend for a call, and how. */
export type AskedBy = Readonly<{
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
export type Ask = (work: Forwarded, by: AskedBy) => Promise<Reply>;

export function createAsk(forward: Forward, permits: ScanPermits): Ask {
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
export type Outcome = 'answered' | Exclude<Reply['kind'], 'whole' | 'stream'>;

export function outcomeOf({ kind }: Reply): Outcome {
  return kind === 'whole' || kind === 'stream' ? 'answered' : kind;
}

/** Whether no backend took the call, so that it is not paid for. */
export function isUnanswered(reply: Reply): boolean {
  if (reply.kind === 'caller-left') return reply.unsent === true;
  return reply.kind === 'no-backend' || reply.kind === 'too-large';
}
