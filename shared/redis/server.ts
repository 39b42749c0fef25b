/** What a Redis server says of itself in INFO. */
export type RedisServer = Readonly<{
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
