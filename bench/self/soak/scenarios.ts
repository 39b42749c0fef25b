import { blockLog, unmoved } from './blocked-log.ts';
import { cutReplies, declared } from './cuts.ts';
import type { Finding } from './finding.ts';
import { cheapness, fairness, flood } from './flood.ts';
import { hanging, unnoticed } from './hanging.ts';
import { exactness, storm } from './kills.ts';
import { honesty, OUTAGES, outage, smoothness } from './outage.ts';
import { changePlans, followed } from './plan-change.ts';
import { envelope, rate, steadiness } from './rate.ts';
import { hangingReceivers, punctuality } from './receivers.ts';
import { isolation, starve } from './starving.ts';
import { CENTRES } from './subject.ts';
import { resumed, suspend } from './suspended.ts';
import { conserved, takeovers } from './takeovers.ts';
import { bounded, wipe } from './wiped.ts';

/** One load with faults, on real processes and sockets. It puts away what it started. */
export type Scenario = Readonly<{ name: string; run(signal: AbortSignal): Promise<readonly Finding[]> }>;

const RATES = [5, 100, 1_000];

/** How much each replica lacks when it takes over, in turn. */
const LAGS_MS = [100, 1_000, 100, 1_000, 10_000];
const TAKEOVERS = 20;

/** One that stands still for five seconds is killed and replaced. */
const STILL_MS = 3_500;

/** All scenarios, in the order of `test/faults/README.md`; `seconds` is the length of a load that has no other. */
export function scenarios(seconds: number): readonly Scenario[] {
  const rates = CENTRES.flatMap((centre) =>
    RATES.map((rps) => {
      const load = { centre, rps, seconds };
      return {
        name: `rate-${rps}-${centre}`,
        run: async (signal: AbortSignal) => {
          const answers = await rate(load, signal);
          return [...envelope(answers, load), ...steadiness(answers, load)];
        },
      };
    }),
  );
  const outages = OUTAGES.map((kind) => ({
    name: `outage-${kind}`,
    run: async (signal: AbortSignal) => {
      const seen = await outage(kind, { quiet: 10, out: 10, after: 10 }, signal);
      return [...honesty(seen), ...smoothness(seen)];
    },
  }));
  const perCentre = CENTRES.flatMap((centre) => [
    {
      name: `kills-${centre}`,
      run: async (signal: AbortSignal) => {
        const load = { processes: 8, kills: 100, everyMs: 1_300, perSecond: 500, credits: 400_000 };
        return exactness(await storm({ centre, ...load }, signal));
      },
    },
    {
      name: `suspended-${centre}`,
      run: async (signal: AbortSignal) => resumed(await suspend(centre, STILL_MS, signal)),
    },
    {
      name: `plan-change-${centre}`,
      run: async (signal: AbortSignal) => followed(await changePlans(centre, 8, signal), 0.05),
    },
  ]);
  return [
    ...rates,
    ...outages,
    ...perCentre,
    {
      name: 'wiped-disks',
      run: async (signal) => {
        const load = { hosts: 4, wipes: 10, everyMs: 2_000, perSecond: 1_000, credits: 20_000 };
        return bounded(await wipe(load, signal));
      },
    },
    {
      name: 'takeovers',
      run: async (signal) => {
        const lagsMs = Array.from({ length: TAKEOVERS }, (_, i) => LAGS_MS[i % LAGS_MS.length] ?? 0);
        const load = { processes: 4, lagsMs, perSecond: 200, credits: 45_000 };
        return conserved(await takeovers(load, signal));
      },
    },
    { name: 'hanging-backend', run: async (signal) => unnoticed(await hanging(signal)) },
    { name: 'lost-replies', run: async (signal) => declared(await cutReplies(1_000, signal)) },
    {
      name: 'flood',
      run: async (signal) => {
        const seen = await flood(50_000, seconds, signal);
        return [...cheapness(seen), ...fairness(seen, 0.1)];
      },
    },
    { name: 'blocked-log', run: async (signal) => unmoved(await blockLog(seconds, signal)) },
    { name: 'hanging-receivers', run: async (signal) => punctuality(await hangingReceivers(signal)) },
    { name: 'starving', run: async (signal) => isolation(await starve(seconds, signal)) },
  ];
}
