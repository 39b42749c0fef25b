import type { Clock } from '../shared/clock.ts';
import { type Endpoint, headersOf, RETRY_AFTER_MAX } from './connection.ts';

/** What came of one call. */
export type Answered<T> =
  | Readonly<{ kind: 'result'; result: T }>
  /** It was answered, by a refusal. */
  | Readonly<{ kind: 'refused'; outcome: string; sentence: string; retryAfter: number | undefined }>
  /** Nobody knows whether it arrived. */
  | Readonly<{ kind: 'failure'; reason: string }>;

/** An endpoint, one call at a time. */
export type Rpc = <T>(method: string, params: readonly unknown[]) => Promise<Answered<T>>;

type Options = Endpoint & Readonly<{ timeoutMs: number }>;

/** Calls over fetch, each with a deadline. Never rejects. The caller says what a result is. */
export function createRpc({ timeoutMs, ...endpoint }: Options, clock: Clock, signal: AbortSignal): Rpc {
  let calls = 0;
  return async <T>(method: string, params: readonly unknown[]): Promise<Answered<T>> => {
    const id = ++calls;
    const late = new AbortController();
    const done = new AbortController();
    void clock.sleep(timeoutMs, done.signal).then(() => late.abort());
    try {
      const response = await fetch(withoutUser(endpoint.url), {
        method: 'POST',
        headers: headersOf(endpoint),
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
        redirect: 'manual',
        signal: AbortSignal.any([signal, late.signal]),
      });
      const answer = answerOf<T>(response, await response.text(), id);
      return answer;
    } catch (error) {
      if (late.signal.aborted) return { kind: 'failure', reason: 'no answer in time' };
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
      return { kind: 'failure', reason: code };
    } finally {
      done.abort();
    }
  };
}

function answerOf<T>(response: Response, text: string, id: number): Answered<T> {
  const { status } = response;
  const value = Object(parsed(text));
  const { code, message } = Object(value.error);
  const isResult = status === 200 && value.error === undefined && 'result' in value && value.id === id;
  if (isResult) return { kind: 'result', result: value.result };
  const outcome = Number.isInteger(code) ? `${status} ${code}` : `HTTP ${status}, no JSON-RPC`;
  const sentence = typeof message === 'string' ? `${outcome} ${message}` : outcome;
  return { kind: 'refused', outcome, sentence, retryAfter: retryAfterOf(response) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Seconds of Retry-After of a refusal that has them (RFC 9110 10.2.3; dates are not read). */
export function retryAfterOf({ status, headers }: Response): number | undefined {
  const text = headers.get('retry-after') ?? '';
  return (status === 429 || status === 503) && /^\d{1,9}$/.test(text)
    ? Math.min(Number(text), RETRY_AFTER_MAX)
    : undefined;
}

/** The address of a call: its user goes into a header. */
export function withoutUser(url: URL): URL {
  const bare = new URL(url);
  bare.username = bare.password = '';
  return bare;
}
