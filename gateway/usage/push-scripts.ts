import type { RedisScript } from '../../shared/redis/link.ts';

/**
 * Keys: spent and cells, of one account and hour after the other. Words: life in ms; then of each two keys how many
 * nodes and how many fields, a node with its counters each, a field with its counters each. The larger of two numbers
 * stands, so that what comes twice or late changes nothing.
 */
export const PUT_CELLS: RedisScript = {
  lua: `
local at = 2
local function put(key)
  local field, new = ARGV[at], ARGV[at + 1]
  local old, was, now = redis.call('HGET', key, field), {}, {}
  if old then for n in string.gmatch(old, '%d+') do was[#was + 1] = n end end
  for n in string.gmatch(new, '%d+') do
    local before = was[#now + 1]
    now[#now + 1] = (before and tonumber(before) > tonumber(n)) and before or n
  end
  for i = #now + 1, #was do now[i] = was[i] end
  redis.call('HSET', key, field, table.concat(now, ','))
  redis.call('PEXPIRE', key, ARGV[1])
  at = at + 2
end
for pair = 1, #KEYS, 2 do
  local nodes, fields = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  for _ = 1, nodes do put(KEYS[pair]) end
  for _ = 1, fields do put(KEYS[pair + 1]) end
end
return 'put'`,
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
