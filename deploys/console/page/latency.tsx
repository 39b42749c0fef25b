/** @jsxImportSource preact */
import { boundOf } from '../../usage/latency.ts';
import type { Counts } from '../../usage/report.ts';
import { latencyText } from './number.ts';

/** How fast a share of answers began, as a bound that holds: `within 50 ms`, `over 1.00 s`, or a dash. */
export function WithinText({ counts, quantile }: Readonly<{ counts: Counts; quantile: number }>) {
  const bound = boundOf(counts, quantile);
  if (bound === undefined) return <>–</>;
  return (
    <>
      {bound.kind === 'about' ? 'within ' : 'over '}
      {latencyText(bound.ms)}
    </>
  );
}
