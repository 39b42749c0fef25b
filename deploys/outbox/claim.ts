import type { Store } from '../../shared/store/open.ts';
import { type DeliveryProgress, nextDelivery, PROGRESS, SET_PROGRESS } from './delivery-state.ts';
import type { EventKind } from './enqueue.ts';

/** A delivery leased for one attempt. `number` is 1 to 6, absent for a manual attempt; `body` is what every attempt sends. */
export type ClaimedDelivery = Readonly<{
  deliveryId: string;
  accountId: number;
  webhookId: string;
  eventKind: EventKind;
  url: string;
  host: string;
  body: Uint8Array;
  token: string;
  n: number;
  number: number | undefined;
  /** Whether its webhook's last attempt failed. */
  isFailing: boolean;
  createdAtMs: number;
  claimedAtMs: number;
}>;

/** Longer than the 13 s that an attempt may take. */
export const LEASE_MS = 30_000;
/** Pause before the query for accounts below their fair share is repeated when it found none: it reads every due row. */
const FAIR_QUERY_MS = 250;
/** How long a webhook is trusted after a success. */
const TRUSTED_MS = 60_000;
/** Attempts started by one call of `claim`: a TLS handshake takes a millisecond of CPU, and other work must run between. */
const CLAIMS_MAX = 16;

type DueRow = Omit<ClaimedDelivery, 'token' | 'n' | 'number' | 'isFailing' | 'claimedAtMs'> &
  DeliveryProgress &
  Readonly<{ isFailing: number; isTrusted: number }>;

/** The deliveries that a query must leave out: retries and manual attempts unless `retries` is 1, and all of the ids in these JSON arrays. */
type DueFilter = Readonly<{ retries: number } & Record<'accounts' | 'webhooks' | 'hosts', string>>;

const FAILING = 'SELECT id FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL';

const IS_TRUSTED = `(w.last_success_at_ms IS NOT NULL AND w.last_success_at_ms > $nowMs - ${TRUSTED_MS})`;

/** Due deliveries, oldest first. What is left out is skipped within the index: a receiver that hangs may have 100,000 due. */
const dueWhere = (only: string, exceptAlso: string) => `
  SELECT d.id AS deliveryId, w.account_id AS accountId, d.webhook_id AS webhookId, d.event_kind AS eventKind, d.body,
    ${PROGRESS}, d.created_at_ms AS createdAtMs, w.url, w.host,
    w.failing_since_ms IS NOT NULL AS isFailing, ${IS_TRUSTED} AS isTrusted
  FROM deliveries d INDEXED BY deliveries_due CROSS JOIN webhooks w ON w.id = d.webhook_id
  WHERE d.due_at_ms <= $nowMs
    AND ($retries OR (d.attempts = 0 AND d.resend_at_ms IS NULL))
    AND w.paused_at_ms IS NULL AND w.deleted_at_ms IS NULL
    ${only} AND d.webhook_id NOT IN (SELECT value FROM json_each($webhooks)
      UNION ALL SELECT id FROM webhooks WHERE host IN (SELECT value FROM json_each($hosts))
      UNION ALL SELECT id FROM webhooks
        WHERE account_id IN (SELECT value FROM json_each($accounts)) AND deleted_at_ms IS NULL ${exceptAlso})
  ORDER BY d.due_at_ms LIMIT $limit`;

/** The query of each pool: `failing` has the webhooks whose last attempt failed, `steady` all others. */
export const DUE = {
  steady: dueWhere('', `UNION ALL ${FAILING}`),
  failing: dueWhere(`AND d.webhook_id IN (${FAILING})`, ''),
};

/**
 * Leases due deliveries as far as the attempts `underWay` leave capacity: first those of accounts below their fair share,
 * then of webhooks without an attempt, then further ones of a webhook; failing webhooks last. Leases, tokens and rows of
 * attempts are written in one IMMEDIATE transaction before anything is sent (docs/decisions/outbox.md).
 */
