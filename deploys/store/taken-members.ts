import type { RedisScript } from '../../shared/redis/link.ts';

/** Of a sorted set of what waits to be taken. Keys: the set. Words: how many. Replies members, each with its score. */
export const SHOW_MEMBERS: RedisScript = {
  keys: 1,
  lua: `return redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')`,
};

/** Keys: the set. Words: members, each with the score that was taken. One that has another score by now stays. */
export const DROP_MEMBERS: RedisScript = {
  keys: 1,
  lua: `
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return 'put'`,
};
