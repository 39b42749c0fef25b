import type { Counts } from './report.ts';

/** A quantile of how long answers took to begin, estimated; `over`: more than what is told apart. */
export type Latency = Readonly<{ kind: 'about'; ms: number } | { kind: 'over'; ms: number }>;

const CLASSES = [
  ['within10Ms', 0, 10],
  ['within50Ms', 10, 50],
  ['within250Ms', 50, 250],
  ['within1S', 250, 1_000],
] as const;

type Classes = Pick<Counts, 'within10Ms' | 'within50Ms' | 'within250Ms' | 'within1S' | 'slower'>;

/**
 * The time within which the share `quantile` (0 to 1) of answers began: that of its class, and in it as if answers were
 * evenly spread. `undefined` when nothing was answered.
 */
export function latencyOf(counts: Classes, quantile: number): Latency | undefined {
  const answered = CLASSES.reduce((sum, [name]) => sum + counts[name], counts.slower);
  if (answered === 0) return undefined;
  let wanted = quantile * answered;
  for (const [name, fromMs, toMs] of CLASSES) {
    const inClass = counts[name];
    if (inClass > 0 && wanted <= inClass)
      return { kind: 'about', ms: Math.ceil(fromMs + (toMs - fromMs) * (wanted / inClass)) };
    wanted -= inClass;
  }
  return { kind: 'over', ms: 1_000 };
}
