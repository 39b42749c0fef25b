import { integer, positive } from './kinds.ts';
import { METHODS } from './methods.ts';
import type { Table } from './table.ts';

/** The limits of an account on the RPC endpoint (docs/spec.md 2.7). */
export type Plan = Readonly<{
  /** Calls per second, the bucket's refill. */
  rps: number;
  /** The bucket's size in calls. */
  burst: number;
  /** A trial's allowance; `undefined` for paid plans, which have no credit limit. */
  credits: number | undefined;
  batchMax: number;
  /** Concurrent scan calls, held to the last byte. */
  scans: number;
  /** Concurrent calls of any class in each process, held to the last byte. */
  inFlight: number;
  /** Backends that a signed transaction is given to at once; absent: one. */
  sendFanout?: number | undefined;
}>;

/** A plan's calls at once when its table does not say: as many as its bucket lets in together, and never fewer than a page asks for. */
export function inFlightBy(burst: number): number {
  return Math.max(burst, 16);
}

/** The plans when the config has no `[plans]` table. A `[plans.NAME]` table replaces or adds one. */
export const PLANS_BY_DEFAULT: Readonly<Record<string, Plan>> = {
  trial: { rps: 5, burst: 10, credits: 250_000, batchMax: 20, scans: 1, inFlight: 16 },
  starter: { rps: 25, burst: 50, credits: undefined, batchMax: 50, scans: 2, inFlight: 50 },
  pro: { rps: 100, burst: 200, credits: undefined, batchMax: 100, scans: 4, inFlight: 200 },
  business: { rps: 300, burst: 600, credits: undefined, batchMax: 200, scans: 8, inFlight: 600 },
  scale: { rps: 1_000, burst: 2_000, credits: undefined, batchMax: 500, scans: 16, inFlight: 2_000 },
};

export function plansFrom(root: Table): ReadonlyMap<string, Plan> {
  const plans = new Map(Object.entries(PLANS_BY_DEFAULT));
  const table = root.table('plans');
  for (const name of table.keys()) {
    if (!/^[a-z][a-z0-9_-]{0,31}$/.test(name) || name === 'none') {
      const expected = 'a plan name of lowercase letters, digits, - and _, other than none';
      table.problem(name, name, expected, '[plans.pro]');
    }
    plans.set(name, planFrom(table.table(name), plans.get(name)));
  }
  return plans;
}

/** Rates are bounded generously: ten million calls a second is more than one host's sockets can carry. */
const RPS_MAX = 10_000_000;

/** More copies of a transaction reach a leader no sooner. */
const SEND_FANOUT_MAX = 16;

function planFrom(table: Table, before: Plan | undefined): Plan {
  const rate = positive(RPS_MAX, '100');
  const own = before === undefined ? table.need('rps', rate, 'calls per second') : table.take('rps', rate);
  const rps = own ?? before?.rps ?? 1;
  const usualBurst = before?.burst ?? Math.max(1, Math.ceil(2 * rps));
  const burst = table.takeOr('burst', integer(1, RPS_MAX, '200'), usualBurst);
  return table.close({
    rps,
    burst,
    credits: table.take('credits', integer(0, Number.MAX_SAFE_INTEGER, '250_000')) ?? before?.credits,
    batchMax: table.takeOr('max_batch', integer(1, 100_000, '100'), before?.batchMax ?? 100),
    scans: table.takeOr('scans', integer(1, 65_535, '4'), before?.scans ?? 1),
    inFlight: table.takeOr('in_flight', integer(1, RPS_MAX, '200'), inFlightBy(burst)),
    sendFanout: table.take('send_fanout', integer(1, SEND_FANOUT_MAX, '3')) ?? before?.sendFanout,
  });
}

/** Credits by method; `default` is for every other one, unknown methods included. */
export type Prices = Readonly<{ default: number; methods: ReadonlyMap<string, number> }>;

/** The credit costs when the config has no `[credits]` table; a row of `[credits.methods]` replaces or adds one. */
export const PRICES_BY_DEFAULT: ReadonlyMap<string, number> = new Map(
  [...METHODS].flatMap(([name, { credits }]) => (credits === undefined ? [] : [[name, credits] as const])),
);

/** All prices: those of the config over the defaults. A price of 0 makes a method free. */
export function pricesFrom(root: Table): Prices {
  const table = root.table('credits');
  const price = integer(0, 1_000_000_000, '50');
  const standard = table.takeOr('default', price, 1);
  const methods = new Map(PRICES_BY_DEFAULT);
  const rows = table.table('methods');
  for (const method of rows.keys())
    methods.set(method, rows.takeOr(method, price, methods.get(method) ?? standard));
  return table.close({ default: standard, methods });
}
