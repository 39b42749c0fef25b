import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import { type Bucket, type BucketStore, fullBucket, refill, shortMs } from './bucket.ts';
import type { Journal, Spending } from './journal.ts';

/** What a request costs: `calls` of the rate, `credits` of a trial's allowance. `bill` is notified of credits that go through the journal. */
export type Price = Readonly<{ calls: number; credits: number; usageHook?: UsageHook }>;

/** What is written together with the journal, to the unit. Both are called at the moment the journal's counters change. */
export type UsageHook = Readonly<{
  /** The credits were taken. */
  take(): void;
  /** They could not be made durable and were given back. */
  giveBack(): void;
}>;

/** The state of an account's rate after a decision, for the RateLimit fields. */
export type RateState = Readonly<{ plan: Plan; tokens: number }>;

export type Charge =
  /** `creditsLeft` is `undefined` on a plan without a credit limit. */
  | { readonly kind: 'charged'; readonly rate: RateState; readonly creditsLeft: number | undefined }
  | { readonly kind: 'over-rate'; readonly rate: RateState; readonly waitMs: number }
  | { readonly kind: 'out-of-credits'; readonly rate: RateState }
  /** What the account has left cannot be known for now, or a charge cannot be made to last. */
  | { readonly kind: 'credits-unavailable' };

export type Charging = Readonly<{
  /** Takes rate and credits together, or neither. On a plan with credits it resolves when the charge is durable. Never rejects. */
  charge(caller: Caller, plan: Plan, price: Price): Charge | Promise<Charge>;
  /** Gives back what was taken for calls that no backend answered: credits, and the rate of a request that was refused. */
  refund(caller: Caller, plan: Plan, price: Price): void;
  /** Forgets accounts whose bucket is full again, for a new one would be equal; looks at `max` of all in turn. */
  sweep(max?: number): void;
}>;

/** Charging of a process that is alone. */
type ChargingAlone = Charging &
  Readonly<{
    /** Writes up to `max` buckets that changed since they were last written; gives how many remain. */
    save(max: number): number;
  }>;

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

/**
 * `store` keeps buckets through a restart; without it every account begins with a whole burst. `elsewhere` is what
 * processes spent of each account that do not run any more.
 */
export function createCharging(
  journal: Journal,
  clock: Clock,
  store?: BucketStore,
  elsewhere: ReadonlyMap<number, number> = new Map(),
): ChargingAlone {
  const buckets = store?.load() ?? new Map<number, Bucket>();
  const changed = new Set<number>();
  /** Accounts that have a row, or may have one. */
  const stored = new Set(buckets.keys());
  let sweeping = buckets.entries();

  function charge({ accountId, creditsGranted }: Caller, plan: Plan, price: Price): Charge | Promise<Charge> {
    const nowMs = clock.monotonic();
    const bucket = bucketOf(accountId, plan, nowMs);
    const waitMs = shortMs(bucket, price.calls);
    if (waitMs > 0) return { kind: 'over-rate', rate: { plan, tokens: bucket.tokens }, waitMs };
    if (plan.credits === undefined) {
      take(accountId, bucket, price.calls);
      return { kind: 'charged', rate: { plan, tokens: bucket.tokens }, creditsLeft: undefined };
    }
    const spending = spendingOf(accountId);
    if (spending === undefined) return { kind: 'credits-unavailable' };
    // An allowance lowered below what is spent leaves none, not fewer: a free call still passes.
    const spent = spending.charged - spending.refunded + (elsewhere.get(accountId) ?? 0);
    const left = Math.max(0, (creditsGranted ?? plan.credits) - spent);
    if (price.credits > left) return { kind: 'out-of-credits', rate: { plan, tokens: bucket.tokens } };
    take(accountId, bucket, price.calls);
    const rate = { plan, tokens: bucket.tokens };
    if (price.credits === 0) return { kind: 'charged', rate, creditsLeft: left };
    spending.charged += price.credits;
    price.usageHook?.take();
    const charged = { kind: 'charged', rate, creditsLeft: left - price.credits } as const;
    return durable(journal, accountId, price, charged, () => {
      spending.refunded += price.credits;
      giveBack(accountId, price.calls);
    });
  }

  /** The account's bucket, refilled at the rate of `plan`. */
  function bucketOf(accountId: number, plan: Plan, nowMs: number): Bucket {
    let bucket = buckets.get(accountId);
    if (bucket === undefined) buckets.set(accountId, (bucket = fullBucket(plan, nowMs)));
    bucket.rps = plan.rps;
    bucket.burst = plan.burst;
    refill(bucket, nowMs);
    return bucket;
  }

  function take(accountId: number, bucket: Bucket, calls: number): void {
    bucket.tokens -= calls;
    if (store !== undefined) changed.add(accountId);
  }

  /** Returns tokens to a bucket; the next refill holds it to its burst. One that was swept is full already. */
  function giveBack(accountId: number, calls: number): void {
    const bucket = buckets.get(accountId);
    if (bucket !== undefined) take(accountId, bucket, -calls);
  }

  function spendingOf(accountId: number): Spending | undefined {
    try {
      return journal.spendingOf(accountId);
    } catch {
      return undefined;
    }
  }

  function refund({ accountId }: Caller, plan: Plan, { calls, credits }: Price): void {
    if (calls > 0) giveBack(accountId, calls);
    if (plan.credits === undefined || credits === 0) return;
    journal.spendingOf(accountId).refunded += credits;
    void journal.append(accountId);
  }

  function sweep(max = buckets.size + 1): void {
    const nowMs = clock.monotonic();
    for (let looked = 0; looked < max; looked++) {
      const { value, done } = sweeping.next();
      if (done === true) {
        sweeping = buckets.entries();
        return;
      }
      const [accountId, bucket] = value;
      refill(bucket, nowMs);
      if (bucket.tokens < bucket.burst) continue;
      buckets.delete(accountId);
      if (stored.has(accountId))
        changed.add(accountId); // to be written as nothing
      else changed.delete(accountId);
    }
  }

  function save(max: number): number {
    const part = changed.values().take(max).toArray();
    if (part.length > 0 && store?.save(part.map((id) => [id, buckets.get(id)] as const)) === true) {
      for (const id of part) {
        changed.delete(id);
        if (buckets.has(id)) stored.add(id);
        else stored.delete(id);
      }
    }
    return changed.size;
  }

  return { charge, refund, sweep, save };
}
