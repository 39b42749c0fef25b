import type { Prices } from '../../shared/config/prices.ts';
import type { Element } from '../request/call.ts';

/** What a request asks of its account: `calls` of the rate, `credits` of a trial's allowance. */
export type Price = Readonly<{ calls: number; credits: number }>;

/** One call for every element, credits for those that are calls; unknown methods cost the default (DESIGN 3.3). */
export function priceOf(elements: readonly Element[], prices: Prices): Price {
  let credits = 0;
  for (const element of elements) credits += creditsOf(element, prices);
  return { calls: elements.length, credits };
}

/** The credits of one element; notifications and malformed elements are never executed and cost none. */
export function creditsOf(element: Element, prices: Prices): number {
  return element.kind === 'call' ? (prices.methods.get(element.method) ?? prices.default) : 0;
}