export function createClaim(store: Store, random: (bytes: number) => Uint8Array) {
  const lease = createLease(store, random);
  const trusted = store.prepare<{ id: string }, { nowMs: number; webhooks: string }>(`
    SELECT w.id FROM webhooks w WHERE w.id IN (SELECT value FROM json_each($webhooks)) AND ${IS_TRUSTED}`);
  const queries = (['steady', 'failing'] as const).map((name) => ({
    name,
    due: store.prepare<DueRow, DueFilter & Readonly<Record<'nowMs' | 'limit', number>>>(DUE[name]),
    /** When no account below its fair share had anything due. */
    fairAtMs: -Infinity,
  }));

  const claim = store.transaction(
    (nowMs: number, underWay: readonly ClaimedDelivery[]): ClaimedDelivery[] => {
      // By the clock and the rows of the queries below: trust may have run out since an attempt began.
      const webhooks = JSON.stringify(underWay.map(({ webhookId }) => webhookId));
      const pools = createPools(underWay, new Set(trusted.all({ nowMs, webhooks }).map(({ id }) => id)));
      const claims: ClaimedDelivery[] = [];

      for (const query of queries) {
        const pool = pools[query.name];
        const free = () => Math.min(pool.free(), CLAIMS_MAX - claims.length);

        const claimUpTo = (accountMax: number, isOnePerWebhook: boolean) => {
          for (let limit = free(); limit > 0; limit = free()) {
            const before = claims.length;
            const rows = query.due.all({ nowMs, limit, ...pool.full(accountMax, isOnePerWebhook) });
            for (const row of rows) {
              if (!pool.fits(row, accountMax, isOnePerWebhook)) continue;
              const claimed = lease(row, nowMs);
              pools.add(claimed, row.isTrusted === 1);
              claims.push(claimed);
            }
            // Rows of which none fits would come again, in a transaction that locks the database for everybody.
            if (rows.length < limit || claims.length === before) return;
          }
        };

        if (Math.abs(nowMs - query.fairAtMs) >= FAIR_QUERY_MS) {
          for (const share of pool.fairShares()) claimUpTo(share, true);
          if (free() > 0) query.fairAtMs = nowMs;
        }
        for (const isOnePerWebhook of [true, false]) claimUpTo(pool.accountMax, isOnePerWebhook);
      }
      return claims;
    },
  );
  return (nowMs: number, underWay: Iterable<ClaimedDelivery>): ClaimedDelivery[] =>
    claim.immediate(nowMs, [...underWay]);
}

/** Leases a due row and writes its attempt; to be called in a transaction. */
function createLease(store: Store, random: (bytes: number) => Uint8Array) {
  const write = store.prepare(`
    UPDATE deliveries SET ${SET_PROGRESS}, lease_token = $token, lease_until_ms = $untilMs WHERE id = $deliveryId`);
  // An interrupted sixth attempt is repeated under its number and in its row.
  const begin = store.prepare<{ n: number }, [string, number | null, string, string, number, number]>(`
    INSERT INTO attempts (delivery_id, n, number, trigger, state, url, started_at_ms, signed_at)
    VALUES (?1, coalesce(
      (SELECT n FROM attempts WHERE delivery_id = ?1 AND number = ?2),
      (SELECT max(n) + 1 FROM attempts WHERE delivery_id = ?1), 1), ?2, ?3, 'started', ?4, ?5, ?6)
    ON CONFLICT (delivery_id, n) DO UPDATE SET state = 'started', url = excluded.url, error = NULL, detail = NULL,
      started_at_ms = excluded.started_at_ms, signed_at = excluded.signed_at, ended_at_ms = NULL
    RETURNING n`);

  return function lease(row: DueRow, nowMs: number): ClaimedDelivery {
    const isAutomatic = row.nextAttemptAtMs !== null && row.nextAttemptAtMs <= nowMs;
    const progress = nextDelivery(row, { kind: isAutomatic ? 'claimed' : 'claimed-by-hand' });
    const token = Buffer.from(random(16)).toString('hex');
    const { deliveryId, url } = row;
    write.run({ ...progress, token, untilMs: nowMs + LEASE_MS, deliveryId });
    const number = isAutomatic ? progress.attempts : undefined;
    const trigger = isAutomatic ? 'auto' : 'manual';
    const signedAt = Math.floor(nowMs / 1_000);
    const n = begin.get(deliveryId, number ?? null, trigger, url, nowMs, signedAt)?.n ?? 1;
    return { ...row, isFailing: row.isFailing === 1, token, n, number, claimedAtMs: nowMs };
  };
}

