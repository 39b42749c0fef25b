import type { Address } from '@solana/kit';
import type { AccountState } from './account.ts';
import type { TokenBalance } from './record.ts';
import { mintOf, tokenAccountOf } from './token-state.ts';

type Read = (address: Address) => AccountState | undefined;

/** Lamports and token balances of all account keys at one time. */
export type Balances = Readonly<{ lamports: readonly bigint[]; tokens: readonly TokenBalance[] }>;

/** Reads the balances of `keys`. Token balances exist for initialized token accounts whose mint exists. */
export function balancesOf(keys: readonly Address[], account: Read): Balances {
  const lamports: bigint[] = [];
  const tokens: TokenBalance[] = [];
  keys.forEach((key, index) => {
    const state = account(key);
    lamports.push(state?.lamports ?? 0n);
    const token = state === undefined ? undefined : tokenAccountOf(state);
    if (state === undefined || token === undefined) return;
    const mintState = account(token.mint);
    const mint = mintState === undefined ? undefined : mintOf(mintState);
    if (mint === undefined) return;
    tokens.push({
      accountIndex: BigInt(index),
      mint: token.mint,
      owner: token.owner,
      programId: state.owner,
      amount: token.amount,
      decimals: BigInt(mint.decimals),
    });
  });
  return { lamports, tokens };
}
