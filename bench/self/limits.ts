import { addAccounts } from './many-keys.ts';
import { offering, outcomes } from './load.ts';
import { cpuSecondsOf } from './proc.ts';
import { type OwnBench, type OwnRun, runOwn } from './report.ts';
import { startSubject } from './subject.ts';

const LIMIT_MS = 600_000;
const CONNECTIONS = 64;
const WARM_SECONDS = 3;
const PROCESSES = 4;
/** A call that the gateway answers itself, with everything that it does for a key. */
const HEALTH = '{"jsonrpc":"2.0","id":1,"method":"getHealth"}';

/** Loads, each offered to all processes alike: what accounts on one plan ask for together. */
const LOADS = [
  { name: '2 accounts at 900 of 1000 rps', accounts: 2, rps: 1_000, perSecond: 1_800 },
  { name: '20 accounts at 90 of 100 rps', accounts: 20, rps: 100, perSecond: 1_800 },
  { name: '1800 accounts at 1 of 100 rps', accounts: 1_800, rps: 100, perSecond: 1_800 },
] as const;
/** What decides on limits: a process by itself, several through the ledger of their host, or through a Redis. */
const LIMITS_BY = ['alone', 'sqlite', 'redis'] as const;

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
  const head = ['load', 'limits', 'calls', '429', 'CPU us/call', 'to alone', 'commands/call', 'states/call'];
  const rows: string[][] = [head];
  for (const load of LOADS) {
    let alone = Number.NaN;
    for (const by of LIMITS_BY) {
      progress(`${load.name}, ${by}`);
      const ran = await run(by, load, number('seconds'), signal);
      if (by === 'alone') alone = ran.microseconds;
      rows.push([
        load.name,
        by,
        String(ran.calls),
        String(ran.refused),
        ran.microseconds.toFixed(0),
        (ran.microseconds / alone).toFixed(2),
        ran.commands?.toFixed(4) ?? '',
        ran.states?.toFixed(4) ?? '',
      ]);
    }
  }
  table(rows);
}

/** One load on fresh processes: alone is one process, the others are several. */
async function run(
  by: (typeof LIMITS_BY)[number],
  { accounts, rps, perSecond }: (typeof LOADS)[number],
  seconds: number,
  signal: AbortSignal,
) {
  const extra = `[plans.bench]\nrps = ${rps}\nburst = ${rps}\n`;
  const shared = by === 'alone' ? {} : { processes: PROCESSES, centre: by };
  await using subject = await startSubject({ extra, ...shared });
  const { crew, redis, pids } = subject;
  addAccounts(crew.accounts, 'bench', accounts);
  const to = { url: crew.url.href, key: accounts, bodies: [HEALTH], connections: CONNECTIONS, perSecond };
  await offering({ ...to, seconds: WARM_SECONDS }, signal);
  const cpu = () => pids().reduce((sum, pid) => sum + cpuSecondsOf(pid), 0);
  await redis?.cli('config', 'resetstat');
  const before = cpu();
  const answers = await offering({ ...to, seconds }, signal);
  const microseconds = 1e6 * (cpu() - before);
  const stats = await redis?.cli('info', 'commandstats');
  const calls = answers.length;
  const count = (name: RegExp) =>
    [...(stats ?? '').matchAll(/^cmdstat_([a-z]+)[^:]*:calls=(\d+)/gm)]
      .filter(([, command = '']) => name.test(command))
      .reduce((sum, [, , times]) => sum + Number(times), 0);
  return {
    calls,
    refused: outcomes(answers)['over-rate'] ?? 0,
    microseconds: microseconds / calls,
    // Leases are scripts, looks for changes are HMGET, and `set` is what leases write inside the server.
    ...(stats !== undefined && {
      commands: count(/^(?:eval(?:sha)?|hmget)$/) / calls,
      states: count(/^set$/) / calls,
    }),
  };
}
