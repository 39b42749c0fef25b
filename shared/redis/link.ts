import { Cluster, Redis } from 'ioredis';
import type { Clock } from '../clock.ts';
import { codeOf } from '../store/private.ts';
import { clusterOptions, connectionOptions, endpointsFrom } from './options.ts';

export type RedisClient = Redis | Cluster;

/**
 * A command in Lua, and how many of its words are keys; without that it is called with their number first. In a
 * cluster all keys of a call have one hash tag.
 */
export type RedisScript = Readonly<{ lua: string; keys?: number }>;
type Command = (...words: readonly (string | number)[]) => Promise<unknown>;
/** A client with a command for each script of its link. */
export type ScriptedClient<Name extends string> = RedisClient & Readonly<Record<Name, Command>>;

type RedisLinkOptions<Name extends string> = Readonly<{
  url: string;
  deadlineMs: number;
  /** By the names of their commands. */
  scripts: Readonly<Record<Name, RedisScript>>;
  clock: Clock;
  random: () => number;
  /** Reports a sentence to the operator, each once. */
  onWarning(sentence: string): void;
  /** A server was met that may lack what was written before: it was restarted, or is another one. */
  onStranger(): void;
}>;

/** A server that has run for less time than this may have lost a write that it confirmed before. */
const YOUNG_SECONDS = 5;

/** How long a close waits for a server that does not say goodbye. */
const CLOSE_MS = 500;

/** Refusals that an operator must mend: rights, memory, disk, a role, a script. All else comes and goes with the network. */
const REFUSALS = /^(?:WRONGPASS|NOAUTH|NOPERM|OOM|MISCONF|READONLY|NOREPLICAS|FORMAT|ERR) /;
/** The refusals of a server without room for writes. */
const FULL = /^(?:OOM|MISCONF) /;
const REFUSAL_LENGTH_MAX = 160;
const SENTENCES_MAX = 50;

/** Connects to a Redis or, by one of its addresses, to a Redis Cluster; a broken connection is made again without end. */
export function openRedisLink<Name extends string>(options: RedisLinkOptions<Name>) {
  const found = endpointsFrom(options.url);
  if (found === undefined) return undefined;
  const endpoints = found;
  const { deadlineMs, random } = options;
  const scripts = scriptsOf(options.scripts);
  const { warn, refused, failure, answered } = createTroubles(options);
  const runIds = new Map<string, string>();
  let masters: ReadonlySet<string> = new Set();
  let strangers = 0;
  let checking = 0;
  let closed = false;
  let client: RedisClient = endpoints.nodes.length > 1 ? openCluster() : openSingle();

  function openSingle(): Redis {
    const settings = connectionOptions(deadlineMs, random);
    const redis = new Redis({ ...settings, ...endpoints.options, ...endpoints.nodes[0], scripts });
    watch(redis);
    return redis;
  }

  function openCluster(): Cluster {
    const settings = clusterOptions(deadlineMs, random, endpoints.options);
    const cluster = new Cluster([...endpoints.nodes], { ...settings, scripts });
    cluster.on('error', refused);
    cluster.on('node error', (error) => refused(error));
    cluster.on('+node', (node: Redis) => {
      watch(node);
      // Connected now and not at its first command, which would be sent before the server is identified.
      if (node.status === 'wait') node.connect().catch(ignore);
    });
    return cluster;
  }

  function watch(redis: Redis): void {
    redis.on('error', refused);
    redis.on('ready', () => void check(redis));
  }

  async function check(redis: Redis): Promise<void> {
    const endpoint = endpointOf(redis);
    checking++;
    try {
      meet(serverFrom(await redis.info(), endpoint), endpoint);
    } catch {
      // Without an answer the connection is as good as none; the next one asks again.
      redis.disconnect(true);
    } finally {
      checking--;
    }
  }

  function meet(server: ReturnType<typeof serverFrom>, endpoint: string): void {
    if (closed) return;
    if (server.isCluster && client instanceof Redis) {
      client.disconnect();
      client = openCluster();
      return;
    }
    for (const sentence of server.warnings) warn(sentence);
    const known = runIds.get(endpoint);
    runIds.set(endpoint, server.runId);
    if (known === undefined ? server.upSeconds < YOUNG_SECONDS : known !== server.runId) meetStranger();
  }

  function meetStranger(): void {
    strangers++;
    options.onStranger();
  }

  /** A node of a cluster that was a replica until now may lack what its primary answered last. */
  function lookForPromoted(): void {
    if (client instanceof Redis) return;
    const now = client.nodes('master').map(endpointOf);
    const promoted = now.some((endpoint) => !masters.has(endpoint) && runIds.has(endpoint));
    const isFirstLook = masters.size === 0;
    if (now.length !== masters.size || promoted) masters = new Set(now);
    if (promoted && !isFirstLook) meetStranger();
  }

  return {
    /** The client while it may be used; never one whose server is not identified yet. */
    client(): ScriptedClient<Name> | undefined {
      lookForPromoted();
      const isReady = !closed && checking === 0 && client.status === 'ready';
      return isReady ? (client as ScriptedClient<Name>) : undefined; // it was made with the scripts
    },
    /** How many strangers were met: an answer that came while it changed may be of a server that lacks writes. */
    strangers(): number {
      lookForPromoted();
      return strangers;
    },
    refused,
    failure,
    answered,
    /** Resolves when every connection has ended, or was left. */
    async close(): Promise<void> {
      closed = true;
      const ended = Promise.withResolvers<void>();
      client.once('end', () => ended.resolve());
      // One that is between two connections ends without saying so.
      if (client.status === 'end' || client.status === 'reconnecting') ended.resolve();
      client.disconnect();
      const late = new AbortController();
      await Promise.race([ended.promise, options.clock.sleep(CLOSE_MS, late.signal)]);
      late.abort();
    },
  };
}

