import type { Clock } from '../../shared/clock.ts';
import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Charge, Charging } from '../limits/charge.ts';
import type { Journal } from '../limits/journal.ts';
import type { Price } from '../limits/price.ts';
import { type Account, join } from './account.ts';
import type { Decision, Leases } from './leases.ts';
import type { Pump } from './pump.ts';

type Deps = Readonly<{ leases: Leases; pump: Pump; journal: Journal; clock: Clock }>;

/** How long a request may wait for the centre when memory cannot tell: of its rate, and of the last credits of a trial. */
const RATE_WAIT_MS = 50;
const CREDITS_WAIT_MS = 100;

/** Charges an account that other processes charge too: from leases in memory, which a pump keeps filled. */
export function createSharedCharging({ leases, pump, journal, clock }: Deps): Charging {
  function charge(caller: Caller, plan: Plan, price: Price): Charge | Promise<Charge> {
    const nowMs = clock.monotonic();
    const account = accountOf(caller, plan, nowMs);
    if (account === undefined) return { kind: 'credits-unavailable' };
    leases.offer(account, caller, price, nowMs);
    const storeOut = pump.isOut();
    const decision = leases.decide(account, price, nowMs, { rate: true, credits: true, storeOut });
    return decision.kind === 'ask'
      ? asked(account, price, nowMs, decision)
      : charged(account, price, decision);
  }

  function accountOf(caller: Caller, plan: Plan, nowMs: number): Account | undefined {
    try {
      return leases.accountOf(caller, plan, nowMs);
    } catch {
      return undefined;
    }
  }

  type Asked = Extract<Decision, { kind: 'ask' }>;

  function charged(
    account: Account,
    price: Price,
    decision: Exclude<Decision, Asked>,
  ): Charge | Promise<Charge> {
    const { charge } = decision;
    if (charge.kind === 'charged' && leases.isPressed(account, clock.monotonic())) pump.kick();
    if (charge.kind !== 'charged' || charge.creditsLeft === undefined || price.credits === 0) return charge;
    price.bill?.take();
    return durable(account, price, charge);
  }

  /** Waits for the journal; a charge that cannot be written is taken back and refused, so that nothing is lost. */
  async function durable(account: Account, price: Price, charge: Charge): Promise<Charge> {
    try {
      await journal.note(account.id);
      return charge;
    } catch {
      leases.giveBack(account, price, clock.monotonic());
      price.bill?.giveBack();
      return { kind: 'credits-unavailable' };
    }
  }

  /** Looks again after every answer for the account, until memory can tell or the patience ends. */
  async function asked(account: Account, price: Price, sinceMs: number, first: Asked): Promise<Charge> {
    for (let decision: Decision = first; ;) {
      if (decision.kind !== 'ask') return charged(account, price, decision);
      const endsMs = sinceMs + (decision.credits ? CREDITS_WAIT_MS : RATE_WAIT_MS);
      await answered(account, price, decision, endsMs);
      const nowMs = clock.monotonic();
      const rate = nowMs < sinceMs + RATE_WAIT_MS;
      const credits = nowMs < sinceMs + CREDITS_WAIT_MS;
      decision = leases.decide(account, price, nowMs, { rate, credits, storeOut: pump.isOut() });
    }
  }

  /** Resolves with the next answer for the account, or at `endsMs`. */
  async function answered(
    account: Account,
    price: Price,
    { rate, credits }: Asked,
    endsMs: number,
  ): Promise<void> {
    const ended = new AbortController();
    const { promise: next, resolve } = Promise.withResolvers<void>();
    const leave = join(account, price, { rate, credits }, resolve);
    pump.kick();
    await Promise.race([next, clock.sleep(Math.max(1, endsMs - clock.monotonic()), ended.signal)]);
    ended.abort();
    leave();
  }

  function refund(caller: Caller, plan: Plan, price: Price): void {
    const account = accountOf(caller, plan, clock.monotonic());
    if (account === undefined) return;
    leases.giveBack(account, price, clock.monotonic());
    if (plan.credits !== undefined && price.credits > 0) void journal.note(account.id);
  }

  // The pump forgets accounts at rest, a few at a time.
  return { charge, refund, sweep: () => undefined };
}
