import { type Clock, retryAfterSeconds } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/source.ts';
import type { Migrations, Store } from '../../shared/store/open.ts';
import { type Bucket, MICRO, perMsOf, refill, shortMs } from './bucket.ts';
import type { Journal } from './journal.ts';

/** The price of a request: `calls` of the rate, `credits` of a trial's allowance. `usageHook` is called for credits that go through the journal. */
export type Price = Readonly<{ calls: number; credits: number; usageHook?: UsageHook }>;

/** Writes usage together with the journal, to the unit. Both are called at the moment the journal's counters change. */
export type UsageHook = Readonly<{
  /** The credits were taken. */
  take(): void;
  /** They could not be made durable and were given back. */
  giveBack(): void;
}>;

/** The state of an account's rate after a decision, for the RateLimit fields. */
type BucketState = Readonly<{ plan: Plan; tokens: number }>;

export type Charge =
  | { readonly kind: 'charged'; readonly rate: BucketState }
  | { readonly kind: 'over-rate'; readonly rate: BucketState; readonly waitMs: number }
  | { readonly kind: 'out-of-credits'; readonly rate: BucketState; readonly creditsLeft: number }
  /** The credits left cannot be known for now, or a charge cannot be made durable. */
  | { readonly kind: 'credits-unavailable' };

type OutOfCredits = Extract<Charge, { kind: 'out-of-credits' }>;

export type Charging = Readonly<{
  /** Takes rate and credits together, or neither. On a plan with credits it resolves when the charge is durable. Never rejects. */
  charge(caller: Caller, plan: Plan, price: Price): Charge | Promise<Charge>;
  /** The refusal of a price that the account is known not to have the credits for; takes nothing. */
  outOfCredits(caller: Caller, plan: Plan, credits: number): OutOfCredits | undefined;
  /** Gives back what was taken for calls that no backend answered: credits, and the rate of a request that was refused. */
  refund(caller: Caller, plan: Plan, price: Price): void;
  /** The credits left that an answer states now; `undefined` for a plan without a credit limit. */
  creditsLeft(accountId: number, plan: Plan): number | undefined;
}>;

/** Accounts whose stated credits are remembered, 100 bytes each, in two halves: the older half is forgotten at once. */
const STATED_MAX = 50_000;

type Stated = { total: number; charged: number; least: number };

/** The credits left that answers state: never more than there are, and from one process higher only after credits were added. */
export class StatedCredits {
  #recent = new Map<number, Stated>();
  #older: ReadonlyMap<number, Stated> = new Map();

  /** Notes the credits ever given to an account, as a request finds them. */
  setTotal(accountId: number, total: number): void {
    const stated = this.#recent.get(accountId) ?? this.#renew(accountId, total);
    if (total > stated.total) stated.least = Infinity;
    stated.total = total;
  }

  #renew(accountId: number, total: number): Stated {
    const stated = this.#older.get(accountId) ?? { total, charged: 0, least: Infinity };
    if (this.#recent.size >= STATED_MAX / 2) [this.#older, this.#recent] = [this.#recent, new Map()];
    this.#recent.set(accountId, stated);
    return stated;
  }

  /** The credits left, `atMost` so many, after so many were charged and refunded; `undefined` for an account that is not remembered. */
  left(accountId: number, charged: number, refunded: number, atMost = Infinity): number | undefined {
    const stated = this.#recent.get(accountId) ?? this.#older.get(accountId);
    if (stated === undefined) return undefined;
    stated.charged = Math.max(stated.charged, charged);
    const left = Math.max(0, stated.total - (stated.charged - refunded));
    return (stated.least = Math.min(stated.least, left, atMost));
  }
}

/** One call for every element of a request, notifications and malformed ones included, and the sum of their credits. */
export function priceOf(elements: readonly Readonly<{ credits: number }>[]): Price {
  let credits = 0;
  for (const element of elements) credits += element.credits;
  return { calls: elements.length, credits };
}

/** Waits for the journal; a charge that cannot be written is taken back by `undo` and refused, so that nothing is lost. */
export async function durable(
  journal: Journal,
  accountId: number,
  price: Price,
  charged: Charge,
  undo: () => void,
): Promise<Charge> {
  try {
    await journal.append(accountId);
    return charged;
  } catch {
    undo();
    price.usageHook?.giveBack();
    return { kind: 'credits-unavailable' };
  }
}

