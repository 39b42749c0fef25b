import { unreachable } from '../../../../shared/brand.ts';
import type { AdditionResult } from '../../../accounts/accounts.ts';
import type { FormErrors } from '../../components/forms.tsx';

type Refused = Exclude<AdditionResult, { kind: 'account' | 'added-before' }>;

/** What is wrong with a form about an account, at the field that it is about. `nameField` is where a name was typed. */
export function accountErrors(refused: Refused, nameField: string): FormErrors {
  switch (refused.kind) {
    case 'bad-credits':
      return { credits: 'Credits are a whole number of at least 1, such as 250,000.' };
    case 'bad-reason':
      return { reason: 'A reason is 1 to 200 printable characters without a space at either end.' };
    case 'bad-name':
      return { [nameField]: 'A name is 1 to 64 printable characters without a space at either end.' };
    case 'name-taken':
      return { [nameField]: 'An account of this name exists already.' };
    case 'reserved-name':
      return { [nameField]: 'The accounts demo and sluice-watcher are known by their names, which stay.' };
    case 'unknown-plan':
      return { plan: `There is no plan ${refused.plan} in the config.` };
    case 'no-credits':
      return {
        credits:
          refused.plan === undefined
            ? 'Without an RPC plan an account has no credits to add to.'
            : `Plan ${refused.plan} has no credit limit, so there is nothing to add to.`,
      };
    case 'unknown-account':
      return { form: 'The account was renamed meanwhile. Look at it again.' };
    default:
      return unreachable(refused);
  }
}

/** A number of credits as people write it, its digits grouped by commas, blanks or underscores; `NaN` for anything else. */
export function creditsFrom(text: string): number {
  return /^\d+(?:[ ,_]\d{3})*$/.test(text.trim()) ? Number(text.replaceAll(/[ ,_]/g, '')) : Number.NaN;
}
