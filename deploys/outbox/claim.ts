import type { Store } from '../../shared/store/open.ts';
import type { EventKind } from './enqueue.ts';

/**
 * A delivery that is to be attempted, and the right to record how that ends. `number` is 1 to 6, or absent for a manual
 * attempt. `body` is the exact bytes of every attempt.
 */
export type Claim = Readonly<{
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
  /** Whether its webhook's last attempt failed, and whether one succeeded within the last minute. */
  isFailing: boolean;
  isTrusted: boolean;
  createdAtMs: number;
  claimedAtMs: number;
}>;

/** Longer than the 13 s that an attempt may take. */
export const LEASE_MS = 30_000;
/** How often to look for accounts below their share when there were none: it costs a walk over all that is due. */
const LOOK_MS = 250;
/** How long a webhook counts as working after a success. */
const TRUSTED_MS = 60_000;
/** Attempts that one claim begins. A handshake takes a millisecond of CPU, and other work has to run in between. */
const CLAIMS_MAX = 16;

type DueRow = Omit<Claim, 'token' | 'n' | 'number' | 'isFailing' | 'isTrusted' | 'claimedAtMs'> &
  Readonly<{ attempts: number; nextAttemptAtMs: number | null; isFailing: number; isTrusted: number }>;

type DueGiven = Readonly<
  Record<'nowMs' | 'again' | 'limit', number> & Record<'accounts' | 'webhooks' | 'hosts', string>
>;

const FAILING = 'SELECT id FROM webhooks WHERE failing_since_ms IS NOT NULL AND deleted_at_ms IS NULL';

/**
 * What is due, oldest first. Those without room are skipped by the index alone: a receiver that hangs may have a hundred
 * thousand deliveries due, and no other should wait until their rows are read.
 */
const dueTo = (whose: string, others: string) => `
  SELECT d.id AS deliveryId, w.account_id AS accountId, d.webhook_id AS webhookId, d.event_kind AS eventKind, d.body,
    d.attempts, d.created_at_ms AS createdAtMs, d.next_attempt_at_ms AS nextAttemptAtMs, w.url, w.host,
    w.failing_since_ms IS NOT NULL AS isFailing,
    w.last_success_at_ms IS NOT NULL AND w.last_success_at_ms > $nowMs - ${TRUSTED_MS} AS isTrusted
  FROM deliveries d INDEXED BY deliveries_due CROSS JOIN webhooks w ON w.id = d.webhook_id
  WHERE d.due_at_ms <= $nowMs
    AND ($again OR (d.attempts = 0 AND d.resend_at_ms IS NULL))
    AND w.paused_at_ms IS NULL AND w.deleted_at_ms IS NULL
    ${whose} AND d.webhook_id NOT IN (SELECT value FROM json_each($webhooks)
      UNION ALL SELECT id FROM webhooks WHERE host IN (SELECT value FROM json_each($hosts))
      UNION ALL SELECT id FROM webhooks
        WHERE account_id IN (SELECT value FROM json_each($accounts)) AND deleted_at_ms IS NULL ${others})
  ORDER BY d.due_at_ms LIMIT $limit`;

/** The same for webhooks whose last attempt succeeded, and for those whose last attempt failed. */
export const DUE = {
  steady: dueTo('', `UNION ALL ${FAILING}`),
  failing: dueTo(`AND d.webhook_id IN (${FAILING})`, ''),
};

/**
 * Claims what is due as far as there is room beside what is `underWay`: oldest first, but later for accounts that hold
 * their share, then for webhooks that hold a place, and last for webhooks that fail. Lease, token and the attempt's row
 * are written in one IMMEDIATE transaction before anything is sent.
 */
