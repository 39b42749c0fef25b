import { systemClock } from '../../shared/clock.ts';
import { type Limited, startLimited, touchFrom } from './limited.ts';
import { memoryOf } from './proc.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';

/** `rate` has a rate alone; `credits` has credits too, whose charges are written before each answer. */
const PLANS: Readonly<Record<string, string>> = {
  rate: 'rps = 100\nburst = 100',
  credits: 'rps = 5\nburst = 10\ncredits = 250_000',
};
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

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `Memory of the gateway and of Redis when so many keys are used once, alone, by two processes over the ledger, and by
one over Redis. About twenty minutes; needs redis-server.`,
  options: {
    keys: { value: 'N', help: 'accounts with a key each', least: 1_000, most: 10_000_000, preset: 1_000_000 },
    plan: { value: 'NAME', help: 'rate, or credits too', known: Object.keys(PLANS), preset: 'rate' },
    only: {
      value: 'NAME',
      help: 'alone, ledger or redis; all',
      known: WAYS.map(({ centre }) => centre),
      preset: '',
    },
  },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure({ signal, number, text, progress, table, say }: OwnRun): Promise<void> {
  const load = { keys: number('keys'), plan: text('plan') };
  const only = text('only');
  const rows: string[][] = [];
  for (const way of WAYS.filter(({ centre }) => only === '' || centre === only)) {
    progress(way.centre);
    rows.push(await rowOf(way, load, signal));
  }
  say(`${load.keys} keys on a plan with ${load.plan}, each called for once, ${CONNECTIONS} connections; MB`);
  table([
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
  ]);
}

async function rowOf(
  way: (typeof WAYS)[number],
  { keys, plan }: Readonly<{ keys: number; plan: string }>,
  signal: AbortSignal,
): Promise<string[]> {
  await using subject = await startLimited({ ...way, accounts: keys, plan: PLANS[plan] ?? '' });
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
  const { statuses, seconds } = await touchFrom({ url, keys, connections: CONNECTIONS }, signal);
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
  return [way.centre, String(pids.length), (keys / seconds).toFixed(0), String(keys - answered), ...mb];
}
