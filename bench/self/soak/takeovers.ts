import { systemClock } from '../../../shared/clock.ts';
import { startRedis } from '../../../test/started/redis.ts';
import { startTcpProxy } from '../../../test/started/tcp-proxy.ts';
import { admitted, offering, outcomes, soonMs } from '../load.ts';
import { exactly, type Finding, said } from '../finding.ts';
import { CALL, startSubject } from '../subject.ts';
import { booksOf, spendRest } from './spend.ts';

/** How much the replica of each takeover lacks, as the time that nothing reached it. */
const LAGS_MS = Array.from({ length: 20 }, (_, i) => [100, 1_000, 100, 1_000, 10_000][i % 5] ?? 0);
/** Between two takeovers: to find the new primary, to listen to it, and to spend. */
const BETWEEN_MS = 4_000;
/** A new replica has everything after at most so long. */
const SYNC_MS = 10_000;
const LINK_LOOK_MS = 50;
const [PROCESSES, PER_SECOND, CREDITS, CONNECTIONS] = [4, 200, 45_000, 32];
const PLANS = '[plans.handover]\nrps = 1_000_000\nburst = 1_000_000\ncredits = 1\n';

/**
 * A primary that loses its power while its replica lacks the last that it answered, again and again, under load: no credit is
 * spent twice, and the last of them is spent. The gateways reach whichever is primary at one address, and are told nothing.
 */
export async function takeovers(signal: AbortSignal): Promise<readonly Finding[]> {
  await using servers = new AsyncDisposableStack();
  let primary = servers.use(await startRedis(['--repl-diskless-sync-delay', '0']));
  let replica = servers.use(await startRedis(['--repl-diskless-sync-delay', '0']));
  using address = startTcpProxy(primary.port);
  await using subject = await startSubject({ processes: PROCESSES, extra: PLANS, redisUrl: address.url });
  const { crew } = subject;
  const to = {
    url: crew.url.href,
    key: crew.key('handover', CREDITS),
    bodies: [CALL],
    connections: CONNECTIONS,
  };
  const seconds = Math.ceil(LAGS_MS.reduce((sum, lagMs) => sum + lagMs + 1.25 * BETWEEN_MS, 0) / 1_000);
  const loadMs = soonMs();
  const loading = offering({ ...to, perSecond: PER_SECOND, seconds, startMs: loadMs }, signal);
  for (const lagMs of LAGS_MS) {
    using link = startTcpProxy(primary.port);
    await replica.cli('REPLICAOF', '127.0.0.1', String(link.port));
    const limit = AbortSignal.any([signal, AbortSignal.timeout(SYNC_MS)]);
    while (!(await replica.cli('INFO', 'replication')).includes('master_link_status:up')) {
      if (limit.aborted) throw new Error('the replica does not follow its primary');
      await systemClock.sleep(LINK_LOOK_MS, limit);
    }
    await systemClock.sleep(BETWEEN_MS, signal);
    link.become('black-hole');
    await systemClock.sleep(lagMs, signal);
    await primary.die();
    await replica.cli('REPLICAOF', 'NO', 'ONE');
    address.leadTo(replica.port);
    address.cut();
    await primary.restart('empty');
    [primary, replica] = [replica, primary];
    signal.throwIfAborted();
  }
  const tookMs = systemClock.now() - loadMs;
  const during = await loading;
  const all = [...during, ...(await spendRest(to, loadMs, signal))];
  using ledger = await subject.ledger();
  const { spent, mismatches } = await booksOf(ledger, signal);
  const fine = ['answered', 'credits-unavailable', 'out-of-credits', 'over-rate'];
  return [
    said('takeovers', `${LAGS_MS.length} in ${(tookMs / 1_000).toFixed(0)} s`),
    exactly('credits spent, by the ledger', spent, CREDITS),
    exactly('calls answered', admitted(all), CREDITS),
    exactly('accounts whose books differ', mismatches, 0),
    exactly('402 while credits were left', outcomes(during)['out-of-credits'] ?? 0, 0),
    said('503 during, in all', `${outcomes(during)['credits-unavailable'] ?? 0} of ${during.length}`),
    exactly(
      'other answers than 200, 402, 503 and the last 429',
      all.filter(({ outcome }) => !fine.includes(outcome)).length,
      0,
    ),
  ];
}
