-- What a gateway of nginx and Lua does to check what Sluice checks: the key by its SHA-256, the calls' JSON, a token bucket,
-- credits, usage by hour, key and method. Accounts, buckets, credits and usage are in shared memory, as they must be where
-- nginx has more than one worker. A batch goes on as one subrequest for each of its calls.
local cjson = require 'cjson.safe'
local ffi = require 'ffi'

ffi.cdef [[ unsigned char *SHA256(const unsigned char *data, size_t length, unsigned char *digest); ]]
local C, digest = ffi.C, ffi.new('unsigned char[32]')

local accounts, buckets = ngx.shared.accounts, ngx.shared.buckets
local credits, usage = ngx.shared.credits, ngx.shared.usage

local PLANS = {
  bench = { rps = 10000000, burst = 10000000 },
  slow = { rps = 1, burst = 1 },
  spent = { rps = 5, burst = 10, has_credits = true },
}
local PRICES = { getProgramAccounts = 50, getMultipleAccounts = 2, getTransaction = 10, getBlock = 10 }
local METHODS = { getAccountInfo = true, getSlot = true, getProgramAccounts = true, getMultipleAccounts = true, getTransaction = true, getBlock = true }

local gateway = {}

local function hash_of(key)
  C.SHA256(key, #key, digest)
  return ffi.string(digest, 32)
end

-- Reads a file of `key plan` lines.
function gateway.load(path)
  for line in io.lines(path) do
    local key, plan = line:match('^(%S+) (%S+)$')
    local hash = hash_of(key)
    accounts:set(hash, plan)
    if PLANS[plan].has_credits then credits:set(hash, 0) end
  end
end

local function refusal(code, message, id)
  return cjson.encode({ jsonrpc = '2.0', error = { code = code, message = message }, id = id })
end

local function refuse(status, message, id)
  ngx.status = status
  ngx.header['content-type'] = 'application/json'
  ngx.print(refusal(-status, message, id))
  return ngx.exit(status)
end

local function key_of()
  local key = ngx.var.http_x_token
  if key then return key end
  local bearer = ngx.var.http_authorization
  if bearer then return bearer:match('^[Bb]earer (%S+)$') end
  return ngx.var.args and ngx.req.get_uri_args(4)['api-key']
end

-- A token bucket as the instant at which it is full again.
local function take(hash, plan, now)
  local full_at = buckets:get(hash) or now
  if full_at < now then full_at = now end
  full_at = full_at + 1 / plan.rps
  if full_at - now > plan.burst / plan.rps then return false end
  buckets:set(hash, full_at, 60)
  return true
end

local function charge(hash, plan, call, now)
  local method = call.method
  if type(method) ~= 'string' or (call.params ~= nil and type(call.params) ~= 'table') then return 400, 'Invalid request' end
  if not take(hash, plan, now) then return 429, 'Rate limit exceeded' end
  local price = PRICES[method] or 1
  if plan.has_credits then
    if (credits:incr(hash, -price) or 0) < 0 then
      credits:incr(hash, price)
      return 402, 'Trial credits used up'
    end
  end
  usage:incr(hash .. math.floor(now / 3600) .. (METHODS[method] and method or 'other'), 1, 0)
end

local function split(hash, plan, batch, body, now)
  local requests, answers, positions = {}, {}, {}
  for i, call in ipairs(batch) do
    local status, message = charge(hash, plan, call, now)
    if status then answers[i] = refusal(-status, message, call.id)
    else
      requests[#requests + 1] = { '/backend', { method = ngx.HTTP_POST, body = cjson.encode(call) } }
      positions[#requests] = i
    end
  end
  if #requests > 0 then
    local responses = { ngx.location.capture_multi(requests) }
    for i, response in ipairs(responses) do
      answers[positions[i]] = response.status == 200 and response.body or refusal(-32603, 'Internal error', batch[positions[i]].id)
    end
  end
  local text = '[' .. table.concat(answers, ',') .. ']'
  ngx.header['content-type'] = 'application/json'
  ngx.header['content-length'] = #text
  ngx.print(text)
  return ngx.exit(200)
end

function gateway.access()
  local key = key_of()
  if not key then return refuse(401, 'Missing API key') end
  local hash = hash_of(key)
  local plan = PLANS[accounts:get(hash)]
  if not plan then return refuse(401, 'Invalid or inactive API key') end
  ngx.req.read_body()
  local body = ngx.req.get_body_data()
  local call = body and cjson.decode(body)
  if type(call) ~= 'table' then return refuse(400, 'Parse error') end
  local now = ngx.now()
  if call[1] then return split(hash, plan, call, body, now) end
  local status, message = charge(hash, plan, call, now)
  if status then return refuse(status, message, call.id) end
end

return gateway
