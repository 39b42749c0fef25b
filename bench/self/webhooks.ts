import { atMost, exactly, type Finding, tableOfFindings } from './finding.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { percentile } from './statistics.ts';
import { type Drained, drained, HANGING, punctuality, type Scene } from './webhook-world.ts';

const LIMIT_MS = 180_000;
/** The many are to be delivered within this time, and programs served meanwhile within that. */
const [DRAINED_SECONDS_MAX, PROGRAMS_MS_MAX, FIRST_MS_MAX] = [30, 50, 2_000];
const SCENES: readonly (readonly [string, Scene, (seen: Drained, scene: Scene) => readonly Finding[]])[] = [
  [
    '5000 receivers of 200 ms',
    { webhooks: 5_000, answerMs: 200, hanging: 0, upgrades: 1 },
    ({ delivered, posts, drainedMs, programsMs }, { webhooks }) => [
      exactly('5000: delivered', delivered, webhooks),
      exactly('5000: POSTs', posts, webhooks),
      atMost('5000: drained, s', drainedMs / 1_000, DRAINED_SECONDS_MAX, 1),
      atMost('5000: /programs p99 meanwhile, ms', percentile(programsMs, 0.99), PROGRAMS_MS_MAX, 1),
    ],
  ],
  [
    '200, one of which hangs',
    { webhooks: 200, answerMs: 200, hanging: 1, upgrades: 1 },
    ({ posts, firstMs }, { webhooks }) => [
      exactly('200: POSTs', posts, webhooks),
      exactly('200: first attempts at the others', firstMs.length, webhooks - 1),
      atMost('200: last first attempt, ms', percentile(firstMs, 1), FIRST_MS_MAX),
    ],
  ],
  ['100, of which 80 hang, 5 upgrades', HANGING, punctuality],
];

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `Deliveries of upgrades: ${SCENES.map(([name]) => name).join('; ')}.
About 50 s; needs root or unprivileged user namespaces.`,
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure({ signal, progress, table }: OwnRun): Promise<boolean> {
  const spread = ['p50', 'p99', 'max'];
  const rows = [
    [
      '',
      'delivered',
      'drained',
      'first p50',
      'p99',
      'max',
      '/programs p50',
      'p99',
      'max',
      'CPU ms',
      'RSS MB',
    ],
    ['', '', 's', ...spread.map(() => 's'), ...spread.map(() => 'ms'), 'each', ''],
  ];
  const findings: Finding[] = [];
  for (const [name, scene, bounds] of SCENES) {
    progress(name);
    const seen = await drained(scene, signal);
    const total = scene.webhooks * scene.upgrades;
    rows.push([
      name,
      `${seen.delivered}/${total}`,
      (seen.drainedMs / 1_000).toFixed(1),
      ...[0.5, 0.99, 1].map((share) => (percentile(seen.firstMs, share) / 1_000).toFixed(2)),
      ...[0.5, 0.99, 1].map((share) => percentile(seen.programsMs, share).toFixed(1)),
      ((1_000 * seen.cpuSeconds) / total).toFixed(2),
      (seen.residentBytes / 1e6).toFixed(0),
    ]);
    findings.push(...bounds(seen, scene));
  }
  table(rows);
  table(tableOfFindings('', findings));
  return findings.every(({ holds }) => holds);
}
