import type { Clock } from '../shared/clock.ts';
import { type Endpoint, headersOf, retryAfterOf } from './connection.ts';

/** What came of one call. */
export type Answered<T> =
  | Readonly<{ kind: 'result'; result: T }>
  /** It was answered, by a refusal. */
  | Readonly<{ kind: 'refused'; outcome: string; sentence: string; retryAfter: number | undefined }>
  /** Nobody knows whether it arrived. */
  | Readonly<{ kind: 'failure'; reason: string }>;

/** An endpoint, one call at a time. A result that `fits` does not take is a refusal. */
export type Rpc = <T>(
  method: string,
  params: readonly unknown[],
  fits: (result: unknown) => result is T,
) => Promise<Answered<T>>;

const PRINTABLE_MAX = 200;

type Options = Endpoint & Readonly<{ timeoutMs: number }>;

/** Calls over fetch, each with a deadline. Never rejects. */
export function createRpc({ timeoutMs, ...endpoint }: Options, clock: Clock, signal: AbortSignal): Rpc {
  let calls = 0;
  return async <T>(
    method: string,
    params: readonly unknown[],
    fits: (result: unknown) => result is T,
  ): Promise<Answered<T>> => {
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
      const answer = answerOf(response, await response.text(), id, clock.now());
      if (answer.kind !== 'result') return answer;
      const { result } = answer;
      if (fits(result)) return { kind: 'result', result };
      const outcome = `200, not the result of ${method}`;
      return { kind: 'refused', outcome, sentence: outcome, retryAfter: undefined };
    } catch (error) {
      if (late.signal.aborted) return { kind: 'failure', reason: 'no answer in time' };
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'no answer';
      return { kind: 'failure', reason: code };
    } finally {
      done.abort();
    }
  };
}

function answerOf(response: Response, text: string, id: number, nowMs: number): Answered<unknown> {
  const { status } = response;
  const value = Object(parsedJson(text));
  const { code, message } = Object(value.error);
  const isResult =
    status === 200 && (value.error ?? undefined) === undefined && 'result' in value && value.id === id;
  if (isResult) return { kind: 'result', result: value.result };
  const outcome = Number.isInteger(code) ? `${status} ${code}` : `HTTP ${status}, no JSON-RPC`;
  const sentence = typeof message === 'string' ? printable(`${outcome} ${message}`) : outcome;
  return {
    kind: 'refused',
    outcome,
    sentence,
    retryAfter: retryAfterOf(status, response.headers.get('retry-after'), nowMs),
  };
}

/** The value of a text; `undefined` when it is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Text of an endpoint as it may stand on a terminal: no control characters, and not long. */
export function printable(text: string): string {
  const cut = text.length > PRINTABLE_MAX ? `${text.slice(0, PRINTABLE_MAX)}…` : text;
  return cut.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
}

/** The address of a call: its user goes into a header. */
export function withoutUser(url: URL): URL {
  const bare = new URL(url);
  bare.username = bare.password = '';
  return bare;
}
