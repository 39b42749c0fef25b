import { overCells } from '../../shared/ledger/over-cells.ts';
import type { RedisScript } from '../../shared/redis/link.ts';

/**
 * Of each its counters, and at the end the life in ms. The larger of two numbers stands, so that what comes twice or late
 * changes nothing.
 */
export const PUT_CELLS: RedisScript = {
  lua: overCells(
    2,
    `
  local field, new = ARGV[at], ARGV[at + 1]
  local old, was, now = redis.call('HGET', key, field), {}, {}
  if old then for n in string.gmatch(old, '%d+') do was[#was + 1] = n end end
  for n in string.gmatch(new, '%d+') do
    local before = was[#now + 1]
    now[#now + 1] = (before and tonumber(before) > tonumber(n)) and before or n
  end
  for i = #now + 1, #was do now[i] = was[i] end
  redis.call('HSET', key, field, table.concat(now, ','))
  redis.call('PEXPIRE', key, ARGV[#ARGV])`,
  ),
};

/** Keys: changed, clock. Words: life in ms, then places. They are taken after all that changed before. */
export const NOTE_CELLS: RedisScript = {
  keys: 2,
  lua: `
local at = redis.call('INCR', KEYS[2])
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], at, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 'put'`,
};

/** Keys: life. Words: a new name, its life in ms. Replies the name that stands. */
export const LIVE: RedisScript = {
  keys: 1,
  lua: `
redis.call('SET', KEYS[1], ARGV[1], 'NX')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('GET', KEYS[1])`,
};
