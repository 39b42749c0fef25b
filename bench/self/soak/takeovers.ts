import { systemClock } from '../../../shared/clock.ts';
import { startTcpProxy } from '../../../test/started/tcp-proxy.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { type Answers, admitted, outcomes } from '../answers.ts';
import { offering, soonMs } from '../offering.ts';
import { atMost, exactly, type Finding, said } from './finding.ts';
import { booksOf, spendRest } from './spend.ts';
import { CALL, startSubject } from './subject.ts';

/** `lagsMs`: how much the replica of each takeover lacks, as the time that nothing reached it. */
type Handovers = Readonly<{
  processes: number;
  lagsMs: readonly number[];
  perSecond: number;
  credits: number;
}>;

type HandedOver = Readonly<{
  credits: number;
  takeovers: number;
  seconds: number;
  during: Answers;
  after: Answers;
  spent: number;
  mismatches: number;
}>;

/** Between two takeovers: to find the new primary, to listen to it, and to spend. */
const BETWEEN_MS = 4_000;
/** A new replica has everything after at most so long. */
const SYNC_MS = 10_000;
const CONNECTIONS = 32;
const LINK_LOOK_MS = 50;

const PLANS = '[plans.handover]\nrps = 1_000_000\nburst = 1_000_000\ncredits = 1\n';

/**
 * A primary that loses its power while its replica lacks the last that it answered, again and again, under load
 * (limits.md 5, row 9). The gateways reach whichever is primary at one address, and are told nothing.
 */
export async function takeovers(
  { processes, lagsMs, perSecond, credits }: Handovers,
  signal: AbortSignal,
): Promise<HandedOver> {
  await using servers = new AsyncDisposableStack();
  let primary = servers.use(await startRedis(['--repl-diskless-sync-delay', '0']));
  let replica = servers.use(await startRedis(['--repl-diskless-sync-delay', '0']));
  using address = startTcpProxy(primary.port);
  await using subject = await startSubject({ processes, extra: PLANS, redisUrl: address.url });
  const { crew } = subject;
  const to = {
    url: crew.url.href,
    key: crew.key('handover', credits),
    bodies: [CALL],
    connections: CONNECTIONS,
  };
  const seconds = Math.ceil(lagsMs.reduce((sum, lagMs) => sum + lagMs + 1.25 * BETWEEN_MS, 0) / 1_000);
  const enough = new AbortController();
  signal.addEventListener('abort', () => enough.abort(), { once: true });
  const loadMs = soonMs();
  const loading = offering({ ...to, perSecond, seconds, startMs: loadMs }, signal);
  const startMs = systemClock.monotonic();
  let done = 0;
  for (const lagMs of lagsMs) {
    using link = startTcpProxy(primary.port);
    await replica.cli('REPLICAOF', '127.0.0.1', String(link.port));
    await linked(replica.cli, signal);
    await systemClock.sleep(BETWEEN_MS, signal);
    link.become('black-hole');
    await systemClock.sleep(lagMs, signal);
    await primary.die();
    await replica.cli('REPLICAOF', 'NO', 'ONE');
    address.leadTo(replica.port);
    address.cut();
    await primary.restart('empty');
    [primary, replica] = [replica, primary];
    done++;
    if (signal.aborted) break;
  }
  const tookSeconds = (systemClock.monotonic() - startMs) / 1_000;
  const during = await loading;
  const after = await spendRest(to, loadMs, signal);
  using ledger = await subject.ledger();
  return {
    credits,
    takeovers: done,
    seconds: tookSeconds,
    during,
    after,
    ...(await booksOf(ledger, signal)),
  };
}

async function linked(
  cli: (...words: readonly string[]) => Promise<string>,
  signal: AbortSignal,
): Promise<void> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(SYNC_MS)]);
  while (!(await cli('INFO', 'replication')).includes('master_link_status:up')) {
    if (limit.aborted) throw new Error('the replica does not follow its primary');
    await systemClock.sleep(LINK_LOOK_MS, limit);
  }
}

/** That every takeover was survived without a credit spent twice, and the last of them is spent. */
export function conserved({
  credits,
  takeovers,
  during,
  after,
  spent,
  mismatches,
  seconds,
}: HandedOver): readonly Finding[] {
  const all = [...during, ...after];
  const counts = outcomes(all);
  const known = admitted(all) + (counts['credits-unavailable'] ?? 0) + (counts['out-of-credits'] ?? 0);
  return [
    said('takeovers', `${takeovers} in ${seconds.toFixed(0)} s`),
    exactly('credits spent, by the ledger', spent, credits),
    exactly('calls answered', admitted(all), credits),
    exactly('accounts whose books differ', mismatches, 0),
    exactly('402 while credits were left', outcomes(during)['out-of-credits'] ?? 0, 0),
    said('503 during, in all', `${outcomes(during)['credits-unavailable'] ?? 0} of ${during.length}`),
    atMost(
      'other answers than 200, 402, 503 and the last 429',
      all.length - known - (counts['over-rate'] ?? 0),
      0,
    ),
  ];
}
