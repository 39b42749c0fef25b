import type { Plan } from '../../shared/config/plans.ts';
import type { Caller } from '../../shared/keys/identify.ts';
import type { Charging } from '../limits/charge.ts';
import type { Tally } from '../usage/tally.ts';
import type { Work } from './work.ts';

/** Gives the price of the call at a place back to the account, and takes it out of its usage; once, however often it is called. */
export type Refund = (place: number) => void;

type Paid = Readonly<{
  works: readonly Work[];
  caller: Caller;
  plan: Plan;
  tally: Pick<Tally, 'refund'>;
}>;

/** The refunds of one request that was paid for. */
export function refundsOf(charging: Charging, { works, caller, plan, tally }: Paid): Refund {
  const given: boolean[] = [];
  return function refund(place) {
    if (given[place]) return;
    given[place] = true;
    charging.refund(caller, plan, { calls: 0, credits: works[place]?.credits ?? 0 });
    tally.refund(place);
  };
}
