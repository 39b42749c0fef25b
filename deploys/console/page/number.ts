// Made once: a formatter per number was most of a long table's time.
const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `1,234,567`. */
export function countText(count: number): string {
  return whole.format(count);
}

/** A share of one in per cent: `0 %`, `0.4 %`, `12 %`, and never a rounded 0 or 100. */
export function shareText(share: number): string {
  if (share > 0 && share < 0.001) return '< 0.1 %';
  if (share < 1 && share > 0.99) return '> 99 %';
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;
}

/** A duration of a request: `0.4 ms`, `38 ms`, `1.25 s`. */
export function latencyText(ms: number): string {
  if (ms < 1) return `${ms.toFixed(1)} ms`;
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(2)} s`;
}

/** `512 B`, `1.4 MB`; powers of 1000. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1_000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}
