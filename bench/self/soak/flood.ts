import { systemClock } from '../../../shared/clock.ts';
import { admitted, offering } from '../load.ts';
import { atLeast, atMost, type Finding, said } from '../finding.ts';
import { CALL, startSubject } from '../subject.ts';

/** `unfairness`: how far a process may be from its part, in parts. */
type Flood = Readonly<{ perSecond: number; seconds: number; unfairness: number }>;

/** A message is read and replaced, and both again when another process was faster. */
const COMMANDS = 2;
const PROCESSES = 4;
const RPS = 100;
/** Messages of one contended account a second and process: one in 200 ms, and a few at once after a rest. */
const MESSAGES = 5;
const AT_ONCE = 6;
const SETTLE_MS = 1_000;

/**
 * As many calls of one key as the machine takes, far above its rate: refusing costs the centre next to nothing, however many are
 * refused, and a caller is let in as often whichever process has its connection.
 */
export async function flood(
  { perSecond, seconds, unfairness }: Flood,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const extra = `[plans.flooded]\nrps = ${RPS}\nburst = ${RPS}\n`;
  await using subject = await startSubject({ processes: PROCESSES, extra, centre: 'redis' });
  const { crew, redis } = subject;
  const to = { url: crew.url.href, key: crew.key('flooded'), bodies: [CALL], connections: 128 };
  await redis?.cli('CONFIG', 'RESETSTAT');
  const seen = await offering({ ...to, perSecond, seconds }, signal);
  // Messages come in the second after, too.
  await systemClock.sleep(SETTLE_MS, signal);
  const stats = (await redis?.cli('INFO', 'commandstats')) ?? '';
  const runs = (commands: RegExp) =>
    [...stats.matchAll(commands)].reduce((sum, [, count]) => sum + Number(count), 0);
  // A message is written by one SET, whichever process was faster before.
  const messages = runs(/^cmdstat_set:calls=(\d+)/gm);
  const scripts = runs(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm);
  const most = PROCESSES * (MESSAGES * (seconds + SETTLE_MS / 1_000) + AT_ONCE);
  using ledger = await subject.ledger();
  const sums = 'SELECT sum(calls) AS calls, sum(refused) AS refused FROM usage_hours GROUP BY node';
  const processes = ledger.query<{ calls: number; refused: number }, []>(sums).all();
  return [
    atLeast('offered', seen.length, 250 * seconds),
    atMost('admitted', admitted(seen), RPS * (seconds + 1) + PROCESSES * Math.ceil(0.02 * RPS)),
    atMost('messages that Redis took', messages, most),
    said('scripts that Redis ran', String(scripts)),
    // A machine without time for many calls has as many messages, and fewer calls for each.
    seen.length >= 100 * most
      ? atMost('scripts a call', scripts / seen.length, 0.01 * COMMANDS, 4)
      : said('scripts a call', (scripts / seen.length).toFixed(4)),
    fairness(processes, unfairness),
  ];
}

/**
 * Shares go by what is offered: how far a process is from its part, in equal parts of all that was let in; the chances of one
 * that was busy elsewhere and answered few would say nothing.
 */
function fairness(processes: readonly Readonly<{ calls: number; refused: number }>[], most: number): Finding {
  const calls = processes.reduce((sum, each) => sum + each.calls, 0);
  const offered = processes.reduce((sum, each) => sum + each.calls + each.refused, 0);
  const furthest = Math.max(
    ...processes.map((each) => Math.abs(each.calls - (calls * (each.calls + each.refused)) / offered)),
  );
  // The first burst is for who asks first: one process may have all of it, instead of its part.
  const first = (RPS * (processes.length - 1)) / calls;
  return atMost('furthest from its part', (furthest * processes.length) / calls, most + first, 3);
}
