import { Redis } from 'ioredis';
import { CHANGED } from '../../shared/publication/names.ts';
import { connectionOptions, placesFrom } from '../../shared/redis/options.ts';

/** How long a subscription may take to be confirmed, in milliseconds. */
const DEADLINE_MS = 1_000;

/**
 * Calls `onHint` soon after something was published, while it can. Any node of a cluster hears of it; one that is not
 * heard costs nothing but the time until the next look. Gives how to stop.
 */
export function openHint(url: string, random: () => number, onHint: () => void): () => void {
  const places = placesFrom(url);
  if (places === undefined) return () => undefined;
  const { db: _everyChannelIsOne, ...address } = places.options;
  const redis = new Redis({
    ...connectionOptions(DEADLINE_MS, random),
    ...address,
    ...places.nodes[0],
    autoResubscribe: false,
  });
  redis.on('error', () => undefined);
  redis.on('message', onHint);
  redis.on('ready', () => {
    redis.subscribe(CHANGED).then(onHint, () => redis.disconnect(true));
  });
  return () => redis.disconnect();
}