export function createClaim(store: Store, random: (bytes: number) => Uint8Array) {
  const take = createTake(store, random);
  const kinds = [kindOf('steady'), kindOf('failing')];

  function kindOf(name: keyof typeof DUE) {
    return { name, due: store.prepare<DueRow, DueGiven>(DUE[name]), lookedAtMs: -Infinity };
  }

  const claim = store.transaction((nowMs: number, underWay: Iterable<Claim>): Claim[] => {
    const places = createPlaces(underWay);
    const claims: Claim[] = [];

    for (const kind of kinds) {
      const part = places[kind.name];
      const free = () => Math.min(part.free(), CLAIMS_MAX - claims.length);

      const claimUpTo = (share: number, isFirst: boolean) => {
        for (let limit = free(); limit > 0; limit = free()) {
          const again = Number(part.hasRoomForRetries());
          const rows = kind.due.all({ nowMs, limit, again, ...part.full(share, isFirst) });
          for (const row of rows) {
            if (!part.hasRoomFor(row, share, isFirst)) continue;
            const claimed = take(row, nowMs);
            places.fill(claimed);
            claims.push(claimed);
          }
          if (rows.length < limit) return;
        }
      };

      if (Math.abs(nowMs - kind.lookedAtMs) >= LOOK_MS) {
        for (const share of part.shares()) claimUpTo(share, true);
        if (free() > 0) kind.lookedAtMs = nowMs;
      }
      for (const isFirst of [true, false]) claimUpTo(part.most, isFirst);
    }
    return claims;
  });
  return (nowMs: number, underWay: Iterable<Claim>): Claim[] => claim.immediate(nowMs, underWay);
}

/** Leases a due row and writes its attempt; to be called in a transaction. */
function createTake(store: Store, random: (bytes: number) => Uint8Array) {
  const leaseAuto = store.prepare(`
    UPDATE deliveries SET state = 'attempting', attempts = attempts + 1, next_attempt_at_ms = NULL,
      lease_token = ?1, lease_until_ms = ?2 WHERE id = ?3`);
  const leaseManual = store.prepare(`
    UPDATE deliveries SET resend_at_ms = NULL, lease_token = ?1, lease_until_ms = ?2 WHERE id = ?3`);
  // An interrupted sixth attempt is repeated under its number and in its row.
  const begin = store.prepare<{ n: number }, [string, number | null, string, string, number, number]>(`
    INSERT INTO attempts (delivery_id, n, number, trigger, state, url, started_at_ms, signed_at)
    VALUES (?1, coalesce(
      (SELECT n FROM attempts WHERE delivery_id = ?1 AND number = ?2),
      (SELECT max(n) + 1 FROM attempts WHERE delivery_id = ?1), 1), ?2, ?3, 'started', ?4, ?5, ?6)
    ON CONFLICT (delivery_id, n) DO UPDATE SET state = 'started', url = excluded.url, error = NULL, detail = NULL,
      started_at_ms = excluded.started_at_ms, signed_at = excluded.signed_at, ended_at_ms = NULL
    RETURNING n`);

  return function take(
    { attempts, nextAttemptAtMs, isFailing, isTrusted, ...due }: DueRow,
    nowMs: number,
  ): Claim {
    const isAutomatic = nextAttemptAtMs !== null && nextAttemptAtMs <= nowMs;
    const token = Buffer.from(random(16)).toString('hex');
    (isAutomatic ? leaseAuto : leaseManual).run(token, nowMs + LEASE_MS, due.deliveryId);
    const number = isAutomatic ? attempts + 1 : undefined;
    const trigger = isAutomatic ? 'auto' : 'manual';
    const signedAt = Math.floor(nowMs / 1_000);
    const begun = begin.get(due.deliveryId, number ?? null, trigger, due.url, nowMs, signedAt);
    return {
      ...due,
      token,
      n: begun?.n ?? 1,
      number,
      isFailing: isFailing === 1,
      isTrusted: isTrusted === 1,
      claimedAtMs: nowMs,
    };
  };
}

