import type { Clock } from '../../shared/clock.ts';
import { type GatewayStatus, gatewayStatusFrom } from '../../shared/gateway-status.ts';

/** What a gateway said of itself, or why it said nothing. `host` is where it was asked: no more of the address is told. */
export type GatewaySeen =
  | { readonly kind: 'seen'; readonly host: string; readonly status: GatewayStatus }
  /** `reason` is a few words for the operator. */
  | { readonly kind: 'cannot-be-reached'; readonly host: string; readonly reason: string };

/** Every gateway in the config's order, as it was at most `KEPT_MS` ago. Never rejects. */
export type ReadGateways = () => Promise<readonly GatewaySeen[]>;

type Deps = Readonly<{
  /** The metrics listeners of gateways. */
  urls: readonly URL[];
  fetch(url: URL, init: { signal: AbortSignal; redirect: 'error' }): Promise<Response>;
  clock: Clock;
}>;

/** How long a gateway may take; a page waits for it. */
const ANSWER_MS_MAX = 1_500;
/** A status of some hundred backends has less. */
const BYTES_MAX = 262_144;
/** However many pages are looked at, a gateway is asked once in this time. */
const KEPT_MS = 1_000;

/** Asks all gateways at once. */
export function createReadGateways({ urls, fetch, clock }: Deps): ReadGateways {
  let kept: { readonly atMs: number; readonly seen: Promise<readonly GatewaySeen[]> } | undefined;

  return function readGateways() {
    const nowMs = clock.monotonic();
    if (kept === undefined || nowMs - kept.atMs >= KEPT_MS)
      kept = { atMs: nowMs, seen: Promise.all(urls.map(readOne)) };
    return kept.seen;
  };

  async function readOne(url: URL): Promise<GatewaySeen> {
    const { host } = url;
    const over = new AbortController();
    const late = clock.sleep(ANSWER_MS_MAX, over.signal).then((): GatewaySeen => {
      over.abort();
      return { kind: 'cannot-be-reached', host, reason: 'no answer in time' };
    });
    const answered = ask(url, over.signal).catch((error: unknown): GatewaySeen => ({
      kind: 'cannot-be-reached',
      host,
      reason: reasonOf(error),
    }));
    const seen = await Promise.race([answered, late]);
    over.abort();
    return seen;
  }

  async function ask(url: URL, signal: AbortSignal): Promise<GatewaySeen> {
    const { host } = url;
    const response = await fetch(new URL('/status.json', url), { signal, redirect: 'error' });
    if (!response.ok) {
      await response.body?.cancel();
      return { kind: 'cannot-be-reached', host, reason: `HTTP ${response.status}` };
    }
    const text = await textOf(response);
    const status = text === undefined ? undefined : gatewayStatusFrom(JSON.parse(text));
    return status === undefined
      ? { kind: 'cannot-be-reached', host, reason: 'not the status of a gateway of this version' }
      : { kind: 'seen', host, status };
  }
}

/** The body up to its bound; `undefined` when there is more. */
async function textOf(response: Response): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > BYTES_MAX) return undefined; // leaving the loop cancels the body
  }
  return text;
}

/** The system's own code, as ECONNREFUSED; messages may hold an address. */
function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return 'not the status of a gateway of this version';
  return error instanceof Error && 'code' in error ? String(error.code) : 'no connection';
}
