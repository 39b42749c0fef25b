import { Redis } from 'ioredis';
import type { RedisClient } from './link.ts';

/** Groups as one command each may be about: a single server is told of all at once; in a cluster each may be elsewhere. */
export function inOneCommand<Group>(
  client: RedisClient,
  groups: readonly Group[],
): readonly (readonly Group[])[] {
  return client instanceof Redis ? [groups] : groups.map((group) => [group]);
}