/** Concurrent attempts at one kind of webhook; each takes a socket and about 55 kB. */
type Bounds = Readonly<{
  places: number;
  /** Of them, those that are not a delivery's first: a quarter is reserved for first attempts. */
  retries: number;
  /** Of one webhook, and of all webhooks on one host; both over both kinds. */
  webhook: number;
  host: number;
  account: number;
}>;

const STEADY_BOUNDS: Bounds = { places: 640, retries: 480, webhook: 4, host: 8, account: 640 };
/** Each may hang for 10 s, so failing webhooks never take more than a part of all places. */
const FAILING_BOUNDS: Bounds = { places: 128, retries: 96, webhook: 1, host: 2, account: 32 };
/**
 * Places beyond a webhook's first, only for those that succeeded a moment ago: any receiver may begin to hang, so hundreds
 * at once take one place each, and the handshakes of others do not wait behind theirs.
 */
const FURTHER_MAX = 256;
/** Of each account, before any gets more. */
const PER_ACCOUNT_FIRST = 4;

function createPlaces(underWay: Iterable<Claim>) {
  const byWebhook = new Map<string, number>();
  const byHost = new Map<string, number>();
  const trusted = new Set<string>();
  let further = 0;
  const [steady, failing] = [createPart(STEADY_BOUNDS), createPart(FAILING_BOUNDS)];
  for (const claim of underWay) fill(claim);

  function fill(claim: Claim) {
    if (byWebhook.has(claim.webhookId)) further++;
    if (claim.isTrusted) trusted.add(claim.webhookId);
    add(byWebhook, claim.webhookId);
    add(byHost, claim.host);
    (claim.isFailing ? failing : steady).fill(claim);
  }

  function createPart(bounds: Bounds) {
    const byAccount = new Map<number, number>();
    let [taken, retries] = [0, 0];
    const perWebhook = (isTrusted: boolean, isFirst: boolean) =>
      isTrusted && !isFirst && further < FURTHER_MAX ? bounds.webhook : 1;
    return {
      free: () => Math.max(0, bounds.places - taken),
      /**
       * What an account may hold before any may take the rest: first a few, then an even share, counting one account more
       * than there are. So accounts whose receivers hang block no other, and a single account has every place.
       */
      shares: (): readonly number[] => {
        const even = Math.floor(bounds.places / (byAccount.size + 1));
        return [PER_ACCOUNT_FIRST, Math.max(PER_ACCOUNT_FIRST, even)];
      },
      most: bounds.account,
      hasRoomForRetries: () => retries < bounds.retries,
      /** JSON arrays of what has no room left while an account may hold `share`, and a webhook one place if `isFirst`. */
      full: (share: number, isFirst: boolean) => ({
        accounts: fullOf(byAccount, () => Math.min(share, bounds.account)),
        webhooks: fullOf(byWebhook, (id) => perWebhook(trusted.has(id), isFirst)),
        hosts: fullOf(byHost, () => bounds.host),
      }),
      hasRoomFor: (row: DueRow, share: number, isFirst: boolean): boolean =>
        taken < bounds.places &&
        (byAccount.get(row.accountId) ?? 0) < Math.min(share, bounds.account) &&
        (byWebhook.get(row.webhookId) ?? 0) < perWebhook(row.isTrusted === 1, isFirst) &&
        (byHost.get(row.host) ?? 0) < bounds.host &&
        (retries < bounds.retries || (row.attempts === 0 && row.nextAttemptAtMs !== null)),
      fill({ accountId, number }: Claim) {
        add(byAccount, accountId);
        taken++;
        if (number !== 1) retries++;
      },
    };
  }

  return { steady, failing, fill };
}

function add<Name>(counts: Map<Name, number>, name: Name) {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function fullOf<Name>(counts: ReadonlyMap<Name, number>, maxOf: (name: Name) => number): string {
  return JSON.stringify([...counts].flatMap(([name, count]) => (count >= maxOf(name) ? [name] : [])));
}