/** Tells the operator of trouble with servers. */
function createTroubles({
  deadlineMs,
  onWarning,
}: Pick<RedisLinkOptions<string>, 'deadlineMs' | 'onWarning'>) {
  const said = new Set<string>();
  let lastError: Error | undefined;

  function warn(sentence: string): void {
    if (said.has(sentence) || said.size >= SENTENCES_MAX) return;
    said.add(sentence);
    onWarning(sentence);
  }

  return {
    warn,
    /** Takes note that a command was refused, and why; warns the operator of what does not pass by itself. */
    refused(error: unknown): void {
      if (!(error instanceof Error)) return;
      lastError = error;
      if (REFUSALS.test(error.message)) warn(`Redis refuses a command (${reasonOf(error)}).`);
    },
    /** Why it gives no reply; without an error it gives none in time. */
    failure() {
      const isFull = lastError !== undefined && FULL.test(lastError.message);
      const error = lastError === undefined ? `no reply within ${deadlineMs} ms` : reasonOf(lastError);
      return { how: isFull ? 'full' : 'away', error } as const;
    },
    /** Notes that it answers: what it refused before says nothing any more. */
    answered: () => void (lastError = undefined),
  };
}

/** The first line of an error; the rest names the script, and would make one cause look like several. */
function reasonOf(error: Error): string {
  const [reason = ''] = (error.message || codeOf(error)).split(/\.? script: /, 1);
  return reason.replaceAll(/\s+/g, ' ').slice(0, REFUSAL_LENGTH_MAX);
}

function endpointOf({ options: { host = '', port = 0 } }: Redis): string {
  return `${host}:${port}`;
}

function scriptsOf(scripts: Readonly<Record<string, RedisScript>>) {
  const entries = Object.entries(scripts).map(([name, { lua, keys }]) => {
    return [name, keys === undefined ? { lua } : { lua, numberOfKeys: keys }] as const;
  });
  return Object.fromEntries(entries);
}

/** A connection that fails is an everyday event: it is seen by the calls that fail, and tried again. */
function ignore(): void {}

/** Reads an answer to INFO of the server at `endpoint` (`host:port`, for the sentences). */
function serverFrom(info: string, endpoint: string) {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
  const isCluster = field('redis_mode') === 'cluster';
  const policy = field('maxmemory_policy') ?? 'noeviction';
  /** Settings that an operator must change, in sentences. */
  const warnings: string[] = [];
  if (policy !== 'noeviction')
    warnings.push(`Redis ${endpoint} may evict balances (maxmemory-policy ${policy}); set it to noeviction.`);
  if (field('aof_enabled') === '0')
    warnings.push(`Redis ${endpoint} forgets balances at a restart (appendonly no); set appendonly yes.`);
  // In a cluster a replica is met beside its primary, and nothing is written to it.
  if (field('role') === 'slave' && !isCluster)
    warnings.push(`Redis ${endpoint} is a replica and takes no writes; name its primary.`);
  return {
    /** Another one after every start. */
    runId: field('run_id') ?? '',
    upSeconds: Number(field('uptime_in_seconds') ?? 0),
    isCluster,
    warnings,
  };
}

/** Groups as one command each may be about: a single server takes all at once; in a cluster each may be elsewhere. */
export function inOneCommand<Group>(client: RedisClient, groups: readonly Group[]) {
  return client instanceof Redis ? [groups] : groups.map((group) => [group]);
}
