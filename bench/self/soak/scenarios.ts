import type { Finding } from '../finding.ts';
import { CENTRES, type Form } from '../subject.ts';
import { drained, HANGING, punctuality } from '../webhook-world.ts';
import { flood } from './flood.ts';
import { hanging } from './hanging.ts';
import { storm } from './kills.ts';
import { OUTAGES, outage } from './outage.ts';
import { changePlans } from './plan-change.ts';
import { rate } from './rate.ts';
import { starve } from './starving.ts';
import { suspended } from './suspended.ts';
import { takeovers } from './takeovers.ts';
import { wipe } from './wiped.ts';

/** One load with faults, on real processes and sockets. It puts away what it started. */
type Scenario = Readonly<{ name: string; run(signal: AbortSignal): Promise<readonly Finding[]> }>;

const RATES = [5, 100, 1_000];

/** All scenarios, in the order of `test/faults/README.md`; `seconds` is the length of a load that has no other. */
export function scenarios(seconds: number, isShort: boolean): readonly Scenario[] {
  const perCentre = (
    name: string,
    run: (form: Form, signal: AbortSignal) => Promise<readonly Finding[]>,
  ): readonly Scenario[] =>
    CENTRES.map((centre) => ({
      name: `${name}-${centre}`,
      run: (signal) => run({ centre, isShort }, signal),
    }));
  const flooding = isShort
    ? { perSecond: 20_000, seconds, unfairness: 0.6 }
    : { perSecond: 50_000, seconds, unfairness: 0.1 };
  return [
    ...RATES.flatMap((rps) =>
      perCentre(`rate-${rps}`, ({ centre }, signal) => rate({ centre, rps, seconds }, signal)),
    ),
    ...OUTAGES.map((kind) => ({
      name: `outage-${kind}`,
      run: (signal: AbortSignal) => outage(kind, { isShort }, signal),
    })),
    ...perCentre('kills', storm),
    ...perCentre('suspended', suspended),
    ...perCentre('plan-change', changePlans),
    { name: 'wiped-disks', run: wipe },
    { name: 'takeovers', run: takeovers },
    { name: 'hanging-backend', run: hanging },
    { name: 'flood', run: (signal) => flood(flooding, signal) },
    { name: 'hanging-receivers', run: async (signal) => punctuality(await drained(HANGING, signal)) },
    { name: 'starving', run: (signal) => starve(seconds, signal) },
  ];
}
