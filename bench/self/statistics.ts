/** The value at `share` (0 to 1) of the sorted values, by nearest rank; NaN for none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** The middle value, or the mean of the two in the middle; NaN for none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const upper = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const lower = sorted[Math.ceil(sorted.length / 2) - 1] ?? Number.NaN;
  return (lower + upper) / 2;
}

/** The ratio of each pair, first over second: what was measured one after the other shares the machine's mood. */
export function ratios(first: readonly number[], second: readonly number[]): readonly number[] {
  return first.slice(0, second.length).map((value, i) => value / (second[i] ?? Number.NaN));
}

/** A median with its range, as in `812 (790-845)`; `-` for none. */
export function spread(values: readonly number[], digits = 0): string {
  if (values.length === 0) return '-';
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)].map((value) =>
    value.toFixed(digits),
  );
  return `${middle} (${low}-${high})`;
}
