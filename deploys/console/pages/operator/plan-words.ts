import type { Plan } from '../../../../shared/config/plans.ts';
import { countText } from '../../components/format.tsx';

/** The form's value for an account without a plan: no plan can have this name. */
export const NO_PLAN = 'none';

/** The choices of a plan, those of the config and none; and the account's own where the config no longer has it. */
export function planOptions(plans: ReadonlyMap<string, Plan>, own?: string) {
  const options = [...plans].map(([name, plan]) => ({ value: name, label: `${name}, ${planText(plan)}` }));
  const gone = own !== undefined && !plans.has(own);
  return [
    ...options,
    { value: NO_PLAN, label: 'none, the program API alone' },
    ...(gone ? [{ value: own, label: `${own}, no longer in the config` }] : []),
  ];
}

/** `5 calls a second, 250,000 credits`. */
export function planText({ rps, credits }: Plan): string {
  const rate = `${countText(rps)} calls a second`;
  return credits === undefined ? rate : `${rate}, ${countText(credits)} credits`;
}
