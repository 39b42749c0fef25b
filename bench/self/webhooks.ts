import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { percentile } from './statistics.ts';
import { type Drained, drained } from './webhook-world.ts';

const LIMIT_MS = 180_000;
const DELAY_MS = 200;
/** The many are to be delivered within this time, and programs served meanwhile within that. */
const [MANY, DRAINED_MS_MAX, PROGRAMS_MS_MAX] = [5_000, 30_000, 50];
const [FEW, FIRST_MS_MAX] = [200, 2_000];
/** Four fifths of the receivers hang while several programs are upgraded at once. */
const [HUNDRED, HANGING, UPGRADES, FIRST_P50_MS_MAX, FIRST_P99_MS_MAX] = [100, 80, 5, 1_000, 2_000];

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `Deliveries of upgrades: ${MANY} webhooks of one, ${FEW} of which one hangs, ${HUNDRED} of which ${HANGING} hang.
About 50 s; needs root or unprivileged user namespaces.`,
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure({ signal, progress, table, say }: OwnRun): Promise<boolean> {
  const drainedOf = (webhooks: number, hanging: number, upgrades = 1) => {
    progress(`${webhooks} webhooks, ${hanging} of which hang`);
    return drained({ webhooks, answerMs: DELAY_MS, hanging, upgrades }, signal);
  };
  const many = await drainedOf(MANY, 0);
  const few = await drainedOf(FEW, 1);
  const dead = await drainedOf(HUNDRED, HANGING, UPGRADES);
  const row = (
    name: string,
    total: number,
    { delivered, firstMs, drainedMs, programsMs, ...use }: Drained,
  ) => [
    name,
    `${delivered}/${total}`,
    (drainedMs / 1_000).toFixed(1),
    ...[0.5, 0.99, 1].map((share) => (percentile(firstMs, share) / 1_000).toFixed(2)),
    ...[0.5, 0.99, 1].map((share) => percentile(programsMs, share).toFixed(1)),
    ((1_000 * use.cpuSeconds) / total).toFixed(2),
    (use.residentBytes / 1e6).toFixed(0),
  ];
  table([
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
    ['', '', 's', 's', 's', 's', 'ms', 'ms', 'ms', 'each', ''],
    row(`${MANY} receivers of ${DELAY_MS} ms`, MANY, many),
    row(`${FEW}, one of which hangs`, FEW, few),
    row(`${HUNDRED}, of which ${HANGING} hang, ${UPGRADES} upgrades`, HUNDRED * UPGRADES, dead),
  ]);
  let isMet = true;
  const verdict = (isSo: boolean, text: string) => {
    isMet &&= isSo;
    say(`${isSo ? 'met' : 'NOT MET'}: ${text}`);
  };
  verdict(
    many.drainedMs <= DRAINED_MS_MAX && many.delivered === MANY,
    `drained within ${DRAINED_MS_MAX / 1_000} s`,
  );
  verdict(
    percentile(many.programsMs, 0.99) < PROGRAMS_MS_MAX,
    `/programs p99 under ${PROGRAMS_MS_MAX} ms meanwhile`,
  );
  verdict(many.posts === MANY && few.posts === FEW, 'one POST for each delivery');
  verdict(
    percentile(few.firstMs, 1) < FIRST_MS_MAX && few.firstMs.length === FEW - 1,
    `every other first attempt within ${FIRST_MS_MAX / 1_000} s beside one that hangs`,
  );
  verdict(
    percentile(dead.firstMs, 0.5) < FIRST_P50_MS_MAX &&
      percentile(dead.firstMs, 0.99) < FIRST_P99_MS_MAX &&
      dead.firstMs.length === (HUNDRED - HANGING) * UPGRADES,
    `first attempts at the others within ${FIRST_P50_MS_MAX / 1_000} s at the median and ` +
      `${FIRST_P99_MS_MAX / 1_000} s at p99 beside ${HANGING} that hang`,
  );
  return isMet;
}
