import { type Plan, plansFrom } from '../config/plans.ts';
import { type Prices, pricesFrom } from '../config/prices.ts';
import type { Problem } from '../config/problem.ts';
import { openTable } from '../config/table.ts';

/** What calls are let in by and what they cost. */
export type PublishedTerms = Readonly<{ plans: ReadonlyMap<string, Plan>; prices: Prices }>;

/** Plans and prices as the tables of a config, in one spelling: equal terms give equal texts. */
export function termsText({ plans, prices }: PublishedTerms): string {
  const rows = inOrder(plans).map(([name, { rps, burst, credits, batchMax, scans }]) => [
    name,
    { rps, burst, ...(credits === undefined ? {} : { credits }), max_batch: batchMax, scans },
  ]);
  const methods = Object.fromEntries(inOrder(prices.methods));
  return JSON.stringify({ plans: Object.fromEntries(rows), credits: { default: prices.default, methods } });
}

function inOrder<T>(rows: ReadonlyMap<string, T>): [string, T][] {
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** Reads such a text by the rules of a config; `undefined` when it breaks them, as a later version's may. */
export function termsFrom(text: string): PublishedTerms | undefined {
  const problems: Problem[] = [];
  try {
    const root = openTable(JSON.parse(text), '', {}, problems);
    const terms = { plans: plansFrom(root), prices: pricesFrom(root) };
    return problems.length === 0 ? terms : undefined;
  } catch {
    return undefined;
  }
}