/** How many attempts may be under way at once. */
type Bounds = Readonly<{
  /** Of the pool; each takes a socket and about 55 kB. */
  attempts: number;
  /** Of them, other than first attempts of a delivery: a quarter is reserved for those. */
  retries: number;
  /** Of one webhook, and of all webhooks on one host; both count the attempts of both pools. */
  webhook: number;
  host: number;
  account: number;
}>;

const STEADY_BOUNDS: Bounds = { attempts: 640, retries: 480, webhook: 4, host: 8, account: 640 };
/** Each attempt may hang for 10 s, so failing webhooks have a pool of their own. */
const FAILING_BOUNDS: Bounds = { attempts: 128, retries: 96, webhook: 1, host: 2, account: 32 };
/** Attempts beyond one per webhook, in all, for trusted webhooks alone: many that begin to hang together hold few sockets. */
const FURTHER_MAX = 256;
/** Attempts that each account gets before any account gets more. */
const PER_ACCOUNT_FIRST = 4;

/** `trusted` are those webhooks under way that are trusted in this turn. */
function createPools(underWay: readonly ClaimedDelivery[], trusted: Set<string>) {
  const byWebhook = new Map<string, number>();
  const byHost = new Map<string, number>();
  let further = 0;
  const [steady, failing] = [createPool(STEADY_BOUNDS), createPool(FAILING_BOUNDS)];
  for (const claim of underWay) add(claim, false);

  function add(claim: ClaimedDelivery, isTrusted: boolean) {
    if (byWebhook.has(claim.webhookId)) further++;
    if (isTrusted) trusted.add(claim.webhookId);
    count(byWebhook, claim.webhookId);
    count(byHost, claim.host);
    (claim.isFailing ? failing : steady).add(claim);
  }

  function createPool(bounds: Bounds) {
    const byAccount = new Map<number, number>();
    let [attempts, retries] = [0, 0];
    const webhookMax = (isTrusted: boolean, isOnePerWebhook: boolean) =>
      isTrusted && !isOnePerWebhook && further < FURTHER_MAX ? bounds.webhook : 1;
    return {
      accountMax: bounds.account,
      free: () => Math.max(0, bounds.attempts - attempts),
      /**
       * The first limits of an account: a few attempts, then an equal part for each account here and for one that may
       * come. So accounts whose receivers hang leave capacity to others; what nobody needs, any account may have.
       */
      fairShares: (): readonly number[] => {
        const even = Math.floor(bounds.attempts / (byAccount.size + 1));
        return [PER_ACCOUNT_FIRST, Math.min(bounds.account, Math.max(PER_ACCOUNT_FIRST, even))];
      },
      full: (accountMax: number, isOnePerWebhook: boolean): DueFilter => ({
        retries: Number(retries < bounds.retries),
        accounts: fullOf(byAccount, () => accountMax),
        webhooks: fullOf(byWebhook, (id) => webhookMax(trusted.has(id), isOnePerWebhook)),
        hosts: fullOf(byHost, () => bounds.host),
      }),
      /** Whether a row may still be claimed after others of the same query. */
      fits: (row: DueRow, accountMax: number, isOnePerWebhook: boolean): boolean =>
        (byAccount.get(row.accountId) ?? 0) < accountMax &&
        (byWebhook.get(row.webhookId) ?? 0) < webhookMax(row.isTrusted === 1, isOnePerWebhook) &&
        (byHost.get(row.host) ?? 0) < bounds.host &&
        (retries < bounds.retries || (row.attempts === 0 && row.nextAttemptAtMs !== null)),
      add({ accountId, number }: ClaimedDelivery) {
        count(byAccount, accountId);
        attempts++;
        if (number !== 1) retries++;
      },
    };
  }

  return { steady, failing, add };
}

function count<Name>(counts: Map<Name, number>, name: Name) {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function fullOf<Name>(counts: ReadonlyMap<Name, number>, maxOf: (name: Name) => number): string {
  return JSON.stringify([...counts].flatMap(([name, count]) => (count >= maxOf(name) ? [name] : [])));
}
