import { systemClock } from '../../../shared/clock.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { admitted, type Answers } from '../answers.ts';
import { offering } from '../offering.ts';
import { atMost, type Finding, said } from './finding.ts';
import { CALL, startSubject } from './subject.ts';

/** A flood of one key, and what the processes made of it. */
type Flooded = Readonly<{
  seconds: number;
  seen: Answers;
  /** Messages that Redis took meanwhile, with those of the second after, and the scripts it ran for them. */
  messages: number;
  scripts: number;
  /** Of each process: calls let in and refused, as its usage says. */
  processes: readonly Readonly<{ calls: number; refused: number }>[];
}>;

/** A message is read and replaced, and both again when another process was faster. */
const COMMANDS = 2;
const PROCESSES = 4;
const RPS = 100;
/** Messages of one contended account a second and process: one in 200 ms, and a few at once after a rest. */
const MESSAGES = 5;
const AT_ONCE = 6;
const SETTLE_MS = 1_000;

/** As many calls of one key as the machine takes, far above its rate (limits.md 5, rows 12 and 14). */
export async function flood(perSecond: number, seconds: number, signal: AbortSignal): Promise<Flooded> {
  await using redis = await startRedis();
  const extra = `[plans.flooded]\nrps = ${RPS}\nburst = ${RPS}\n`;
  await using subject = await startSubject({ processes: PROCESSES, extra, redisUrl: redis.url });
  const { crew } = subject;
  const to = { url: crew.url.href, key: crew.key('flooded'), bodies: [CALL], connections: 128 };
  const before = await runBy(redis.cli);
  const seen = await offering({ ...to, perSecond, seconds }, signal);
  await systemClock.sleep(SETTLE_MS, signal);
  const after = await runBy(redis.cli);
  using ledger = await subject.ledger();
  const processes = ledger
    .query<{ calls: number; refused: number }, []>(
      'SELECT sum(calls) AS calls, sum(refused) AS refused FROM usage_hours GROUP BY node',
    )
    .all();
  const messages = after.messages - before.messages;
  return { seconds, seen, messages, scripts: after.scripts - before.scripts, processes };
}

/** What Redis has run: a message is written by one SET, whichever process was faster before. */
async function runBy(cli: (...words: readonly string[]) => Promise<string>) {
  const stats = await cli('INFO', 'commandstats');
  const calls = (commands: RegExp) =>
    [...stats.matchAll(commands)].reduce((sum, [, count]) => sum + Number(count), 0);
  return {
    messages: calls(/^cmdstat_set:calls=(\d+)/gm),
    scripts: calls(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm),
  };
}

/** That refusing costs the centre next to nothing, however many are refused. */
export function cheapness({ seconds, seen, messages, scripts }: Flooded): readonly Finding[] {
  const most = PROCESSES * (MESSAGES * (seconds + SETTLE_MS / 1_000) + AT_ONCE);
  return [
    said('offered a second', (seen.length / seconds).toFixed(0)),
    atMost('admitted', admitted(seen), RPS * (seconds + 1) + PROCESSES * Math.ceil(0.02 * RPS)),
    atMost('messages that Redis took', messages, most),
    said('scripts that Redis ran', String(scripts)),
    // A machine without time for many calls has as many messages, and fewer calls for each.
    seen.length >= 100 * most
      ? atMost('scripts a call', scripts / seen.length, 0.01 * COMMANDS, 4)
      : said('scripts a call', (scripts / seen.length).toFixed(4)),
  ];
}

/**
 * That a caller is let in as often whichever process has its connection: shares go by what is offered. `most`: how far
 * a process is from its part, in equal parts of all that was let in; the chances of one that was busy elsewhere and
 * answered few would say nothing.
 */
export function fairness({ processes }: Flooded, most: number): readonly Finding[] {
  const calls = processes.reduce((sum, each) => sum + each.calls, 0);
  const offered = processes.reduce((sum, each) => sum + each.calls + each.refused, 0);
  const furthest = Math.max(
    ...processes.map((each) => Math.abs(each.calls - (calls * (each.calls + each.refused)) / offered)),
  );
  // The first burst is for who asks first: one process may have all of it, instead of its part.
  const first = (RPS * (processes.length - 1)) / calls;
  return [atMost('furthest from its part', (furthest * processes.length) / calls, most + first, 3)];
}
