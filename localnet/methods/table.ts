import type { Method } from '../rpc/method.ts';
import { ACCOUNT_METHODS } from './account.ts';
import { BLOCK_METHODS } from './block.ts';
import { CLUSTER_METHODS } from './cluster.ts';
import { FEE_METHODS } from './fee.ts';
import { HISTORY_METHODS } from './history.ts';
import { PROGRAM_ACCOUNTS_METHODS } from './program-accounts.ts';
import { SEND_METHODS } from './send.ts';
import { SIMULATE_METHODS } from './simulate.ts';
import { SLOT_METHODS } from './slot.ts';
import { TOKEN_METHODS } from './token.ts';

/** Every method by name. What is not here is -32601. */
export const METHODS: ReadonlyMap<string, Method> = new Map(
  Object.entries({
    ...CLUSTER_METHODS,
    ...SLOT_METHODS,
    ...ACCOUNT_METHODS,
    ...PROGRAM_ACCOUNTS_METHODS,
    ...TOKEN_METHODS,
    ...SEND_METHODS,
    ...SIMULATE_METHODS,
    ...HISTORY_METHODS,
    ...BLOCK_METHODS,
    ...FEE_METHODS,
  }),
);
