import { DROP_MEMBERS, SHOW_MEMBERS } from '../store/taken-members.ts';
import type { RedisScript } from '../../shared/redis/link.ts';

/**
 * Keys: head, lease. Words: origin, holder, nonce, lease in ms, `1` to take it or `0` to only ask. Takes or renews the
 * right to publish. Replies `other-origin` with whose accounts are there, `held`, or `claimed` with epoch, seq, config
 * and termsId as they are.
 */
const CLAIM: RedisScript = {
  keys: 2,
  lua: `
local origin = redis.call('HGET', KEYS[1], 'origin')
if origin and origin ~= ARGV[1] then return {'other-origin', origin} end
local lease = redis.call('GET', KEYS[2])
if lease and lease ~= ARGV[3] then return {'held'} end
if ARGV[5] == '1' then
  redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
  redis.call('HSET', KEYS[1], 'origin', ARGV[1], 'holder', ARGV[2])
end
local head = redis.call('HMGET', KEYS[1], 'epoch', 'seq', 'config', 'termsId')
return {'claimed', head[1] or '', head[2] or '0', head[3] or '0', head[4] or ''}`,
};

/**
 * Keys: head, lease, rows. Words: nonce, epoch, seq, life of the rows in ms or `0` when the epoch is the one that is
 * read; then per row its revision, the revision it replaces or `0`, and its text. Replies `put` or `lost`. Repeating it
 * changes nothing, and neither does one that comes late.
 */
const PUT: RedisScript = {
  keys: 3,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
if ARGV[4] == '0' and redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[2] then return 'lost' end
for i = 5, #ARGV, 3 do
  local added = redis.pcall('XADD', KEYS[3], ARGV[i] .. '-0', 'r', ARGV[i + 2])
  if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller', 1, true) then return added end
  if ARGV[i + 1] ~= '0' then redis.call('XDEL', KEYS[3], ARGV[i + 1] .. '-0') end
end
if ARGV[4] ~= '0' then redis.call('PEXPIRE', KEYS[3], ARGV[4])
elseif tonumber(ARGV[3]) > tonumber(redis.call('HGET', KEYS[1], 'seq') or '0') then
  redis.call('HSET', KEYS[1], 'seq', ARGV[3])
end
return 'put'`,
};

/** Keys: head, lease, rows, the rows of before. Words: nonce, epoch, seq. Has the epoch read from now on. */
const FINISH: RedisScript = {
  keys: 4,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
redis.call('PERSIST', KEYS[3])
redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'seq', ARGV[3])
if KEYS[4] ~= KEYS[3] then redis.call('UNLINK', KEYS[4]) end
return 'put'`,
};

/** Keys: head, lease. Words: nonce, config, termsId, terms. */
const TERMS: RedisScript = {
  keys: 2,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
redis.call('HSET', KEYS[1], 'config', ARGV[2], 'termsId', ARGV[3], 'terms', ARGV[4])
return 'put'`,
};

/** Keys: head, lease. Words: nonce, key ids or nothing. */
const REVOKED: RedisScript = {
  keys: 2,
  lua: `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 'lost' end
if ARGV[2] == '' then redis.call('HDEL', KEYS[1], 'revoked') else redis.call('HSET', KEYS[1], 'revoked', ARGV[2]) end
return 'put'`,
};

/** Keys: lease. Words: nonce. Lets the next one publish at once. */
const LEAVE: RedisScript = {
  keys: 1,
  lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
};

/** What a publisher says to Redis. */
export const PUBLISHER_SCRIPTS = {
  sluiceClaim: CLAIM,
  sluicePut: PUT,
  sluiceFinish: FINISH,
  sluiceTerms: TERMS,
  sluiceRevoked: REVOKED,
  sluiceLeave: LEAVE,
  sluiceShowUses: SHOW_MEMBERS,
  sluiceDropUses: DROP_MEMBERS,
} as const;
