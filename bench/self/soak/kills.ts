import { systemClock } from '../../../shared/clock.ts';
import { type Answers, at, offering, outcomes, soonMs } from '../load.ts';
import { atMost, exactly, type Finding, said } from '../finding.ts';
import { type Form, startSubject } from '../subject.ts';
import { booksOf, spendRest } from './spend.ts';

/** `everyMs`: between two kills. A seat whose process dies within ten seconds again and again waits longer each time. */
const LONG = { processes: 8, kills: 100, everyMs: 1_300, perSecond: 500, credits: 400_000 };
const SHORT = { processes: 4, kills: 10, everyMs: 500, perSecond: 400, credits: 14_000 };

/** Bodies in turn, and what they cost: 1, 10 and 50. Scans are short here. */
const BODIES = [
  ...Array.from({ length: 16 }, () => ['{"jsonrpc":"2.0","id":1,"method":"getSlot"}', 1] as const),
  ...Array.from(
    { length: 3 },
    () => ['{"jsonrpc":"2.0","id":1,"method":"getBlock","params":[1]}', 10] as const,
  ),
  ['{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts","params":["P",{}]}', 50] as const,
];
/** A kill can take one request of each with it. */
const CONNECTIONS = 48;

const PLANS = '[plans.storm]\nrps = 1_000_000\nburst = 1_000_000\nscans = 1_000\ncredits = 1\n';

/**
 * kill -9 of one process after the other under load on a trial, and then on to its last credit: the ledger, the journals and usage
 * agree, and no credit is lost, doubled or refused too early.
 */
export async function storm({ centre, isShort }: Form, signal: AbortSignal): Promise<readonly Finding[]> {
  const { processes, kills, everyMs, perSecond, credits } = isShort ? SHORT : LONG;
  await using subject = await startSubject({ processes, extra: PLANS, centre });
  const { crew } = subject;
  const bodies = BODIES.map(([body]) => body);
  const to = { url: crew.url.href, key: crew.key('storm', credits), bodies, connections: CONNECTIONS };
  const seconds = Math.ceil((kills * everyMs) / 1_000) + 1;
  const startMs = soonMs();
  const loading = offering({ ...to, perSecond, seconds, startMs }, signal);
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
  const all = [...(await loading), ...(await spendRest(to, startMs, signal))];
  using ledger = await subject.ledger();
  const { spent, mismatches } = await booksOf(ledger, signal);
  const cells = ledger.query<{ n: number }, []>('SELECT sum(charged - returned) AS n FROM usage_hours');
  const answered = creditsOf(all, 'answered');
  return [
    exactly('kills', killed.size, kills),
    said('all answers', JSON.stringify(outcomes(all))),
    exactly('credits spent, by the ledger', spent, credits),
    exactly('credits spent, by usage', cells.get()?.n ?? Number.NaN, credits),
    exactly('accounts whose books differ', mismatches, 0),
    atMost('credits answered', answered, spent),
    atMost('credits spent and not answered', spent - answered, creditsOf(all, 'lost')),
    atMost('requests lost', outcomes(all).lost ?? 0, killed.size * CONNECTIONS),
    exactly('402 that came too early', earlyRefusals(all, credits), 0),
    exactly('answers that contradict themselves', outcomes(all).strange ?? 0, 0),
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
  return answers.reduce((sum, each) => sum + (each.outcome === outcome ? priceOf(each.body) : 0), 0);
}

function priceOf(body: number): number {
  return BODIES[body]?.[1] ?? 0;
}
