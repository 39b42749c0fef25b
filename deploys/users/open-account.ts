import { type Accounts } from '../accounts/accounts.ts';
import type { OpenAccount } from './sign-up.ts';

/** What a new customer begins on. */
const PLAN = 'trial';

/** Accounts for those who sign up by themselves. */
export function createOpenAccount({ create }: Pick<Accounts, 'create'>): OpenAccount {
  return function openAccount(name, userId) {
    const result = create(name, PLAN, { kind: 'user', userId });
    switch (result.kind) {
      case 'account':
        return result.account;
      case 'bad-name':
        return 'An account name is 1 to 64 printable characters.';
      case 'name-taken':
      case 'reserved-name':
        return 'An account of this name exists already; choose another name.';
      default:
        throw new Error(`an account on plan ${PLAN} could not be made: ${result.kind}`);
    }
  };
}
