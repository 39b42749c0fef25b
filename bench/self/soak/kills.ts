import { join } from 'node:path';
import { findMismatches } from '../../../deploys/usage/tend.ts';
import { LEDGER_FILE, LEDGER_MIGRATIONS } from '../../../gateway/ledger.ts';
import { spentOf } from '../../../shared/ledger/schema.ts';
import { systemClock } from '../../../shared/clock.ts';
import { opened } from '../../../test/started/gateway.ts';
import { type Answers, outcomes } from '../answers.ts';
import { at, offering, soonMs } from '../offering.ts';
import { atMost, between, type Finding, said } from './finding.ts';
import { spendRest } from './spend.ts';
import { type Centre, startCentre, startSubject } from './subject.ts';

type Storm = Readonly<{
  centre: Centre;
  processes: number;
  kills: number;
  /** Between two kills. A seat whose process dies within ten seconds again and again waits longer each time. */
  everyMs: number;
  perSecond: number;
  credits: number;
}>;

/** What came of a storm and of the calls after it, until nothing was left. */
type Stormed = Readonly<{
  credits: number;
  /** Connections of the callers: a kill can take one request of each with it. */
  connections: number;
  kills: number;
  during: Answers;
  after: Answers;
  spent: number;
  /** Books that do not agree with each other, and credits charged by the cells of usage. */
  mismatches: number;
  inCells: number;
}>;

/** Bodies in turn, and what they cost: 1, 10 and 50. Scans are short here. */
const BODIES = [
  ...Array.from({ length: 16 }, () => ['{"jsonrpc":"2.0","id":1,"method":"getSlot"}', 1] as const),
  ...Array.from(
    { length: 3 },
    () => ['{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[1]}', 10] as const,
  ),
  ['{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["P",{}]}', 50] as const,
];
const CONNECTIONS = 48;
/** Calls a second when all is calm again, so that what is left is soon spent. */
const REST_PER_SECOND = 1_500;

const PLANS = '[plans.storm]\nrps = 1_000_000\nburst = 1_000_000\nscans = 1_000\ncredits = 1\n';

/** kill -9 of one process after the other under load on a trial, and then on to its last credit (limits.md 5, row 7). */
export async function storm(
  { centre, processes, kills, everyMs, perSecond, credits }: Storm,
  signal: AbortSignal,
): Promise<Stormed> {
  await using shared = await startCentre(centre);
  await using subject = await startSubject({ processes, extra: PLANS, redisUrl: shared.url });
  const { crew } = subject;
  const to = { url: crew.url.href, key: crew.key('storm', credits), connections: CONNECTIONS };
  const bodies = BODIES.map(([body]) => body);
  const seconds = Math.ceil((kills * everyMs) / 1_000) + 1;
  const startMs = soonMs();
  const loading = offering({ ...to, bodies, perSecond, seconds, startMs }, signal);
  await at(startMs, signal);
  const killed = new Set<number>();
  for (let turn = 0; killed.size < kills && !signal.aborted; turn++) {
    await systemClock.sleep(everyMs, signal);
    const victims = [...crew.processes()].toSorted(([a], [b]) => a - b).map(([, pid]) => pid);
    const pid = victims[turn % Math.max(1, victims.length)];
    if (pid === undefined || killed.has(pid)) continue;
    process.kill(pid, 'SIGKILL');
    killed.add(pid);
  }
  const during = await loading;
  const after = await spendRest({ ...to, bodies, perSecond: REST_PER_SECOND }, startMs, signal);
  crew.kill('SIGTERM');
  await crew.exited;
  using ledger = opened(join(crew.folder, LEDGER_FILE), LEDGER_MIGRATIONS);
  const cells = ledger.query<{ n: number }, []>('SELECT sum(charged - returned) AS n FROM usage_hours');
  return {
    credits,
    connections: CONNECTIONS,
    kills: killed.size,
    during,
    after,
    spent: spentOf(ledger, 1),
    mismatches: (await findMismatches(ledger, systemClock, signal))?.length ?? Number.NaN,
    inCells: cells.get()?.n ?? Number.NaN,
  };
}

/** That the ledger, the journals and usage agree, and no credit was lost, doubled or refused too early. */
export function exactness(seen: Stormed): readonly Finding[] {
  const { credits, spent, during, after, kills, connections } = seen;
  const all = [...during, ...after];
  const answered = creditsOf(all, 'answered');
  const lost = creditsOf(all, 'lost');
  return [
    said('kills', String(kills)),
    said('all answers', JSON.stringify(outcomes(all))),
    between('credits spent, by the ledger', spent, credits, credits),
    between('credits spent, by usage', seen.inCells, credits, credits),
    between('accounts whose books differ', seen.mismatches, 0, 0),
    atMost('credits answered', answered, spent),
    atMost('credits spent and not answered', spent - answered, lost),
    atMost('requests lost', outcomes(all).lost ?? 0, kills * connections),
    between('402 that came too early', earlyRefusals(all, credits), 0, 0),
    between('answers that contradict themselves', outcomes(all).strange ?? 0, 0, 0),
  ];
}

/**
 * Refusals for want of credits that were wrong for certain: all that had been sent and may have been charged until
 * the refusal came left enough for the call.
 */
function earlyRefusals(all: Answers, credits: number): number {
  const sent = all.toSorted((a, b) => a.sentMs - b.sentMs);
  let [early, next, maySpent] = [0, 0, 0];
  const refused = sent.filter(({ outcome }) => outcome === 'out-of-credits');
  for (const refusal of refused.toSorted((a, b) => a.sentMs + a.tookMs - b.sentMs - b.tookMs)) {
    const cameMs = refusal.sentMs + refusal.tookMs;
    for (; next < sent.length; next++) {
      const other = sent[next];
      if (other === undefined || other.sentMs > cameMs) break;
      if (other.outcome === 'answered' || other.outcome === 'lost') maySpent += priceOf(other.body);
    }
    if (credits - maySpent >= priceOf(refusal.body)) early++;
  }
  return early;
}

function creditsOf(answers: Answers, outcome: 'answered' | 'lost'): number {
  let sum = 0;
  for (const answer of answers) if (answer.outcome === outcome) sum += priceOf(answer.body);
  return sum;
}

function priceOf(body: number): number {
  return BODIES[body]?.[1] ?? 0;
}
