import type { ClusterOptions, RedisOptions } from 'ioredis';
import { userinfoOf } from '../secret.ts';

/** How long a stuck connection is waited for before a new one is tried, in milliseconds. */
const SILENCE_MS = 500;
const CONNECT_MS = 1_000;
const DISCONNECT_MS = 200;
const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 500;
/** Slots are looked up so often even when nothing says that they moved: a node that went away does not say so. */
const SLOTS_MS = 2_000;
const REDIRECTIONS_MAX = 3;

type RedisEndpoint = Readonly<{ host: string; port: number }>;
/** Where the servers are. Several endpoints are start nodes of one cluster. */
type RedisEndpoints = Readonly<{
  nodes: readonly [RedisEndpoint, ...RedisEndpoint[]];
  options: Pick<RedisOptions, 'username' | 'password' | 'tls' | 'db'>;
}>;

/**
 * Reads `redis://user:password@host:port/db`, `rediss://` for TLS; further nodes of a cluster follow the first after a
 * comma (`redis://a:6379,b:6379`). `undefined` when it is neither.
 */
export function endpointsFrom(url: string): RedisEndpoints | undefined {
  const [start = '', ...others] = url.split(',');
  const [first, ...more] = [start, ...others.map((other) => `redis://${other}`)].map((endpoint) =>
    URL.canParse(endpoint) && new URL(endpoint).hostname !== '' ? new URL(endpoint) : undefined,
  );
  const userinfo = first && /^rediss?:$/.test(first.protocol) ? userinfoOf(first) : undefined;
  const [, db] = /^\/?(\d*)$/.exec(first?.pathname ?? '') ?? [];
  if (first === undefined || userinfo === undefined || db === undefined) return undefined;
  if (!more.every((endpoint) => endpoint !== undefined)) return undefined;
  const options = {
    ...(userinfo.username === '' ? {} : { username: userinfo.username }),
    ...(userinfo.password === '' ? {} : { password: userinfo.password }),
    ...(first.protocol === 'rediss:' ? { tls: {} } : {}),
    ...(db === '' ? {} : { db: Number(db) }),
  };
  return { nodes: [nodeAt(first), ...more.map(nodeAt)], options };
}

/** The message for an address that is none. */
export const NO_REDIS_ADDRESS =
  'storage.redis is no address of a Redis: redis://host:port, rediss://host:port, or several of a cluster after commas.';

function nodeAt({ hostname, port }: URL): RedisEndpoint {
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: port === '' ? 6_379 : Number(port) };
}

/**
 * The settings of a connection that never makes anybody wait: what cannot be sent now fails now, nothing is sent twice,
 * a server that does not answer is left after `SILENCE_MS`, and a new connection is tried at least every `RETRY_MAX_MS`.
 */
export function connectionOptions(deadlineMs: number, random: () => number) {
  return {
    connectionName: 'sluice',
    enableOfflineQueue: false,
    // Commands in flight when a connection ends are rejected at once and not sent again on the next one.
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    commandTimeout: deadlineMs,
    connectTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    disconnectTimeout: DISCONNECT_MS,
    enableReadyCheck: true,
    // A primary that became a replica keeps its connections; behind a stable address a new one finds its successor.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
    retryStrategy: (attempt: number) => pauseMs(attempt, random),
  } satisfies RedisOptions;
}

/**
 * The same for a cluster, with what the address said. Its slots say who is primary. `enableOfflineQueue` must stand at the top: inside `redisOptions`
 * it breaks the first contact.
 */
export function clusterOptions(
  deadlineMs: number,
  random: () => number,
  { db: _onlyZero, ...address }: RedisEndpoints['options'],
) {
  const single = connectionOptions(deadlineMs, random);
  const { enableOfflineQueue, retryStrategy: _ofEveryNode, reconnectOnError: _slots, ...node } = single;
  return {
    enableOfflineQueue,
    // The check asks one node at random, and takes one that is still being connected for the end of the cluster.
    enableReadyCheck: false,
    redisOptions: { ...node, ...address },
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    maxRedirections: REDIRECTIONS_MAX,
    slotsRefreshInterval: SLOTS_MS,
    slotsRefreshTimeout: CONNECT_MS,
    clusterNodeRetryStrategy: (attempt: number) => pauseMs(attempt, random),
    clusterRetryStrategy: (attempt: number) => pauseMs(attempt, random),
  } satisfies ClusterOptions;
}

/** Doubles up to the most, less up to a half of it by chance, so that processes do not come back in step. */
function pauseMs(attempt: number, random: () => number): number {
  return Math.round(Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** (attempt - 1)) * (1 - random() / 2));
}
