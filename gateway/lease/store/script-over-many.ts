/**
 * A script over several keys from one over a single key: KEYS are the keys, ARGV the words of each, one after the
 * other and as many each. The reply is an array of its replies; an error of one is its text, and the others are done.
 */
export function overMany(script: string): string {
  return `
local function one(KEYS, ARGV)
${script}
end
local replies, size = {}, #ARGV / #KEYS
for i, key in ipairs(KEYS) do
  local reply = one({key}, {unpack(ARGV, (i - 1) * size + 1, i * size)})
  replies[i] = type(reply) == 'table' and reply.err or reply
end
return replies
`;
}
