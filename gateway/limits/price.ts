/**
 * What a request asks of its account: `calls` of the rate, `credits` of a trial's allowance. `bill` is told when the
 * credits go through the journal.
 */
export type Price = Readonly<{ calls: number; credits: number; bill?: Bill }>;

/** What is written down together with the journal, to the unit. Both are called at the moment the journal's counters change. */
export type Bill = Readonly<{
  /** The credits were taken. */
  take(): void;
  /** They could not be made durable and were given back. */
  giveBack(): void;
}>;

/** One call for every element of a request, notifications and malformed ones included, and the sum of their credits. */
export function priceOf(elements: readonly Readonly<{ credits: number }>[]): Price {
  let credits = 0;
  for (const element of elements) credits += element.credits;
  return { calls: elements.length, credits };
}
