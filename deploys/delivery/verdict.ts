import { unreachable } from '../../shared/brand.ts';
import type { Sent } from './send.ts';

/**
 * What an attempt means for its delivery. `interrupted` says nothing about the receiver: nobody knows what it answered.
 * `error` is a short word for the dashboard, such as `http_404` or `timeout`.
 */
export type Verdict =
  | { readonly kind: 'succeeded' }
  | { readonly kind: 'failed' | 'blocked'; readonly error: string }
  | { readonly kind: 'interrupted' };

/** Any 2xx is success, whatever became of the answer's body (spec 3.2). A redirect is a status like any other. */
export function verdictOf(sent: Sent): Verdict {
  switch (sent.kind) {
    case 'answered':
      if (sent.status >= 200 && sent.status <= 299) return { kind: 'succeeded' };
      return { kind: 'failed', error: `http_${sent.status}` };
    case 'failed':
      return sent.code === 'aborted' ? { kind: 'interrupted' } : { kind: 'failed', error: sent.code };
    case 'refused':
      return { kind: 'blocked', error: sent.reason };
    default:
      return unreachable(sent);
  }
}
