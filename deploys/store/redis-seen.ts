import { Redis } from 'ioredis';
import type { Clock } from '../../shared/clock.ts';
import type { Secret } from '../../shared/secret.ts';

/** Whether a Redis node answered a PING. Of its address only host and port are told. */
export type RedisSeen =
  | { readonly kind: 'answers'; readonly host: string; readonly tookMs: number }
  /** `reason` is a word or two for the operator. */
  | { readonly kind: 'cannot-be-reached'; readonly host: string; readonly reason: string };

/** Every node that the config names, in its order. Never rejects. */
export type ReadRedis = () => Promise<readonly RedisSeen[]>;

const CONNECT_MS_MAX = 1_000;
/** However often a page is looked at, nodes are asked once in this time. */
const KEPT_MS = 2_000;

/** Asks all nodes of `url` at once, each on a connection that ends with the answer. */
export function createReadRedis(url: Secret, clock: Clock): ReadRedis {
  let kept: { readonly atMs: number; readonly seen: Promise<readonly RedisSeen[]> } | undefined;

  return function readRedis() {
    const nowMs = clock.monotonic();
    if (kept === undefined || nowMs - kept.atMs >= KEPT_MS)
      kept = { atMs: nowMs, seen: Promise.all(nodesOf(url.reveal()).map(ping)) };
    return kept.seen;
  };

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
      return { kind: 'cannot-be-reached', host, reason: reasonOf(failure ?? error) };
    } finally {
      redis.disconnect();
    }
  }
}

/** The first node has scheme, name and password; further ones follow after commas. */
function nodesOf(url: string): URL[] {
  const [first = '', ...others] = url.split(',');
  if (!URL.canParse(first)) return [];
  return [first, ...others].flatMap((place, i) => {
    const node = new URL(first);
    if (i === 0) return [node];
    if (!URL.canParse(`redis://${place}`)) return [];
    const { hostname, port } = new URL(`redis://${place}`);
    [node.hostname, node.port, node.pathname] = [hostname, port, ''];
    return [node];
  });
}

/** The system's own code, or Redis' own word such as NOAUTH; messages may hold an address. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no connection';
  if ('code' in error && typeof error.code === 'string') return error.code;
  return /^[A-Z]{3,}(?= )/.exec(error.message)?.[0] ?? 'no answer in time';
}
