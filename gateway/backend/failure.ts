import { unreachable } from '../../shared/brand.ts';
import type { MethodClass } from '../route/methods.ts';

/** How an attempt on a backend failed before any byte of an answer was kept. */
export type Failure =
  /** The connection was never made: nothing was sent. */
  | { readonly kind: 'unsent'; readonly reason: string }
  /** Something was sent, and no whole head came back: the backend may have acted on it. */
  | { readonly kind: 'no-answer'; readonly reason: string }
  /** Its front answered with a status that is not an answer to the call. */
  | { readonly kind: 'status'; readonly status: number }
  /** 200, but not a JSON-RPC object: an error page, an empty body. */
  | { readonly kind: 'garbage'; readonly reason: string };

/**
 * Whether the same call may go to another backend. A read may always; a write only when the first backend cannot
 * have acted on it (DESIGN 3.5).
 */
export function mayTryAnother(failure: Failure, kind: MethodClass): boolean {
  if (kind !== 'write') return true;
  switch (failure.kind) {
    case 'unsent':
      return true;
    case 'status':
      return failure.status === 429 || failure.status === 503;
    case 'no-answer':
    case 'garbage':
      return false;
    default:
      return unreachable(failure);
  }
}

/** Whether the backend, or its front, takes no request of this length. */
export function isTooLarge(failure: Failure): boolean {
  return failure.kind === 'status' && failure.status === 413;
}

/** Whether the failure speaks against the backend, and not only against this call: a 413 or 400 does not. */
export function isItsFault(failure: Failure): boolean {
  if (failure.kind !== 'status') return true;
  const { status } = failure;
  return status >= 500 || status < 400 || status === 429 || status === 401 || status === 403;
}
