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

/** The names of usage's counters, in the order in which they are written. */
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