/** Charges accounts that no other process charges, in memory. The ledger keeps the buckets, so that a restart does not refill them. */
export function createCharging(journal: Journal, ledger: Store, clock: Clock) {
  const buckets = readBuckets(ledger, clock);
  const stated = new StatedCredits();
  /** Those that changed since they were last written. */
  const changed = new Map<number, Bucket>();
  let sweeping = buckets.entries();
  const write = ledger.prepare<null, [number, number, number, number, number]>(
    'INSERT OR REPLACE INTO buckets (account_id, tokens, at_ms, rps, burst) VALUES (?, ?, ?, ?, ?)',
  );
  const writeAll = ledger.transaction((some: Iterable<readonly [accountId: number, bucket: Bucket]>) => {
    const [nowMs, unixMs] = [clock.monotonic(), Math.floor(clock.now())];
    for (const [accountId, bucket] of some) {
      refill(bucket, nowMs);
      write.run(accountId, bucket.micro / MICRO, unixMs, bucket.perMs / 1_000, bucket.burst);
    }
  });

  function charge(caller: Caller, plan: Plan, price: Price): Charge | Promise<Charge> {
    const { accountId } = caller;
    const bucket = bucketOf(accountId, plan, clock.monotonic());
    const waitMs = shortMs(bucket, price.calls);
    const isLimited = plan.credits !== undefined;
    // Credits do not come back by waiting: they are refused first.
    const out = isLimited ? outOfCredits(caller, plan, price.credits) : undefined;
    if (out !== undefined) return out;
    if (waitMs > 0) return { kind: 'over-rate', rate: { plan, tokens: bucket.micro / MICRO }, waitMs };
    const spending = isLimited ? journal.spendingOf(accountId) : undefined;
    if (isLimited && spending === undefined) return { kind: 'credits-unavailable' };
    take(accountId, bucket, price.calls);
    const charged = { kind: 'charged', rate: { plan, tokens: bucket.micro / MICRO } } as const;
    if (spending === undefined || price.credits === 0) return charged;
    spending.charged += price.credits;
    price.usageHook?.take();
    return durable(journal, accountId, price, charged, () => {
      spending.refunded += price.credits;
      giveBack(accountId, price.calls);
    });
  }

  /** A free call passes also when the total was lowered below what is spent. */
  function outOfCredits(caller: Caller, plan: Plan, credits: number): OutOfCredits | undefined {
    const { accountId, creditsGranted } = caller;
    const spending = plan.credits === undefined ? undefined : journal.spendingOf(accountId);
    if (plan.credits === undefined || spending === undefined) return undefined;
    const total = creditsGranted ?? plan.credits;
    stated.setTotal(accountId, total);
    const { charged, refunded, elsewhere } = spending;
    if (credits <= Math.max(0, total - (charged - refunded + elsewhere))) return undefined;
    const { micro } = bucketOf(accountId, plan, clock.monotonic());
    const left = creditsLeft(accountId, plan) ?? 0;
    return { kind: 'out-of-credits', rate: { plan, tokens: micro / MICRO }, creditsLeft: left };
  }

  function creditsLeft(accountId: number, plan: Plan): number | undefined {
    const spending = plan.credits === undefined ? undefined : journal.spendingOf(accountId);
    return spending && stated.left(accountId, spending.charged + spending.elsewhere, spending.refunded);
  }

  /** The account's bucket, refilled at the rate of `plan`. */
  function bucketOf(accountId: number, { rps, burst }: Plan, nowMs: number): Bucket {
    let bucket = buckets.get(accountId);
    const perMs = perMsOf(rps);
    if (bucket === undefined)
      buckets.set(accountId, (bucket = { micro: burst * MICRO, atMs: nowMs, perMs, burst }));
    bucket.perMs = perMs;
    bucket.burst = burst;
    refill(bucket, nowMs);
    return bucket;
  }

  function take(accountId: number, bucket: Bucket, calls: number): void {
    bucket.micro -= calls * MICRO;
    changed.set(accountId, bucket);
  }

  /** Returns tokens to a bucket; the next refill holds it to its burst. One that was swept is full already. */
  function giveBack(accountId: number, calls: number): void {
    const bucket = buckets.get(accountId);
    if (bucket !== undefined) take(accountId, bucket, -calls);
  }

  function refund({ accountId }: Caller, plan: Plan, { calls, credits }: Price): void {
    if (calls > 0) giveBack(accountId, calls);
    const spending = plan.credits === undefined || credits === 0 ? undefined : journal.spendingOf(accountId);
    if (spending === undefined) return;
    spending.refunded += credits;
    void journal.append(accountId);
  }

  /** Forgets accounts whose bucket is full again, for a new one would be equal; looks at `max` of all in turn. */
  function sweep(max: number): void {
    const nowMs = clock.monotonic();
    for (let looked = 0; looked < max; looked++) {
      const { value: entry } = sweeping.next();
      if (entry === undefined) return void (sweeping = buckets.entries());
      const [accountId, bucket] = entry;
      refill(bucket, nowMs);
      if (bucket.micro < bucket.burst * MICRO) continue;
      buckets.delete(accountId);
      changed.delete(accountId); // a row from before is a full bucket too when it is read
    }
  }

  /** Writes up to `max` buckets in one transaction; gives how many remain. */
  function save(max: number): number {
    const some = changed.entries().take(max).toArray();
    try {
      if (some.length > 0) writeAll.immediate(some);
      for (const [accountId] of some) changed.delete(accountId);
    } catch {
      // The disk is full or the file is held: they are written later, and charges that need it are refused themselves.
    }
    return changed.size;
  }

  return { charge, outOfCredits, refund, creditsLeft, sweep, save };
}

