import { PROFILES } from '../../shared/config/profiles.ts';
import { type Backend, type Commitment, COMMITMENTS, type ExclusionReason } from './backend.ts';
import { NODE_UNHEALTHY } from './failure.ts';
import type { HttpReply } from './http-connection.ts';
import { readAll } from './response-reader.ts';

/** What one look at a backend showed. */
export type Reading = Readonly<{
  /** Its newest slots; those it does not tell are absent. */
  slots: Readonly<Partial<Record<Commitment, number | undefined>>>;
  /** It answers no question, or says itself that it is not well. */
  trouble: Extract<ExclusionReason, 'unreachable' | 'unhealthy'> | undefined;
  /** What an unreachable one did instead; empty otherwise. */
  reason: string;
}>;

/** The slot that a backend is compared by; 0: not known. */
export function tipOf({ slots }: Reading): number {
  return slots.confirmed ?? slots.finalized ?? slots.processed ?? 0;
}

/** The answer to a probe's question, or why none came. */
type Answer = Readonly<{ result?: unknown; error?: unknown }> | string;

/** A probe must not wait longer than the callers it is for, neither for a head nor for the rest. */
export const PROBE_MS = 2_000;
const ANSWER_BYTES_MAX = 4_096;

/**
 * Asks a backend for its health and its slots, until `signal` aborts. Any answer shows that it is there: an asset server
 * knows neither question. Never rejects.
 */
export async function probe(backend: Backend, signal: AbortSignal): Promise<Reading> {
  const { followsTip, processed } = PROFILES[backend.config.profile];
  const known = followsTip && processed ? COMMITMENTS : COMMITMENTS.slice(1);
  const [health, ...tips] = await Promise.all([
    ask(backend, 'getHealth', '[]', signal),
    ...known.map((commitment) => ask(backend, 'getSlot', `[{"commitment":"${commitment}"}]`, signal)),
  ]);
  if (typeof health === 'string' && tips.every((answer) => typeof answer === 'string'))
    return { slots: {}, trouble: 'unreachable', reason: health };
  const slots = Object.fromEntries(known.map((commitment, i) => [commitment, slotFrom(tips[i])]));
  return { slots, trouble: saysUnhealthy(health) ? 'unhealthy' : undefined, reason: '' };
}

/**
 * Asks a backend for what changes slowly: its first available block by itself, and with the long-term storage behind it,
 * and its chain. What it does not tell is `undefined`. Never rejects.
 */
export async function extentOf(backend: Backend, signal: AbortSignal) {
  const { bigtable } = PROFILES[backend.config.profile];
  const [local, all, hash] = await Promise.all([
    bigtable ? ask(backend, 'getFirstAvailableBlock', '[]', signal, true) : undefined,
    ask(backend, 'getFirstAvailableBlock', '[]', signal),
    ask(backend, 'getGenesisHash', '[]', signal),
  ]);
  const firstBlock = slotFrom(all);
  const genesis = resultOf(hash);
  return {
    firstLocalBlock: slotFrom(local) ?? firstBlock,
    firstBlock,
    genesis: typeof genesis === 'string' ? genesis : undefined,
  };
}

/** The id of the gateway's own questions, by which an operator finds them in a node's log. */
export const PROBE_ID = 'sluice-probe';

async function ask(
  { client }: Backend,
  method: string,
  params: string,
  signal: AbortSignal,
  localOnly = false,
): Promise<Answer> {
  const body = Buffer.from(`{"jsonrpc":"2.0","id":"${PROBE_ID}","method":"${method}","params":${params}}`);
  const request = { body, acceptEncoding: 'identity', dueMs: PROBE_MS, fresh: false, localOnly };
  const reply = await client.send(request, signal);
  return reply.kind === 'reply' ? answerOf(reply, signal) : reply.reason;
}

async function answerOf({ head, body }: HttpReply, signal: AbortSignal): Promise<Answer> {
  const cancel = () => body.cancel();
  if (head.status !== 200 || signal.aborted) {
    cancel();
    return `HTTP ${head.status}`;
  }
  signal.addEventListener('abort', cancel, { once: true });
  const read = await readAll(body, ANSWER_BYTES_MAX);
  signal.removeEventListener('abort', cancel);
  if (typeof read === 'string') return read;
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(read));
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {
    // no answer either
  }
  return 'no JSON-RPC answer';
}

function resultOf(answer: Answer | undefined): unknown {
  return typeof answer === 'object' ? answer.result : undefined;
}

function slotFrom(answer: Answer | undefined): number | undefined {
  const slot = resultOf(answer);
  return typeof slot === 'number' && Number.isSafeInteger(slot) && slot >= 0 ? slot : undefined;
}

/** Whatever the error's text; a node without the method says nothing about its health. */
function saysUnhealthy(answer: Answer): boolean {
  const error = typeof answer === 'object' ? answer.error : undefined;
  return typeof error === 'object' && error !== null && 'code' in error && error.code === NODE_UNHEALTHY;
}
