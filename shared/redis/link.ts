import { Cluster, Redis } from 'ioredis';
import type { Clock } from '../clock.ts';
import { clusterOptions, connectionOptions, placesFrom } from './options.ts';

export type RedisClient = Redis | Cluster;

/**
 * A command in Lua, and how many of its words are keys; without that it is called with their number first. In a
 * cluster all keys of a call have one hash tag.
 */
export type RedisScript = Readonly<{ lua: string; keys?: number }>;
/** Commands under their names. */
type RedisScripts = Readonly<Record<string, RedisScript>>;

type RedisLinkOptions = Readonly<{
  url: string;
  deadlineMs: number;
  scripts: RedisScripts;
  clock: Clock;
  random: () => number;
  /** Tells the operator, once per sentence. */
  onWarning(sentence: string): void;
  /** A server is there that may not know what the store was told: it was started anew, or is another one. */
  onStranger(): void;
}>;

type RedisLink = Readonly<{
  /** The client while it may be spoken to; never one whose server has not yet been asked who it is. */
  client(): RedisClient | undefined;
  /** How many strangers were met: an answer that came while it changed may be one's who knows too little. */
  strangers(): number;
  /** Takes note that a command was refused, and why; tells the operator of what will not pass by itself. */
  refused(error: unknown): void;
  /** Resolves when every connection has ended, or was left. */
  close(): Promise<void>;
}>;

/** A server that has run for less time than this may have lost something that a process was told before. */
const YOUNG_SECONDS = 5;

/** How long a close waits for a server that does not say goodbye. */
const CLOSE_MS = 500;

/** What an operator must mend: rights, memory, disk, a role, a script. All else comes and goes with the network. */
const REFUSALS = /^(?:WRONGPASS|NOAUTH|NOPERM|OOM|MISCONF|READONLY|NOREPLICAS|FORMAT|ERR) /;
const REFUSAL_LENGTH_MAX = 160;
const SENTENCES_MAX = 50;

/**
 * Connects to a Redis or a Redis Cluster and stays connected: what breaks is connected again without end. One address
 * of a cluster is enough; the server says what it is.
 */
