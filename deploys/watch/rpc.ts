import type { Clock } from '../../shared/clock.ts';
import type { Secret } from '../../shared/secret.ts';
import { boundedText, codeOf, within } from '../health/outbound.ts';

/** How one JSON-RPC call ended. `reason` is a clause for logs: it names the status or code, never a key or a body. */
export type CallOutcome =
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'error'; readonly code: number }
  | { readonly kind: 'failed'; readonly reason: string; readonly isOverRate: boolean };

/** Calls one method of one backend. Never rejects; gives up after `CALL_MS` or when `signal` aborts. */
export type Call = (method: string, params: readonly unknown[], signal: AbortSignal) => Promise<CallOutcome>;

/** `name` is public, because the health text shows it: it holds nothing of the address. */
export type RpcBackend = Readonly<{ name: string; call: Call }>;

export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

const CALL_MS = 8_000;
/** A hundred account heads are about 25 kB. */
const ANSWER_BYTES_MAX = 1_048_576;
/** One call per HTTP request, so ids need not differ. */
const ID = 1;

/** Where a backend is; `key` is sent to it as `x-token`. */
type RpcAddress = Readonly<{ name: string; url: URL; key: Secret | undefined }>;

/** A backend over HTTP. Not kit's client, which leaves `finalized` out of requests: backends differ in their default. */
export function createRpcBackend(
  { name, url, key }: RpcAddress,
  { fetch, clock }: Readonly<{ fetch: Fetch; clock: Clock }>,
): RpcBackend {
  async function call(method: string, params: readonly unknown[], signal: AbortSignal): Promise<CallOutcome> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: ID, method, params });
    try {
      const outcome = await within(clock, CALL_MS, signal, (over) => post(body, over));
      if (outcome.kind === 'done') return outcome.value;
      return failed(signal.aborted ? 'was aborted' : `did not respond within ${CALL_MS / 1_000} s`);
    } catch (error) {
      return failed(`is unreachable (${codeOf(error, 'connection failed')})`);
    }
  }

  async function post(body: string, signal: AbortSignal): Promise<CallOutcome> {
    const response = await fetch(url.href, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key && { 'x-token': key.reveal() }) },
      body,
      signal,
      redirect: 'manual', // a redirect would carry the key to another host
      proxy: false, // a proxy from the environment is not this service's to use
    });
    const text = await boundedText(response, ANSWER_BYTES_MAX);
    if (response.status !== 200) return failed(`returned HTTP ${response.status}`, response.status === 429);
    return text === undefined ? failed(`returned more than ${ANSWER_BYTES_MAX} bytes`) : outcomeOf(text);
  }

  return { name, call };
}

function failed(reason: string, isOverRate = false): CallOutcome {
  return { kind: 'failed', reason, isOverRate };
}

function outcomeOf(text: string): CallOutcome {
  const answer = parsed(text);
  if (answer?.error !== undefined) {
    const { code } = Object(answer.error);
    return typeof code === 'number' ? { kind: 'error', code } : failed('returned an error without a code');
  }
  if (answer?.result === undefined || answer.id !== ID) return failed('returned invalid JSON-RPC');
  return { kind: 'result', result: answer.result };
}

function parsed(text: string): Readonly<Record<'id' | 'result' | 'error', unknown>> | undefined {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}
