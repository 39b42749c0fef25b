/** What one measurement offers to a subject. */
export type Load =
  | { readonly kind: 'calls'; readonly body: string; readonly connections: number; readonly keys: number }
  | { readonly kind: 'scan'; readonly framing: 'length' | 'chunked'; readonly bytes: number }
  /** getSlot at a constant rate, beside streams at a pace in bytes a second (0: as fast as they come). */
  | { readonly kind: 'beside'; readonly perSecond: number; readonly streams: number; readonly pace: number };

/** One row of a scenario for each subject it is for. */
export type Variant = Readonly<{ label: string; load: Load; backends: number; processes: number }>;

export type Scenario = Readonly<{
  name: string;
  title: string;
  variants: readonly Variant[];
  /** The subjects it is for; all without it. */
  subjects?: RegExp;
  /** What ratios are to: a subject's name, or the subject's own first variant. */
  base: 'nginx-lua' | 'haproxy' | 'own';
}>;

const GIGABYTE = 1_000_000_000;

const calls = (body: string, keys = 1): Load => ({ kind: 'calls', body, connections: 64, keys });
const one = (load: Load, label = ''): Variant => ({ label, load, backends: 1, processes: 1 });
const beside = (streams: number, pace: number): Load => ({ kind: 'beside', perSecond: 500, streams, pace });
const OURS = /^sluice/;

/** Every scenario, in the order of the report. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'small',
    title: 'getAccountInfo, every call another account',
    variants: [one(calls('varied'))],
    base: 'nginx-lua',
  },
  {
    name: 'same',
    title: 'The same getAccountInfo under ids of its own',
    variants: [one(calls('same'))],
    base: 'nginx-lua',
  },
  {
    name: 'batch',
    title: 'Batches of 20, by call',
    variants: [one(calls('batch20'))],
    base: 'nginx-lua',
  },
  {
    name: 'scan-length',
    title: 'A scan of 1 GB with Content-Length',
    variants: [one({ kind: 'scan', framing: 'length', bytes: GIGABYTE })],
    base: 'haproxy',
  },
  {
    name: 'scan-chunked',
    title: 'A scan of 1 GB in chunks',
    variants: [one({ kind: 'scan', framing: 'chunked', bytes: GIGABYTE })],
    base: 'haproxy',
  },
  {
    name: 'mixed',
    title: 'getSlot 500 times a second, beside three streams',
    variants: [
      one(beside(0, 0), 'no streams'),
      one(beside(3, 100_000_000), '100 MB/s each'),
      one(beside(3, 0), 'full speed'),
    ],
    base: 'own',
  },
  {
    name: 'keys',
    title: 'getAccountInfo under many keys',
    variants: [1, 1_000, 100_000].map((keys) => one(calls('varied', keys), `${keys} keys`)),
    subjects: /^sluice|^nginx-lua$/,
    base: 'own',
  },
  {
    name: 'backends',
    title: 'getAccountInfo over more backends',
    variants: [1, 4, 16].map((backends) => ({ ...one(calls('varied'), `${backends} backends`), backends })),
    subjects: OURS,
    base: 'own',
  },
  {
    name: 'processes',
    title: 'getAccountInfo over more processes',
    variants: [1, 2].map((processes) => ({ ...one(calls('varied'), `${processes} processes`), processes })),
    subjects: OURS,
    base: 'own',
  },
];

/** How many keys a run of these scenarios needs, and how many backends. */
export function needsOf(scenarios: readonly Scenario[]): Readonly<{ keys: number; backends: number }> {
  const variants = scenarios.flatMap((scenario) => scenario.variants);
  return {
    keys: Math.max(1, ...variants.map(({ load }) => (load.kind === 'calls' ? load.keys : 1))),
    backends: Math.max(1, ...variants.map(({ backends }) => backends)),
  };
}
