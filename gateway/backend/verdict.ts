import { unreachable } from '../../shared/brand.ts';
import type { Begun } from './begun.ts';
import type { Advice } from './rpc-failure.ts';

/** What the outcome of an attempt means for its call. */
export type Verdict =
  | { readonly kind: 'answer'; readonly answer: Begun }
  /** No other backend may be asked. */
  | { readonly kind: 'stop' }
  | Next;

/**
 * Another backend may be asked. `spends`: that is a retry of the pool's budget; `once`: one other and no third;
 * `later`: in a moment, and the same one when there is no other.
 */
type Next = Readonly<{ kind: 'next'; spends: boolean; once: boolean; later: boolean }>;

export const STOP: Verdict = { kind: 'stop' };
export const MISS: Next = { kind: 'next', spends: false, once: false, later: false };
export const TROUBLE: Next = { ...MISS, spends: true };

/** The verdict on an error of the method; `answer` is what is answered when it is final. */
export function verdictOn(advice: Advice, answer: Begun): Verdict {
  switch (advice) {
    case 'final':
      return { kind: 'answer', answer };
    case 'miss':
      return MISS;
    case 'miss-once':
      return { ...MISS, once: true };
    case 'trouble':
      return TROUBLE;
    case 'trouble-once':
      return { ...TROUBLE, once: true };
    case 'later':
      return { ...TROUBLE, later: true };
    default:
      return unreachable(advice);
  }
}
