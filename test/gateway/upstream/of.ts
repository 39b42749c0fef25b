import { createFanOut } from '../../../gateway/upstream/fan-out.ts';
import { createDirect } from '../../../gateway/upstream/direct.ts';
import type { CallReply } from '../../../gateway/upstream/failover.ts';
import { createForward, type ForwardEvents, type TimedContext } from '../../../gateway/upstream/forward.ts';
import type { Call } from '../../../gateway/request/envelope.ts';
import { createSendIds } from '../../../gateway/request/send-id.ts';
import { createHedge } from '../../../gateway/upstream/hedge.ts';
import { Backend, numberOf, preference } from '../../../gateway/upstream/backend.ts';
import { failureOf } from '../../../gateway/upstream/failure.ts';
import type { StreamBody } from '../../../gateway/http/stream-body.ts';
import type { StreamedAnswer, WholeAnswer } from '../../../gateway/upstream/response-reader.ts';
import { createHttpClient } from '../../../gateway/upstream/http-client.ts';
import type { SlownessChange } from '../../../gateway/upstream/latency.ts';
import { historyGap } from '../../../gateway/history/tiers.ts';
import {
  createPool,
  createRetryBudget,
  createRouter,
  type ForwardRoute,
  type Gap,
  type RetryBudget,
} from '../../../gateway/upstream/selection.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { BackendConfig } from '../../../shared/config/backends.ts';
import type { Coding } from '../../../shared/config/kinds.ts';
import { textOfBody } from '../stream-body.ts';
import { LANES_BY_DEFAULT } from '../../../shared/config/profiles.ts';

/** A backend with the config's defaults and the given rows over them. */
export function backendOf(rows: Partial<BackendConfig> & { at?: string; clock?: Clock } = {}): Backend {
  const { at = 'http://127.0.0.1:1/', clock = systemClock, ...rest } = rows;
  const config: BackendConfig = {
    name: 'a',
    url: new URL(at),
    profile: 'agave',
    lanes: LANES_BY_DEFAULT,
    methods: [],
    headers: new Map(),
    bodyBytesMax: undefined,
    connectionsMax: 512,
    trustsEnd: false,
    codings: [],
    ...rest,
  };
  const headers = new Map([...config.headers].map(([name, value]) => [name, value.reveal()]));
  return new Backend(config, clientOf(config.url, clock, headers, config.codings));
}

type Told = Partial<
  ForwardEvents & {
    onChange(backend: Backend): void;
    onGap(gap: Gap | undefined): void;
    onSlowness(backend: Backend, change: SlownessChange): void;
    budget: RetryBudget;
    /** There: light reads that are late are hedged. */
    onHedge(outcome: 'made' | 'won'): void;
  }
>;

/** A way to backends as the gateway puts it together, without probes unless the test asks for them. */
export function forwardOf(backends: readonly Backend[], clock: Clock, told: Told = {}) {
  const { onHedge, budget = createRetryBudget(), onSlowness = nothing, ...rest } = told;
  const { onChange = nothing, onGap = nothing, ...events } = rest;
  const dueMs = { light: 30_000, meta: 30_000, asset: 30_000, history: 60_000, scan: 108_000, write: 30_000 };
  const nextId = createSendIds((bytes) => crypto.getRandomValues(bytes));
  const pool = createPool({
    backends,
    clock,
    lagSlotsMax: 16,
    historyGap,
    onChange,
    onGap,
    onUnreachable: nothing,
    onSlowness,
  });
  const parts = {
    clock,
    dueMs,
    pool,
    budget,
    nextId,
    random: () => 0.5,
    onResponseStart: nothing,
    onFailure: nothing,
    onRetry: nothing,
    onCut: nothing,
    ...events,
  };
  const forward = createForward(parts);
  const hedge = onHedge === undefined ? undefined : createHedge({ clock, pool }, onHedge);
  const fanOut = createFanOut({ ...parts, onFanOut: nothing });
  return { forward, direct: createDirect({ ...parts, hedge }), fanOut, pool, hedge };
}

function nothing(): void {
  // a test that does not ask is told nothing
}

/** An account that prefers backends called a, b and c in this order. */
export const ACCOUNT_ABC =
  [...Array(1_000).keys()].find((id) => {
    const [a = 0, b = 0, c = 0] = ['a', 'b', 'c'].map((name) => preference(id, numberOf(name)));
    return a > b && b > c;
  }) ?? 0;

/** The route of a known method to the given backends. */
export function routeTo(backends: readonly Backend[], name = 'getSlot'): ForwardRoute {
  const route = createRouter([backendOf({ methods: [name] })])(name);
  if (route.kind !== 'forward') throw new Error(route.reason);
  return { ...route, backends };
}

/** A call with its id and parameters as JSON; `null`: without parameters. */
export function callOf(method: string, params: string | null = '["a"]', id = '7'): Call {
  const bytes = params === null ? undefined : Buffer.from(params);
  return { kind: 'call', id: Buffer.from(id), method, params: bytes };
}

/** What a call comes with, with the given rows over it. */
export function contextOf(rows: Partial<TimedContext> = {}): TimedContext {
  const signal = new AbortController().signal;
  return { signal, accountId: 1, startedMs: 0, onSettled: nothing, ...rows };
}

/** Connections to an address. */
export function clientOf(
  url: string | URL,
  clock: Clock = systemClock,
  headers = new Map<string, string>(),
  codings: readonly Coding[] = [],
) {
  return createHttpClient({ url: new URL(url), codings, headers, clock, idleMs: 60_000 });
}

/** One request over them. */
export const REQUEST = {
  body: Buffer.from('{}'),
  dueMs: 60_000,
  kind: 'light',
} as const;

/** A whole answer with what a judge finds out about it. */
export function wholeOf(text: string): WholeAnswer {
  const bytes = new TextEncoder().encode(text);
  return { kind: 'whole', bytes, code: undefined, ...failureOf(bytes) };
}

export function streamOf(body: StreamBody): StreamedAnswer {
  return { kind: 'stream', body, code: undefined };
}

/** The answer's text, or what stands for it. */
export async function textOf(reply: CallReply): Promise<string> {
  if (reply.kind === 'whole') return new TextDecoder().decode(reply.bytes);
  return reply.kind === 'stream' ? textOfBody(reply.body) : reply.kind;
}