export function openRedisLink(options: RedisLinkOptions): RedisLink | undefined {
  const found = placesFrom(options.url);
  if (found === undefined) return undefined;
  const places = found;
  const runIds = new Map<string, string>();
  const said = new Set<string>();
  let masters: ReadonlySet<string> = new Set();
  let strangers = 0;
  let checking = 0;
  let closed = false;
  let client: RedisClient = places.nodes.length > 1 ? openCluster() : openSingle();

  function openSingle(): Redis {
    const settings = connectionOptions(options.deadlineMs, options.random);
    const [place] = places.nodes;
    const redis = new Redis({
      ...settings,
      ...places.options,
      ...place,
      scripts: scriptsOf(options.scripts),
    });
    watch(redis);
    return redis;
  }

  function openCluster(): Cluster {
    const cluster = new Cluster([...places.nodes], {
      ...clusterOptions(options.deadlineMs, options.random, places.options),
      scripts: scriptsOf(options.scripts),
    });
    cluster.on('error', ignore);
    cluster.on('node error', (error) => refused(error));
    cluster.on('+node', (node: Redis) => {
      watch(node);
      // Connected now and not at its first command, which would be sent before the server is asked who it is.
      if (node.status === 'wait') node.connect().catch(ignore);
    });
    return cluster;
  }

  function watch(redis: Redis): void {
    redis.on('error', refused);
    redis.on('ready', () => void check(redis));
  }

  async function check(redis: Redis): Promise<void> {
    const place = placeOf(redis);
    checking++;
    try {
      meet(serverFrom(await redis.info(), place), place);
    } catch {
      // Without an answer the connection is as good as none; the next one asks again.
      redis.disconnect(true);
    } finally {
      checking--;
    }
  }

  function meet(server: RedisServer, place: string): void {
    if (closed) return;
    if (server.isCluster && client instanceof Redis) {
      client.disconnect();
      client = openCluster();
      return;
    }
    for (const sentence of server.warnings) warn(sentence);
    const known = runIds.get(place);
    runIds.set(place, server.runId);
    if (known === undefined ? server.upSeconds < YOUNG_SECONDS : known !== server.runId) meetStranger();
  }

  function meetStranger(): void {
    strangers++;
    options.onStranger();
  }

  /** A node of a cluster that was a replica until now may lack what its primary answered last. */
  function lookForPromoted(): void {
    if (client instanceof Redis) return;
    const now = client.nodes('master').map(placeOf);
    const promoted = now.some((place) => !masters.has(place) && runIds.has(place));
    const isFirstLook = masters.size === 0;
    if (now.length !== masters.size || promoted) masters = new Set(now);
    if (promoted && !isFirstLook) meetStranger();
  }

  function warn(sentence: string): void {
    if (said.has(sentence) || said.size >= SENTENCES_MAX) return;
    said.add(sentence);
    options.onWarning(sentence);
  }

  function refused(error: unknown): void {
    if (!(error instanceof Error) || !REFUSALS.test(error.message)) return;
    // What follows names the script, and would make one cause look like several.
    const [reason = ''] = error.message.split(/\.? script: /, 1);
    warn(`Redis refuses a command (${reason.slice(0, REFUSAL_LENGTH_MAX)}).`);
  }

  return {
    client() {
      lookForPromoted();
      return closed || checking > 0 || client.status !== 'ready' ? undefined : client;
    },
    strangers() {
      lookForPromoted();
      return strangers;
    },
    refused,
    async close() {
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

function placeOf({ options: { host = '', port = 0 } }: Redis): string {
  return `${host}:${port}`;
}

function scriptsOf(scripts: RedisScripts): Record<string, { lua: string; numberOfKeys?: number }> {
  return Object.fromEntries(
    Object.entries(scripts).map(([name, { lua, keys }]) => [
      name,
      keys === undefined ? { lua } : { lua, numberOfKeys: keys },
    ]),
  );
}

/** A connection that fails is an everyday event: it is seen by the calls that fail, and tried again. */
function ignore(): void {}

/** What a Redis server says of itself in INFO. */
type RedisServer = Readonly<{
  /** Another one after every start. */
  runId: string;
  upSeconds: number;
  isCluster: boolean;
  /** What an operator must change, in sentences. */
  warnings: readonly string[];
}>;

/** Reads an answer to INFO of the server at `place` (`host:port`, for the sentences). */
export function serverFrom(info: string, place: string): RedisServer {
  const fields = new Map<string, string>();
  for (const line of info.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return {
    runId: fields.get('run_id') ?? '',
    upSeconds: Number(fields.get('uptime_in_seconds') ?? 0),
    isCluster: fields.get('redis_mode') === 'cluster',
    warnings: warningsOf(fields, place),
  };
}

function warningsOf(fields: ReadonlyMap<string, string>, place: string): readonly string[] {
  const warnings: string[] = [];
  const policy = fields.get('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    warnings.push(`Redis ${place} may evict balances (maxmemory-policy ${policy}); set it to noeviction.`);
  }
  if (fields.get('aof_enabled') === '0') {
    warnings.push(`Redis ${place} forgets balances at a restart (appendonly no); set appendonly yes.`);
  }
  // In a cluster a replica is met beside its primary, and nothing is written to it.
  if (fields.get('role') === 'slave' && fields.get('redis_mode') !== 'cluster') {
    warnings.push(`Redis ${place} is a replica and takes no writes; name its primary.`);
  }
  return warnings;
}

/** Groups as one command each may be about: a single server is told of all at once; in a cluster each may be elsewhere. */
export function inOneCommand<Group>(
  client: RedisClient,
  groups: readonly Group[],
): readonly (readonly Group[])[] {
  return client instanceof Redis ? [groups] : groups.map((group) => [group]);
}
