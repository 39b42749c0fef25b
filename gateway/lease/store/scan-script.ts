import { SCAN_FORGET_MS, SCAN_LIFE_MS, SCAN_STATE_LIFE_MS, SCAN_WAIT_MS } from '../centre-scans.ts';

/**
 * `topUpScans` of centre-scans.ts, step by step; test/gateway/lease/store compares them. KEYS: the account's scans. ARGV:
 * node, fence, seq, revision, scans, kept, wanted, learning (0 or 1). The value is a msgpack array: format 1, atMs,
 * clockMs, revision, scans, and seven per node: id, fence, seq, held, expiresMs, wanted, sinceMs. Reply: held, lifeMs,
 * others, fair and learning with spaces between.
 */
export const SCAN_SCRIPT = `
local floor, max, min = math.floor, math.max, math.min
local node, fence, seq = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local revision, scans = tonumber(ARGV[4]), tonumber(ARGV[5])
local kept, wanted, learning = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8] == '1'
local t = redis.call('TIME')
local now = t[1] * 1000 + floor(t[2] / 1000)
local raw = redis.call('GET', KEYS[1])
local old = raw and cmsgpack.unpack(raw)
if old and old[1] ~= 1 then return redis.error_reply('FORMAT of a later version') end
local clock, nodes, mine = 0, {}, nil
if old then
  clock = old[3] + max(0, now - old[2])
  for i = 6, #old, 7 do
    local n = {old[i], old[i + 1], old[i + 2], old[i + 3], old[i + 4], old[i + 5], old[i + 6]}
    if n[5] + ${SCAN_FORGET_MS} > clock then
      nodes[#nodes + 1] = n
      if n[1] == node then mine = n end
    end
  end
end
local function held(n) return n[5] > clock and n[4] or 0 end
local function speaks(n) return n[5] - ${SCAN_LIFE_MS - SCAN_WAIT_MS} > clock end
local function waits(n) return n[7] > 0 and speaks(n) end
local stale = mine and (fence < mine[2] or (fence == mine[2] and seq <= mine[3]))
if old and (stale or revision < old[4]) then revision, scans = old[4], old[5] end
local contenders, others = 1, 0
for _, n in ipairs(nodes) do
  if n ~= mine then
    if held(n) > 0 or waits(n) then contenders = contenders + 1 end
    if waits(n) then others = 1 end
  end
end
local fair = floor(scans / contenders)
local has, life
if stale then
  has, life = held(mine), max(0, mine[5] - clock)
  if fence < mine[2] then has, life = kept, 0 end
else
  wanted = max(kept, min(wanted, scans))
  local since = max(1, clock)
  if mine and mine[2] == fence and waits(mine) then since = mine[7] end
  local more = 0
  if not learning then
    local free = scans - kept
    for _, n in ipairs(nodes) do
      if n ~= mine then
        free = free - held(n)
        if waits(n) and n[7] < since then free = free - min(n[6] - held(n), max(1, fair - held(n))) end
      end
    end
    more = max(0, min(wanted - kept, free))
  end
  has, life = kept + more, ${SCAN_LIFE_MS}
  if has >= wanted then since = 0 elseif more > 0 then since = max(1, clock) end
  if not mine then
    mine = {}
    nodes[#nodes + 1] = mine
  end
  mine[1], mine[2], mine[3], mine[4], mine[5], mine[6], mine[7] = node, fence, seq, has, clock + life, wanted, since
  local new = {1, now, clock, revision, scans}
  for _, n in ipairs(nodes) do
    for i = 1, 7 do new[#new + 1] = n[i] end
  end
  redis.call('SET', KEYS[1], cmsgpack.pack(new), 'PX', ${SCAN_STATE_LIFE_MS})
end
local free = scans
for _, n in ipairs(nodes) do free = free - held(n) end
if free < 0 then others = 1 end
return string.format('%.17g %.17g %d %.17g %d', has, life, others, fair, learning and 1 or 0)
`;
