import { systemClock } from '../../shared/clock.ts';
import { type Centre, type Limited, startLimited, touchFrom } from './limited.ts';
import { memoryOf } from './proc.ts';
import { runBench, tableOf } from './report.ts';

/** A million keys, or as many as the first argument says. */
const KEYS = Number(process.argv[2] ?? 1_000_000);
/** `rate` has a rate alone; `credits` has credits too, whose charges are written before each answer. */
const PLANS: Readonly<Record<string, string>> = {
  rate: 'rps = 100\nburst = 100',
  credits: 'rps = 5\nburst = 10\ncredits = 250_000',
};
const PLAN = process.argv[3] ?? 'rate';
const LIMIT_MS = 1_800_000;
const CONNECTIONS = 64;
const LOOK_MS = 100;
const SETTLE_MS = 3_000;
/** After the last call: leases end within seconds, accounts, cells of usage and the keys of such a plan in Redis within 65. */
const IDLE_MS = 70_000;
const WAYS: readonly Pick<Limited, 'centre' | 'processes'>[] = [
  { centre: 'alone', processes: 1 },
  { centre: 'ledger', processes: 2 },
  { centre: 'redis', processes: 1 },
];

if (import.meta.main) process.exit(await runBench(import.meta.path, LIMIT_MS, measure));

async function measure(signal: AbortSignal): Promise<void> {
  const only = process.argv[4] as Centre | undefined; // one of the ways, or a table without rows
  const rows: string[][] = [];
  for (const way of WAYS) if (only === undefined || way.centre === only) rows.push(await rowOf(way, signal));
  console.log(
    `${KEYS} keys on a plan with ${PLAN}, each called for once, ${CONNECTIONS} connections; MB\n` +
      tableOf([
        [
          'limits',
          'processes',
          'calls/s',
          'not 200',
          'RSS base',
          'peak',
          'after',
          'idle',
          'peak - base',
          'a process',
          'idle - base',
          'a process',
          'Redis base',
          'peak',
          'idle',
        ],
        ...rows,
      ]),
  );
}

async function rowOf(way: (typeof WAYS)[number], signal: AbortSignal): Promise<string[]> {
  await using subject = await startLimited({ ...way, accounts: KEYS, plan: PLANS[PLAN] ?? '' });
  const { url, pids, redis } = subject;
  const resident = () => pids.reduce((sum, pid) => sum + memoryOf(pid).residentBytes, 0);
  const used = async () =>
    redis === undefined ? 0 : Number(/used_memory:(\d+)/.exec(await redis.cli('info', 'memory'))?.[1]);
  await touchFrom({ url, keys: 100, connections: CONNECTIONS, seconds: 3 }, signal);
  await systemClock.sleep(SETTLE_MS, signal);
  const base = resident();
  const usedBase = await used();
  let peak = base;
  const over = new AbortController();
  const looking = (async () => {
    while (!over.signal.aborted) {
      peak = Math.max(peak, resident());
      await systemClock.sleep(LOOK_MS, over.signal);
    }
  })();
  const { statuses, seconds } = await touchFrom({ url, keys: KEYS, connections: CONNECTIONS }, signal);
  await systemClock.sleep(SETTLE_MS, signal);
  over.abort();
  await looking;
  const after = resident();
  const usedPeak = await used();
  await systemClock.sleep(IDLE_MS, signal);
  const idle = resident();
  const answered = statuses['200'] ?? 0;
  const grown = [peak - base, idle - base].flatMap((all) => [all, all / pids.length]);
  const bytes = [base, peak, after, idle, ...grown];
  const usedBytes = redis === undefined ? [] : [usedBase, usedPeak, await used()];
  const mb = [...bytes, ...usedBytes].map((each) => (each / 1e6).toFixed(0));
  return [way.centre, String(pids.length), (KEYS / seconds).toFixed(0), String(KEYS - answered), ...mb];
}
