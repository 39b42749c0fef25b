import type { Clock } from '../../shared/clock.ts';
import type { Secret } from '../../shared/secret.ts';
import { within } from './deadline.ts';

/** How one JSON-RPC call ended. `reason` is a clause for logs: it names the status or code, never a key or a body. */
export type CallOutcome =
  | { readonly kind: 'result'; readonly result: unknown }
  /** The backend's own JSON-RPC error. */
  | { readonly kind: 'error'; readonly code: number }
  | { readonly kind: 'failed'; readonly reason: string; readonly isOverRate: boolean };

/** Calls one method of one backend. Never rejects; gives up after `CALL_MS` or when `signal` aborts. */
export type Call = (method: string, params: readonly unknown[], signal: AbortSignal) => Promise<CallOutcome>;

/** A place to read the chain from. `name` is public: the health text shows it, so it holds nothing of the address. */
export type RpcBackend = Readonly<{ name: string; call: Call }>;

/** What of `fetch` is used; Bun's `proxy` is among its options. */
export type Fetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

/** Longest wait for a whole answer. */
const CALL_MS = 8_000;
/** A hundred account heads are about 25 kB. */
const ANSWER_BYTES_MAX = 1_048_576;
/** One call per HTTP request, so ids need not differ. */
const ID = 1;

/** Where a backend is; `key` is sent to it as `x-token`. */
type RpcAddress = Readonly<{ name: string; url: URL; key: Secret | undefined }>;

/**
 * A backend over HTTP. kit's own client is not used because it leaves `finalized` out of
 * requests, and backends differ in what they take for a default.
 */
export function createRpcBackend(
  { name, url, key }: RpcAddress,
  deps: Readonly<{ fetch: Fetch; clock: Clock }>,
): RpcBackend {
  async function call(method: string, params: readonly unknown[], signal: AbortSignal): Promise<CallOutcome> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: ID, method, params });
    try {
      const outcome = await within(deps.clock, CALL_MS, signal, (over) => post(body, over));
      if (outcome.kind === 'done') return outcome.value;
      return failed(signal.aborted ? 'was given up' : `gave no answer within ${CALL_MS / 1_000} s`);
    } catch (error) {
      return failed(`cannot be reached (${codeOf(error, 'no answer')})`);
    }
  }

  async function post(body: string, signal: AbortSignal): Promise<CallOutcome> {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (key !== undefined) headers['x-token'] = key.reveal();
    const init: BunFetchRequestInit = {
      method: 'POST',
      headers,
      body,
      signal,
      redirect: 'manual', // a redirect would carry the key to another host
      proxy: false, // a proxy from the environment is not this service's to use
    };
    const response = await deps.fetch(url.href, init);
    const text = await textOf(response);
    if (response.status !== 200) return failed(`answered HTTP ${response.status}`, response.status === 429);
    return text === undefined ? failed(`answered more than ${ANSWER_BYTES_MAX} bytes`) : outcomeOf(text);
  }

  return { name, call };
}

function failed(reason: string, isOverRate = false): CallOutcome {
  return { kind: 'failed', reason, isOverRate };
}

/** The body as text; `undefined` when it is too long, without reading the rest. */
async function textOf(response: Response): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) return undefined; // leaving the loop cancels the body
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function outcomeOf(text: string): CallOutcome {
  const answer = parsed(text);
  if (typeof answer !== 'object' || answer === null) return failed('answered something that is not JSON-RPC');
  if ('error' in answer) {
    const code = answer.error instanceof Object && 'code' in answer.error ? answer.error.code : undefined;
    return typeof code === 'number' ? { kind: 'error', code } : failed('answered an error without a code');
  }
  if (!('result' in answer) || !('id' in answer) || answer.id !== ID)
    return failed('answered something that is not JSON-RPC');
  return { kind: 'result', result: answer.result };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The code of an error, such as ECONNREFUSED, and nothing else: messages of fetch repeat an address, those of TLS what was received. */
export function codeOf(error: unknown, otherwise: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[A-Za-z0-9_]{1,80}$/.test(code) ? code : otherwise;
}
