import { DEMO } from '../../shared/keys/demo.ts';

/** The account the watcher reads as; its usage is counted like any other's. */
export const WATCHER = 'sluice-watcher';

/** The accounts that the service makes for itself. */
export type OwnAccount = typeof DEMO | typeof WATCHER;

/**
 * Whether the service knows this account by its name. Such a name stays, and so do those of its keys: a demo key that
 * had another would not be found when it must be retired.
 */
export function isReserved(account: string): account is OwnAccount {
  return account === DEMO || account === WATCHER;
}
