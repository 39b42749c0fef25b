/** What a request asks of its account: `calls` of the rate, `credits` of a trial's allowance. */
export type Price = Readonly<{ calls: number; credits: number }>;

/** One call for every element of a request, notifications and malformed ones included, and the sum of their credits. */
export function priceOf(elements: readonly Readonly<{ credits: number }>[]): Price {
  let credits = 0;
  for (const element of elements) credits += element.credits;
  return { calls: elements.length, credits };
}
