import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import { refilled, take } from './bucket.ts';
import type { BucketStore, Held } from './bucket-store.ts';
import type { Journal, Spending } from './journal.ts';
import type { Price } from './price.ts';

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
  /** Gives back what was taken for calls that nobody answered: credits, and the rate of a request that was refused. */
  refund(caller: Caller, plan: Plan, price: Price): void;
  /** Forgets accounts whose bucket is full again, for a new one would be equal; looks at `max` of all in turn. */
  sweep(max?: number): void;
}>;

/** Charging of a process that is alone. */
export type ChargingAlone = Charging &
  Readonly<{
    /** Writes up to `max` buckets that changed since they were last written; gives how many are left. */
    save(max: number): number;
  }>;

/**
 * `buckets` keeps them through a restart; without it every account begins with a whole burst. `elsewhere` is what
 * processes spent of each account that do not run any more.
 */
export function createCharging(
  journal: Journal,
  clock: Clock,
  buckets?: BucketStore,
  elsewhere: ReadonlyMap<number, number> = new Map(),
): ChargingAlone {
  const held = buckets?.load() ?? new Map<number, Held>();
  const changed = new Set<number>();
  /** Accounts that have a row, or may have one. */
  const stored = new Set(held.keys());
  let looking = held.entries();

  function charge(caller: Caller, plan: Plan, price: Price): Charge | Promise<Charge> {
    const nowMs = clock.monotonic();
    const before = held.get(caller.accountId)?.bucket ?? { tokens: plan.burst, atMs: nowMs };
    const taken = take(before, plan, price.calls, nowMs);
    const rate = { plan, tokens: taken.bucket.tokens };
    if (taken.kind === 'short') return { kind: 'over-rate', rate, waitMs: taken.waitMs };
    if (plan.credits === undefined) {
      hold(caller.accountId, { bucket: taken.bucket, rate: plan });
      return { kind: 'charged', rate, creditsLeft: undefined };
    }
    const spending = spendingOf(caller.accountId);
    if (spending === undefined) return { kind: 'credits-unavailable' };
    // An allowance lowered below what is spent leaves none, not fewer: a free call still passes.
    const granted = caller.creditsGranted ?? plan.credits;
    const spent = spending.charged - spending.refunded + (elsewhere.get(caller.accountId) ?? 0);
    const left = Math.max(0, granted - spent);
    if (price.credits > left)
      return { kind: 'out-of-credits', rate: { plan, tokens: refilled(before, plan, nowMs).tokens } };
    hold(caller.accountId, { bucket: taken.bucket, rate: plan });
    if (price.credits === 0) return { kind: 'charged', rate, creditsLeft: left };
    spending.charged += price.credits;
    price.bill?.take();
    const charged = { kind: 'charged', rate, creditsLeft: left - price.credits } as const;
    return durable(caller.accountId, spending, price, charged);
  }

  /** Waits for the journal; a charge that cannot be written is taken back and refused, so that nothing is lost. */
  async function durable(
    accountId: number,
    spending: Spending,
    price: Price,
    charged: Charge,
  ): Promise<Charge> {
    try {
      await journal.note(accountId);
      return charged;
    } catch {
      spending.refunded += price.credits;
      price.bill?.giveBack();
      giveBack(accountId, price.calls);
      return { kind: 'credits-unavailable' };
    }
  }

  /** Returns tokens to a bucket; the next refill holds it to its burst. One that was swept is full already. */
  function giveBack(accountId: number, calls: number): void {
    const now = held.get(accountId);
    if (now === undefined) return;
    const bucket = { ...now.bucket, tokens: now.bucket.tokens + calls };
    hold(accountId, { rate: now.rate, bucket });
  }

  function hold(accountId: number, now: Held): void {
    held.set(accountId, now);
    if (buckets !== undefined) changed.add(accountId);
  }

  function spendingOf(accountId: number): Spending | undefined {
    try {
      return journal.spendingOf(accountId);
    } catch {
      return undefined;
    }
  }

  function refund(caller: Caller, plan: Plan, { calls, credits }: Price): void {
    if (calls > 0) giveBack(caller.accountId, calls);
    if (plan.credits === undefined || credits === 0) return;
    journal.spendingOf(caller.accountId).refunded += credits;
    void journal.note(caller.accountId);
  }

  function sweep(max = held.size + 1): void {
    const nowMs = clock.monotonic();
    for (let looked = 0; looked < max; looked++) {
      const { value, done } = looking.next();
      if (done === true) {
        looking = held.entries();
        return;
      }
      const [accountId, { bucket, rate }] = value;
      if (refilled(bucket, rate, nowMs).tokens < rate.burst) continue;
      held.delete(accountId);
      if (stored.has(accountId))
        changed.add(accountId); // to be written as nothing
      else changed.delete(accountId);
    }
  }

  function save(max: number): number {
    const part = changed.values().take(max).toArray();
    if (part.length > 0 && buckets?.save(part.map((id) => [id, held.get(id)] as const)) === true) {
      for (const id of part) {
        changed.delete(id);
        if (held.has(id)) stored.add(id);
        else stored.delete(id);
      }
    }
    return changed.size;
  }

  return { charge, refund, sweep, save };
}
