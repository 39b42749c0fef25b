import { type Centre, startLimited, touchFrom } from './limited.ts';
import { cpuSecondsOf } from './proc.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';

const LIMIT_MS = 600_000;
const CONNECTIONS = 64;
const WARM_SECONDS = 3;
const PROCESSES = 4;

/** Loads, each offered to all processes alike: what accounts on one plan ask for together. */
const LOADS = [
  { name: '2 accounts at 900 of 1000 rps', accounts: 2, rps: 1_000, perSecond: 1_800 },
  { name: '20 accounts at 90 of 100 rps', accounts: 20, rps: 100, perSecond: 1_800 },
  { name: '1800 accounts at 1 of 100 rps', accounts: 1_800, rps: 100, perSecond: 1_800 },
] as const;

const BENCH: OwnBench = {
  path: import.meta.path,
  about: `What limits cost a call: in one process, and in ${PROCESSES} that share them by the ledger or by Redis.
About three minutes; needs redis-server.`,
  options: { seconds: { value: 'S', help: 'of each load, 1 to 60', least: 1, most: 60, preset: 10 } },
  limitMs: () => LIMIT_MS,
  measure,
};

if (import.meta.main) process.exit(await runOwn(BENCH, process.argv.slice(2)));

async function measure({ signal, number, progress, table }: OwnRun): Promise<void> {
  const seconds = number('seconds');
  const rows: string[][] = [];
  for (const load of LOADS) {
    const ranBy = (centre: Centre) => {
      progress(`${load.name}, ${centre}`);
      return run(centre, load, seconds, signal);
    };
    const alone = await ranBy('alone');
    for (const [centre, ran] of [
      ['alone', alone],
      ['ledger', await ranBy('ledger')],
      ['redis', await ranBy('redis')],
    ] as const) {
      rows.push([
        load.name,
        centre,
        ran.calls.toFixed(0),
        ran.refused.toFixed(0),
        ran.microseconds.toFixed(0),
        (ran.microseconds / alone.microseconds).toFixed(2),
        ran.commands?.toFixed(4) ?? '',
        ran.states?.toFixed(4) ?? '',
      ]);
    }
  }
  const head = ['load', 'limits', 'calls', '429', 'CPU us/call', 'to alone', 'commands/call', 'states/call'];
  table([head, ...rows]);
}

/** One load on fresh processes: alone is one process, the others are several. */
async function run(
  centre: Centre,
  { accounts, rps, perSecond }: (typeof LOADS)[number],
  seconds: number,
  signal: AbortSignal,
) {
  const processes = centre === 'alone' ? 1 : PROCESSES;
  const plan = `rps = ${rps}\nburst = ${rps}`;
  await using subject = await startLimited({ centre, processes, accounts, plan });
  const { url, pids, redis } = subject;
  const load = { url, keys: accounts, connections: CONNECTIONS, perSecond };
  await touchFrom({ ...load, seconds: WARM_SECONDS }, signal);
  const cpu = () => pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  await redis?.cli('config', 'resetstat');
  const before = cpu();
  const { statuses } = await touchFrom({ ...load, seconds }, signal);
  const microseconds = 1e6 * (cpu() - before);
  const stats = await redis?.cli('info', 'commandstats');
  const calls = Object.values(statuses).reduce((sum, count) => sum + count, 0);
  const count = (name: RegExp) =>
    [...(stats ?? '').matchAll(/^cmdstat_([a-z]+)[^:]*:calls=(\d+)/gm)]
      .filter(([, command = '']) => name.test(command))
      .reduce((sum, [, , times]) => sum + Number(times), 0);
  return {
    calls,
    refused: statuses['429'] ?? 0,
    microseconds: microseconds / calls,
    // Leases are scripts, looks for changes are HMGET, and `set` is what leases write inside the server.
    ...(stats !== undefined && {
      commands: count(/^(?:eval(?:sha)?|hmget)$/) / calls,
      states: count(/^set$/) / calls,
    }),
  };
}