/** The ledger's table of buckets: tokens at a Unix instant in milliseconds, and the rate that refills them. */
export const BUCKET_MIGRATIONS: Migrations = {
  'ledger-4-buckets': `
    CREATE TABLE buckets (
      account_id INTEGER PRIMARY KEY,
      tokens REAL NOT NULL,
      at_ms INTEGER NOT NULL,
      rps REAL NOT NULL,
      burst INTEGER NOT NULL
    ) STRICT;
  `,
};

/** The buckets that are not full yet, by account, with the time that went by; none when the ledger cannot be read. */
function readBuckets(ledger: Store, clock: Clock): Map<number, Bucket> {
  const buckets = new Map<number, Bucket>();
  const [nowMs, unixMs] = [clock.monotonic(), clock.now()];
  try {
    ledger.run('DELETE FROM buckets WHERE tokens + (? - at_ms) / 1000.0 * rps >= burst', [unixMs]);
    // A wall clock that was set back meanwhile refills nothing; a debt of then may be paid off long ago, and is dropped.
    type Row = Readonly<{ id: number; tokens: number; atMs: number; rps: number; burst: number }>;
    const rows = ledger.query<Row, [number]>(`
      SELECT account_id AS id, iif(at_ms > ?1, max(tokens, 0), tokens) AS tokens, min(at_ms, ?1) AS atMs, rps, burst
      FROM buckets`);
    for (const { id, tokens, atMs, rps, burst } of rows.all(unixMs))
      buckets.set(id, {
        micro: Math.round(tokens * MICRO),
        atMs: nowMs - (unixMs - atMs),
        perMs: perMsOf(rps),
        burst,
      });
  } catch {
    // Buckets that cannot be read are whole bursts.
  }
  return buckets;
}

/**
 * The two fields of an answer to a caller whose rate was looked at (draft-ietf-httpapi-ratelimit-headers-10). The policy:
 * `q` calls in a full bucket, refilled over `w` seconds; the limit: `r` calls left now, `t` seconds until it is full again.
 */
export function rateFields({ plan, tokens }: BucketState) {
  const fullMs = ((plan.burst - tokens) / plan.rps) * 1_000;
  return {
    ratelimit: `"calls";r=${Math.max(0, Math.floor(tokens))};t=${retryAfterSeconds(fullMs)}`,
    'ratelimit-policy': policyOf(plan),
  };
}

/** By plan: it is the same text in every answer. */
const POLICIES = new WeakMap<Plan, string>();

function policyOf(plan: Plan): string {
  const known = POLICIES.get(plan);
  if (known !== undefined) return known;
  const text = `"calls";q=${plan.burst};w=${Math.max(1, Math.ceil(plan.burst / plan.rps))}`;
  POLICIES.set(plan, text);
  return text;
}
