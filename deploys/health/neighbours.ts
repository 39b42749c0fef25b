import { Redis } from 'ioredis';
import type { Clock } from '../../shared/clock.ts';
import { type GatewayStatus, gatewayStatusFrom } from '../../shared/gateway-status.ts';
import type { Secret } from '../../shared/secret.ts';
import { boundedText, codeOf, within } from './outbound.ts';

export type GatewaySeen = Readonly<{ kind: 'seen'; host: string; status: GatewayStatus }> | Away;

/** Every gateway in the config's order, as it was at most `GATEWAYS_KEPT_MS` ago. Never rejects. */
export type ReadGateways = () => Promise<readonly GatewaySeen[]>;

/** How long a gateway may take; a page waits for it. */
const ANSWER_MS_MAX = 1_500;
/** A status of some hundred backends has less. */
const BYTES_MAX = 262_144;
const GATEWAYS_KEPT_MS = 1_000;

/** Gives what `read` gave, for so long: however many pages are looked at, neighbours are asked once in this time. */
function keptFor<Seen>(keptMs: number, clock: Clock, read: () => Promise<Seen>): () => Promise<Seen> {
  let kept: { readonly atMs: number; readonly seen: Promise<Seen> } | undefined;
  return () => {
    const nowMs = clock.monotonic();
    if (kept === undefined || nowMs - kept.atMs >= keptMs) kept = { atMs: nowMs, seen: read() };
    return kept.seen;
  };
}

const NO_STATUS = 'not a gateway status of this version';

/** `reason` is a few words for the operator. Of an address only host and port are told. */
type Away = Readonly<{ kind: 'cannot-be-reached'; host: string; reason: string }>;

function away(host: string, reason: string): Away {
  return { kind: 'cannot-be-reached', host, reason };
}

type GatewaysDeps = Readonly<{
  urls: readonly URL[];
  fetch(url: URL, init: { signal: AbortSignal; redirect: 'error' }): Promise<Response>;
  clock: Clock;
}>;

export function createReadGateways({ urls, fetch, clock }: GatewaysDeps): ReadGateways {
  return keptFor(GATEWAYS_KEPT_MS, clock, () => Promise.all(urls.map(readOne)));

  async function readOne(url: URL): Promise<GatewaySeen> {
    try {
      const { signal } = new AbortController(); // nothing but the deadline ends it
      const seen = await within(clock, ANSWER_MS_MAX, signal, (over) => ask(url, over));
      return seen.kind === 'done' ? seen.value : away(url.host, 'timed out');
    } catch (error) {
      return away(url.host, error instanceof SyntaxError ? NO_STATUS : codeOf(error, 'connection failed'));
    }
  }

  async function ask(url: URL, signal: AbortSignal): Promise<GatewaySeen> {
    const { host } = url;
    const response = await fetch(new URL('/status.json', url), { signal, redirect: 'error' });
    if (!response.ok) {
      await response.body?.cancel();
      return away(host, `HTTP ${response.status}`);
    }
    const text = await boundedText(response, BYTES_MAX);
    const status = text === undefined ? undefined : gatewayStatusFrom(JSON.parse(text));
    return status === undefined ? away(host, NO_STATUS) : { kind: 'seen', host, status };
  }
}

export type RedisSeen = Readonly<{ kind: 'answers'; host: string; tookMs: number }> | Away;

/** Every node that the config names, in its order. Never rejects. */
export type ReadRedis = () => Promise<readonly RedisSeen[]>;

const CONNECT_MS_MAX = 1_000;
const REDIS_KEPT_MS = 2_000;

/** Asks all nodes of `url` at once, each on a connection that ends with the answer. */
export function createReadRedis(url: Secret, clock: Clock): ReadRedis {
  return keptFor(REDIS_KEPT_MS, clock, () => Promise.all(nodesOf(url.reveal()).map(ping)));

  async function ping(node: URL): Promise<RedisSeen> {
    const host = node.port === '' ? `${node.hostname}:6379` : node.host;
    const redis = new Redis(node.href, {
      lazyConnect: true,
      connectTimeout: CONNECT_MS_MAX,
      commandTimeout: CONNECT_MS_MAX,
      maxRetriesPerRequest: 0,
      enableReadyCheck: false,
      retryStrategy: () => null,
    });
    let failure: unknown;
    redis.on('error', (error) => (failure = error)); // says why; the promise below only that the connection closed
    const fromMs = clock.monotonic();
    try {
      await redis.connect();
      await redis.ping();
      return { kind: 'answers', host, tookMs: clock.monotonic() - fromMs };
    } catch (error) {
      return away(host, redisFailure(failure ?? error));
    } finally {
      redis.disconnect();
    }
  }
}

/** The first node has scheme, name and password; further ones follow after commas. */
function nodesOf(url: string): URL[] {
  const [first = '', ...others] = url.split(',');
  const node = URL.parse(first);
  if (node === null) return [];
  const further = others.flatMap((other) => {
    const at = URL.parse(`redis://${other}`);
    return at === null ? [] : [Object.assign(new URL(first), { host: at.host, port: at.port, pathname: '' })];
  });
  return [node, ...further];
}

/** The system's own code, or Redis' own word such as NOAUTH; messages may hold an address. */
function redisFailure(error: unknown): string {
  const word = error instanceof Error ? /^[A-Z]{3,}(?= )/.exec(error.message)?.[0] : undefined;
  return codeOf(error, word ?? 'timed out');
}
