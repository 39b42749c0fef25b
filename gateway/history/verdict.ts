import type { Reply } from '../upstream/forward.ts';
import { failureOf } from '../upstream/failure.ts';
import { SAYING_BYTES_MAX, sayingOf } from '../upstream/response-reader.ts';
import { isNull, memberOf } from './slices.ts';

/** What a tier's reply says about asking the other tier. */
export type Verdict =
  | { readonly kind: 'found' }
  /** An error that the other tier would repeat. */
  | { readonly kind: 'refused' }
  /** "Not here", which may be "not at all". */
  | { readonly kind: 'null' }
  /** An error that the other tier may mend. */
  | { readonly kind: 'lacking'; readonly code: number }
  /** No backend of the tier could answer. */
  | { readonly kind: 'unreachable' }
  | { readonly kind: 'caller-left' };

/** By Agave's `custom_error.rs`; -32000 is Superbank's time-out. */
const LACKING = new Set([
  -32000, -32001, -32004, -32005, -32007, -32009, -32011, -32014, -32019, -32020, -32021, -32601, -32603,
]);

/** Judges a tier's reply. An answer under way is never a null: nulls are short. */
export function verdictOf(reply: Reply): Verdict {
  if (reply.kind === 'stream') return FOUND;
  if (reply.kind === 'caller-left') return { kind: 'caller-left' };
  if (reply.kind !== 'whole') return UNREACHABLE;
  if (reply.bytes.length > SAYING_BYTES_MAX) return FOUND;
  const bytes = sayingOf(reply);
  if (bytes === undefined) return FOUND;
  const failure = failureOf(bytes);
  if (failure === undefined) return isNull(memberOf(bytes, 'result')) ? NULL : FOUND;
  const { code, message } = failure;
  return LACKING.has(code) || message.startsWith('BigTable query failed')
    ? { kind: 'lacking', code }
    : REFUSED;
}

/** Whether the other tier need not be asked. */
export function isOver({ kind }: Verdict): boolean {
  return kind === 'found' || kind === 'refused' || kind === 'caller-left';
}

const FOUND: Verdict = { kind: 'found' };
const REFUSED: Verdict = { kind: 'refused' };
const NULL: Verdict = { kind: 'null' };
const UNREACHABLE: Verdict = { kind: 'unreachable' };
