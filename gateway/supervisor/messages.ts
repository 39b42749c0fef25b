import type { GatewayStatus } from '../../shared/gateway-status.ts';
import type { MetricJson } from './metric-json.ts';

/** What a supervisor tells one of its processes, over the channel that the system opens between parent and child. */
export type ToChild =
  /** It may listen now, on this port. */
  | { readonly kind: 'listen'; readonly port: number }
  /** It is asked for its metrics; the answer carries the number. */
  | { readonly kind: 'count'; readonly ask: number }
  /** It is asked how its backends stand; the answer carries the number. */
  | { readonly kind: 'tell'; readonly ask: number };

/** What a process tells its supervisor. */
export type FromChild =
  /** Everything but its listener is open. */
  | { readonly kind: 'prepared' }
  | { readonly kind: 'listening' }
  | { readonly kind: 'counted'; readonly ask: number; readonly metrics: readonly MetricJson[] }
  | { readonly kind: 'told'; readonly ask: number; readonly status: GatewayStatus };

/**
 * A message of the other side. Both sides are this project at nearly the same version, so the kind alone is looked at;
 * `undefined` for one that only another version knows.
 */
export function messageFrom<Message extends ToChild | FromChild>(
  value: unknown,
  kinds: readonly Message['kind'][],
): Message | undefined {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined;
  // The kind is one that the sender's type has, and the sender fills in the rest of it.
  return kinds.some((kind) => kind === value.kind) ? (value as Message) : undefined;
}
