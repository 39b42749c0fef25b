import { CREDIT_LEAP_MS, CREDIT_LIVE_MS, CREDIT_RELEASE_MS, RECALL_MS } from '../centre-credit.ts';
import { RATE_FORGET_MS, RATE_LIFE_MS, RATE_START_MS, RESERVE_GRACE_MS, RESERVE_MS } from '../centre-rate.ts';

/** The server's own clock in whole milliseconds: all processes see one, and in a cluster it is the right server's. */
const NOW = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** Each mirrors its module in TypeScript step by step, with the same numbers; test/gateway/lease/store compares them. */

/**
 * `topUpRate` of centre-rate.ts. KEYS: the account's rate. ARGV: node, fence, seq, revision, rps, burst, spent, wanted,
 * needed, weight, recovering (0 or 1), strange (1 when a bucket that is missing may have been lost).
 * The value is a msgpack array: format 1, micro, atMs, clockMs, revision, perMs, burst, reserved, reservedMs, and
 * eight per node: id, fence, seq, granted, spent, expiresMs, wanted, weight. Reply: the grant's numbers with spaces between.
 */
export const RATE_SCRIPT = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local node, fence, seq = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local revision, perMs, burst = tonumber(ARGV[4]), max(1, floor(tonumber(ARGV[5]) * 1000 + 0.5)), tonumber(ARGV[6])
local said, wanted, needed, weight = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local recovering, strange = ARGV[11] == '1', ARGV[12] == '1'
${NOW}
local raw = redis.call('GET', KEYS[1])
local old = raw and cmsgpack.unpack(raw)
if old and old[1] ~= 1 then return redis.error_reply('FORMAT of a later version') end
local micro, reserved, reservedMs = 0, 0, 0
local clock, nodes, mine = 0, {}, nil
local function held(n, at) return n[6] > at and n[4] - n[5] or 0 end
local function capAt(all, at, most)
  local sum = 0
  for _, n in ipairs(all) do sum = sum + held(n, at) end
  return (most - sum) * 1e6
