/**
 * A script over what nodes spent and counted, one or many accounts at once. KEYS: spent and cells, of one account and hour
 * after the other. ARGV: of each two keys how many nodes and how many fields, then `words` of each node and field, the
 * first its name. `one` is Lua that does with `key` and ARGV from `at` on what is to be done; the reply is `values`.
 */
export function overCells(words: number, one: string): string {
  return `
local at, values = 1, {}
local function one(key)
${one}
end
for pair = 1, #KEYS, 2 do
  local nodes, fields = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  for i = 1, nodes + fields do
    one(KEYS[i <= nodes and pair or pair + 1])
    at = at + ${words}
  end
end
return values`;
}
