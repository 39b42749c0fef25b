const COUNTED = {
  calls: 'calls',
  credits: 'credits',
  refunded: 'refunded',
  errors: 'errors',
  bytesOut: 'bytes_out',
  refused: 'refused',
} as const;

const JOURNALLED = { charged: 'charged', returned: 'returned' } as const;

const LATENCIES = {
  within10Ms: 'within_10ms',
  within50Ms: 'within_50ms',
  within250Ms: 'within_250ms',
  within1S: 'within_1s',
  slower: 'slower',
} as const;

/**
 * The counters that usage is made of, each with its column: what every cell has, and what days and months add up.
 *
 * Of calls that were answered, each is in one of the five from `within10Ms` to `slower`, by the milliseconds from its
 * request, read whole, to the first byte of its own answer handed to the caller: up to and with 10, 50, 250, 1000, or
 * more. In a batch that is when its turn came, for that is what its caller waited for.
 */
export const USAGE_COUNTERS = { ...COUNTED, ...LATENCIES } as const;

/**
 * The counters of an hour's cell: those of usage, and what of its credits went through the journal. Their order is that
 * of the columns in the ledger; a new counter comes last.
 */
export const CELL_COUNTERS = { ...COUNTED, ...JOURNALLED, ...LATENCIES } as const;

export type UsageCounter = keyof typeof USAGE_COUNTERS;
export type CellCounter = keyof typeof CELL_COUNTERS;

/** The names of a cell's counters, in the order in which they are written. */
export const CELL_COUNTER_NAMES = Object.keys(CELL_COUNTERS) as readonly CellCounter[]; // Object.keys forgets them

export const USAGE_COUNTER_NAMES = Object.keys(USAGE_COUNTERS) as readonly UsageCounter[]; // as above

/** The columns of a cell, its place first, in the order in which they are written. */
export const CELL_COLUMNS: readonly string[] = [
  'hour',
  'account_id',
  'key_id',
  'method',
  'node',
  ...Object.values(CELL_COUNTERS),
];

/** How long usage stays in Redis for a deploys that does not take it, in milliseconds. */
export const SHARED_USAGE_LIFE_MS = 72 * 3_600_000;

/** The hash of an account's cells in one hour: fields by `cellField`, values whole numbers after commas. */
export function cellsKey(accountId: number, hour: number): string {
  return `{sluice:${accountId}}:usage:${hour}`;
}

/** The hash of what each node has charged to an account and given back: `CHARGED,REFUNDED`. */
export function spentKey(accountId: number): string {
  return `{sluice:${accountId}}:spent`;
}

/** Cells that deploys has not taken yet: a sorted set of `placeText`s by a number that grows with every message. */
export const CHANGED_CELLS = '{sluice:usage}:changed';
/** That number. */
export const CELLS_CLOCK = '{sluice:usage}:clock';
/** Another one whenever Redis has begun with nothing. */
export const USAGE_LIFE = '{sluice:usage}:life';

/** Where a cell belongs. `hour` -1, with neither key nor method: what the node spent, and no cell. */
export type CellKey = Readonly<{
  accountId: number;
  hour: number;
  keyId: string;
  method: string;
  node: string;
}>;

/** The hour of places that are no cells. */
export const NO_HOUR = -1;

export function cellKeyText({ accountId, hour, keyId, method, node }: CellKey): string {
  return JSON.stringify([accountId, hour, keyId, method, node]);
}

/** Reads such a text; `undefined` when it is none. */
export function cellKeyFrom(text: string): CellKey | undefined {
  try {
    const [accountId, hour, keyId, method, node]: unknown[] = JSON.parse(text);
    if (typeof accountId !== 'number' || typeof hour !== 'number') return undefined;
    return { accountId, hour, keyId: String(keyId), method: String(method), node: String(node) };
  } catch {
    return undefined;
  }
}

export function cellField({ keyId, method, node }: CellKey): string {
  return JSON.stringify([keyId, method, node]);
}

/** Reads one of a cell's counters; one that was not sent is 0. */
export function counterAt(text: string, at: number): number {
  return Number(text.split(',')[at] ?? 0);
}

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