end
if old then
  local since, ended, all = old[4], old[4], {}
  micro, reserved, reservedMs = old[2], old[8], old[9]
  clock = since + max(0, now - old[3])
  if reservedMs <= clock then reserved, reservedMs = 0, 0 end
  for i = 10, #old, 8 do
    local n = {old[i], old[i + 1], old[i + 2], old[i + 3], old[i + 4], old[i + 5], old[i + 6], old[i + 7]}
    all[#all + 1] = n
    if held(n, since) > 0 and n[6] <= clock then ended = max(ended, n[6]) end
    if n[6] + ${RATE_FORGET_MS} > clock then
      nodes[#nodes + 1] = n
      if n[1] == node then mine = n end
    end
  end
  local function refill(elapsed, cap)
    micro = min(cap, micro + min(elapsed, max(0, ceil((cap - micro) / old[6]))) * old[6])
  end
  refill(ended - since, capAt(all, since, old[7]))
  refill(clock - ended, capAt(nodes, clock, old[7]))
else
  micro = (recovering or strange) and min(burst * 1e6, perMs * ${RATE_START_MS}) or burst * 1e6
end
local stale = mine and (fence < mine[2] or (fence == mine[2] and seq <= mine[3]))
if old and (stale or revision < old[5]) then revision, perMs, burst = old[5], old[6], old[7] end
local function waitFor(tokens)
  local short = tokens * 1e6 - micro
  if short <= 0 then return 0 end
  local cap = capAt(nodes, clock, burst)
  if tokens * 1e6 <= cap then return ceil(short / perMs) end
  local last = clock
  for _, n in ipairs(nodes) do
    if held(n, clock) > 0 then last = max(last, n[6]) end
  end
  local later = min(max(cap, micro), micro + (last - clock) * perMs)
  return last - clock + ceil((tokens * 1e6 - later) / perMs)
end
needed = min(needed, burst)
local given = 0
if not stale then
  local same = mine and mine[2] == fence
  local spent = max(said, same and mine[5] or 0)
  local debt = max(0, spent - (same and mine[4] or said))
  local grants = same and mine[6] > clock and mine[4] + debt or spent
  local known = mine
  local came = same and mine[6] > clock and perMs * (clock - (mine[6] - ${RATE_LIFE_MS}))
  if not mine then
    mine = {}
    nodes[#nodes + 1] = mine
  end
  mine[1], mine[2], mine[3], mine[4], mine[5] = node, fence, seq, grants, spent
  mine[6], mine[7], mine[8] = clock + ${RATE_LIFE_MS}, wanted, weight
  local paid = micro - debt * 1e6
  local low = min(micro, burst * 1e6, perMs * ${RATE_START_MS})
  micro = recovering and (known and max(paid, low) or low) or paid
  local has = mine[4] - mine[5]
  local left = max(0, floor(micro / 1e6) - (reserved > 0 and needed < reserved and reserved or 0))
  local serves = needed > 0 and has + left >= needed
  given = serves and max(0, needed - has) or 0
  left = left - given
  local target = min(burst, wanted + (serves and needed - given or 0))
  if target > has then
    local missing, missed, weights = target - has, target - has, 0
    for _, n in ipairs(nodes) do
      if n[6] > clock then
        local wants = n[7] > n[4] - n[5]
        if n ~= mine then missed = missed + max(0, n[7] - (n[4] - n[5])) end
        if n == mine or wants then weights = weights + n[8] end
      end
    end
    local share = missing
    if missed > left then
      local part = left * weight / max(1, weights)
      if came and weights ~= weight then part = 0.25 * part + 0.75 * (came * weight / (max(1, weights) * 1e6) - debt) end
      share = min(missing, left, max(1, floor(part)))
    end
    target = has + share
  end
  micro = micro - (target - has + given) * 1e6
  mine[5] = mine[5] + given
  mine[4] = mine[5] + target
  if serves and needed >= reserved then
    reserved, reservedMs = 0, 0
  elseif not serves and needed > max(1, reserved) then
    local wait = waitFor(needed)
    if wait <= ${RESERVE_MS} then
      reserved, reservedMs = needed, clock + max(1, ceil(wait / 1000)) * 1000 + ${RESERVE_GRACE_MS}
    end
  end
  local new = {1, micro, now, clock, revision, perMs, burst, reserved, reservedMs}
  for _, n in ipairs(nodes) do
    for i = 1, 8 do new[#new + 1] = n[i] end
  end
  local life = ceil((2 * burst * 1e6 + max(0, -micro)) / perMs) + ${2 * RATE_LIFE_MS + 60_000}
  redis.call('SET', KEYS[1], cmsgpack.pack(new), 'PX', string.format('%.0f', life))
end
local granted, spent = mine[4], mine[5]
if stale and fence < mine[2] then granted, spent = said, said end
local unserved = needed > granted - spent + given and needed or 1
local wait = waitFor(unserved)
if reserved > unserved then
  local ends = max(wait, reservedMs - clock)
  wait = reserved + unserved > burst and ends or min(ends, waitFor(reserved + unserved))
end
local active, weights = 0, 0
for _, n in ipairs(nodes) do
  if n[6] > clock then active, weights = active + 1, weights + n[8] end
end
return string.format('%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g',
  granted, spent, given, max(0, mine[6] - clock), wait, floor(micro / 1e6), active, weights)
`;

/** After a loss, grants are held back for so long while nodes say what they hold. */
export const LEARNING_MS = 2_000;

/**
 * `topUpCredits` of centre-credit.ts. KEYS: the account's credits, which never expire. ARGV: node, fence, seq,
 * revision, total, charged, refunded, wanted, needed, held, learning (0 or 1), answered (the seq of the node's last message
 * about the account that was answered under this fence, or 0).
 * A centre that does not remember a message it answered, or has no record of an account that was charged, has lost
 * something: it learns for LEARNING_MS. The value is a msgpack array: format 1, revision, total, atMs, clockMs,
 * learningUntilMs (wall), and nine per node: id, fence, seq, granted, returned, charged, refunded, heardMs, needsUntilMs.
 * Reply: the grant's numbers and flags, whether something was lost, then node and credits of each release, with spaces between.
 */
export const CREDIT_SCRIPT = `
local floor, max, min = math.floor, math.max, math.min
local node, fence, seq = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local revision, total = tonumber(ARGV[4]), tonumber(ARGV[5])
local charged, refunded, wanted, needed = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local known, learning, answered = tonumber(ARGV[10]), ARGV[11] == '1', tonumber(ARGV[12])
${NOW}
local raw = redis.call('GET', KEYS[1])
local old = raw and cmsgpack.unpack(raw)
if old and old[1] ~= 1 then return redis.error_reply('FORMAT of a later version') end
local clock, learnUntil, nodes, mine = 0, 0, {}, nil
if old then
  clock = old[5] + min(${CREDIT_LEAP_MS}, max(0, now - old[4]))
  learnUntil = min(old[6], now + ${LEARNING_MS})
  for i = 7, #old, 9 do
    local n = {old[i], old[i + 1], old[i + 2], old[i + 3], old[i + 4], old[i + 5], old[i + 6], old[i + 7], old[i + 8]}
    nodes[#nodes + 1] = n
    if n[1] == node then mine = n end
  end
  if revision < old[2] then revision, total = old[2], old[3] end
end
local function held(n) return n[4] - n[5] - (n[6] - n[7]) end
local function isLive(n) return clock - n[8] < ${CREDIT_LIVE_MS} end
local function available()
  local sum = total
  for _, n in ipairs(nodes) do sum = sum - (n[4] - n[5]) end
  return sum
end
local function isRecalled()
  for _, n in ipairs(nodes) do
    if n ~= mine and n[9] > clock then return true end
  end
  return false
end
local stale = mine and (fence < mine[2] or (fence == mine[2] and seq <= mine[3]))
local lost = (not old and charged > 0) or (answered > 0 and (not mine or fence > mine[2] or
  (fence == mine[2] and mine[3] < answered)))
if lost then learnUntil = now + ${LEARNING_MS} end
if now < learnUntil then learning = true end
if mine then
  mine[6], mine[7] = max(mine[6], charged), max(mine[7], refunded)
  mine[4] = max(mine[4], mine[5] + mine[6] - mine[7])
else
  mine = {node, fence, seq, charged, refunded, charged, refunded, clock, 0}
  nodes[#nodes + 1] = mine
end
local released = ''
if not stale then
  mine[2], mine[3], mine[8], mine[9] = fence, seq, clock, 0
  for _, n in ipairs(nodes) do
    local credits = held(n)
    if n ~= mine and credits > 0 and clock - n[8] >= ${CREDIT_RELEASE_MS} then
      n[5] = n[5] + credits
      released = released .. string.format(' %s %.17g', n[1], credits)
    end
  end
  local has = held(mine)
  local goal = learning and min(known, wanted) or max(wanted, needed)
  if has >= goal then
    mine[5] = mine[5] + has - goal
  elseif not learning then
    local free, live = max(0, available()), 0
    for _, n in ipairs(nodes) do
      if isLive(n) then live = live + 1 end
    end
    local share = min(goal - has, isRecalled() and 0 or floor(free / (2 * live)))
    mine[4] = mine[4] + max(share, min(free, max(0, needed - has)))
  end
  if not learning and needed > held(mine) then mine[9] = clock + ${RECALL_MS} end
end
local new = {1, revision, total, now, clock, learnUntil}
if stale then new = {1, old[2], old[3], old[4], old[5], learnUntil} end
for _, n in ipairs(nodes) do
  for i = 1, 9 do new[#new + 1] = n[i] end
end
redis.call('SET', KEYS[1], cmsgpack.pack(new))
local others, dead = 0, 0
for _, n in ipairs(nodes) do
  if n ~= mine then
    if isLive(n) then others = others + held(n) else dead = dead + held(n) end
  end
end
local function flag(is) return is and 1 or 0 end
local allowance = stale and fence < mine[2] and 0 or held(mine)
return string.format('%.17g %.17g %.17g %.17g %d %d %d', allowance, available(), others, dead,
  flag(isRecalled()), flag(learning), flag(lost)) .. released
`;
