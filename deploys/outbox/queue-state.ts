import type { Store } from '../../shared/store/open.ts';

/** How the queue of all accounts stands. Instants are Unix milliseconds; counts end at `COUNT_MAX`. */
export type QueueState = Readonly<{
  /** Wants an attempt now. */
  due: number;
  oldestDueAtMs: number | undefined;
  /** Wants an attempt later. */
  later: number;
  nextDueAtMs: number | undefined;
  inFlight: number;
  /** Deploys that are not sent yet, because the time of their block is not known. */
  eventsWaiting: number;
}>;

/** Attempts that ended in one way. */
export type Reason = Readonly<{ reason: string; attempts: number; lastAtMs: number }>;

/** An attempt that failed, or was not made because of where it would have gone. Of its URL only the host is told. */
export type WrongAttempt = Readonly<{
  deliveryId: string;
  n: number;
  /** 1 to 6; `null`: asked for by hand. */
  number: number | null;
  accountId: number;
  webhookId: string;
  host: string;
  state: 'failed' | 'blocked';
  error: string | null;
  startedAtMs: number;
  deliveryState: string;
}>;

/** Webhooks that fail at one host. */
type FailingHost = Readonly<{ host: string; webhooks: number; sinceMs: number }>;

/** Every count ends here: it is a figure for the eye. */
export const COUNT_MAX = 100_000;
/** The newest attempts whose reasons are counted, and the webhooks whose hosts are. */
const COUNTED_MAX = 2_000;
const HOSTS_MAX = 20;
const LIMIT_MAX = 100;

export type ReadQueue = ReturnType<typeof createReadQueue>;

/** Reads how the queue of `store` stands, by indexes alone. */
export function createReadQueue(store: Store) {
  const bounded = (from: string) =>
    store.prepare<{ n: number }, [number] | []>(
      `SELECT count(*) AS n FROM (SELECT 1 FROM ${from} LIMIT ${COUNT_MAX})`,
    );
  const due = bounded('deliveries WHERE due_at_ms <= ?');
  const later = bounded('deliveries WHERE due_at_ms > ?');
  const leased = bounded('deliveries WHERE lease_token IS NOT NULL');
  const waiting = bounded('events WHERE released_at_ms IS NULL');
  const oldest = store.prepare<{ at: number | null }, [number]>(
    'SELECT min(due_at_ms) AS at FROM deliveries WHERE due_at_ms <= ?',
  );
  const next = store.prepare<{ at: number | null }, [number]>(
    'SELECT min(due_at_ms) AS at FROM deliveries WHERE due_at_ms > ?',
  );
  const reasons = { failed: reasonsOf('failed'), blocked: reasonsOf('blocked') };
  const wrong = { failed: wrongOf('failed'), blocked: wrongOf('blocked') };
  const hosts = store.prepare<FailingHost, []>(`
    SELECT host, count(*) AS webhooks, min(since) AS sinceMs FROM (
      SELECT host, failing_since_ms AS since FROM webhooks
      WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL ORDER BY failing_since_ms, id LIMIT ${COUNTED_MAX})
    GROUP BY host ORDER BY webhooks DESC, sinceMs LIMIT ${HOSTS_MAX}`);

  function reasonsOf(state: 'failed' | 'blocked') {
    return store.prepare<Reason, [number]>(`
      SELECT coalesce(error, 'unknown') AS reason, count(*) AS attempts, max(started_at_ms) AS lastAtMs FROM (
        SELECT error, started_at_ms FROM attempts WHERE state = '${state}' AND started_at_ms >= ?
        ORDER BY started_at_ms DESC LIMIT ${COUNTED_MAX})
      GROUP BY reason ORDER BY attempts DESC, reason`);
  }

  function wrongOf(state: 'failed' | 'blocked') {
    return store.prepare<WrongAttempt, [number]>(`
      SELECT a.delivery_id AS deliveryId, a.n, a.number, w.account_id AS accountId, w.id AS webhookId, w.host, a.state,
        a.error, a.started_at_ms AS startedAtMs, d.state AS deliveryState
      FROM (SELECT * FROM attempts WHERE state = '${state}' ORDER BY started_at_ms DESC LIMIT ?) a
      JOIN deliveries d ON d.id = a.delivery_id JOIN webhooks w ON w.id = d.webhook_id
      ORDER BY a.started_at_ms DESC`);
  }

  return {
    state(nowMs: number): QueueState {
      const at = <Args extends [] | [number]>(statement: typeof due, ...args: Args) =>
        statement.get(...args)?.n ?? 0;
      return {
        due: at(due, nowMs),
        oldestDueAtMs: oldest.get(nowMs)?.at ?? undefined,
        later: at(later, nowMs),
        nextDueAtMs: next.get(nowMs)?.at ?? undefined,
        inFlight: at(leased),
        eventsWaiting: at(waiting),
      };
    },
    /** Why attempts since then came to nothing, the most frequent first; of the newest `COUNTED_MAX` of them. */
    reasons: (state: 'failed' | 'blocked', sinceMs: number): readonly Reason[] => reasons[state].all(sinceMs),
    /** The newest attempts of both kinds that came to nothing. */
    wrongAttempts(limit: number): readonly WrongAttempt[] {
      const most = Math.max(1, Math.min(limit, LIMIT_MAX));
      return [...wrong.failed.all(most), ...wrong.blocked.all(most)]
        .sort((a, b) => b.startedAtMs - a.startedAtMs)
        .slice(0, most);
    },
    /** Hosts at which webhooks fail, those with the most first; of the `COUNTED_MAX` that fail the longest. */
    failingHosts: (): readonly FailingHost[] => hosts.all(),
  };
}
