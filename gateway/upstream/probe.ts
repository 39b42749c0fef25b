import { PROFILES } from '../../shared/config/profiles.ts';
import { type Backend, type Commitment, COMMITMENTS } from './backend.ts';
import type { HttpReply } from './http-connection.ts';
import type { StreamBody, StreamEnd } from './response-reader.ts';

/** How a body was read: its bytes, how it was cut, or that it is longer than was wanted. */
type ReadBody =
  | { readonly kind: 'all'; readonly bytes: Uint8Array<ArrayBuffer> }
  | Extract<StreamEnd, { kind: 'cut' }>
  | { readonly kind: 'too-long' };

/** Reads a body to its end, and lets go of one longer than `bytesMax`. Never rejects. */
export async function readAll(
  body: Pick<StreamBody, 'pipe' | 'cancel'>,
  bytesMax: number,
): Promise<ReadBody> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const end = await body.pipe((piece) => {
    bytes += piece.length;
    if (bytes > bytesMax) body.cancel();
    else pieces.push(Buffer.from(piece));
  });
  if (bytes > bytesMax) return { kind: 'too-long' };
  return end.kind === 'cut' ? end : { kind: 'all', bytes: new Uint8Array(Buffer.concat(pieces)) };
}

/** What one look at a backend showed. */
export type Reading =
  /** No answer to any question, for this reason. */
  | { readonly kind: 'unreachable'; readonly reason: string }
  | {
      readonly kind: 'reading';
      /** Its newest slots; those it does not tell are absent. */
      readonly slots: Readonly<Partial<Record<Commitment, number>>>;
      /** The slot it is compared by; 0: not known. */
      readonly tip: number;
      /** `false` when it says itself that it is not. */
      readonly healthy: boolean;
      /** Its genesis is not that of the others, as far as both are known. */
      readonly isOtherChain: boolean;
    };

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
  const known = backend.config.profile === 'agave' ? COMMITMENTS : COMMITMENTS.slice(1);
  const [health, ...tips] = await Promise.all([
    ask(backend, 'getHealth', '[]', signal),
    ...known.map((commitment) => ask(backend, 'getSlot', `[{"commitment":"${commitment}"}]`, signal)),
  ]);
  if (typeof health === 'string' && tips.every((answer) => typeof answer === 'string'))
    return { kind: 'unreachable', reason: health };
  const slots: Partial<Record<Commitment, number>> = {};
  known.forEach((commitment, i) => {
    const slot = slotFrom(tips[i]);
    if (slot !== undefined) slots[commitment] = slot;
  });
  const tip = slots.confirmed ?? slots.finalized ?? slots.processed ?? 0;
  return { kind: 'reading', slots, tip, healthy: !saysUnhealthy(health), isOtherChain: false };
}

/**
 * Asks a backend for what changes slowly: its first available block by itself (`floor`) and with the long-term storage
 * behind it (`reach`), and its chain. What it does not tell is `undefined`. Never rejects.
 */
export async function extentOf(backend: Backend, signal: AbortSignal) {
  const { bigtable } = PROFILES[backend.config.profile];
  const [local, all, genesis] = await Promise.all([
    bigtable ? ask(backend, 'getFirstAvailableBlock', '[]', signal, NO_BIGTABLE) : undefined,
    ask(backend, 'getFirstAvailableBlock', '[]', signal),
    ask(backend, 'getGenesisHash', '[]', signal),
  ]);
  const hash = resultOf(genesis);
  const reach = slotFrom(all);
  return { floor: slotFrom(local) ?? reach, reach, genesis: typeof hash === 'string' ? hash : undefined };
}

/** Agave's switch for one request (`rpc_service.rs`). */
export const NO_BIGTABLE = ['x-bigtable', 'disabled'] as const;

/** The id of the gateway's own questions, by which an operator finds them in a node's log. */
export const PROBE_ID = 'sluice-probe';

async function ask(
  { client }: Backend,
  method: string,
  params: string,
  signal: AbortSignal,
  extra?: readonly [string, string],
): Promise<Answer> {
  const body = Buffer.from(`{"jsonrpc":"2.0","id":"${PROBE_ID}","method":"${method}","params":${params}}`);
  const request = { body, acceptEncoding: 'identity', dueMs: PROBE_MS, fresh: false, extra };
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
  if (read.kind === 'cut') return `an answer cut: ${read.reason}`;
  try {
    const parsed: unknown = read.kind === 'all' && JSON.parse(new TextDecoder().decode(read.bytes));
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

/** -32005, whatever its text; a node without the method says nothing about its health. */
const NODE_UNHEALTHY = -32005;

function saysUnhealthy(answer: Answer): boolean {
  const error = typeof answer === 'object' ? answer.error : undefined;
  return typeof error === 'object' && error !== null && 'code' in error && error.code === NODE_UNHEALTHY;
}
