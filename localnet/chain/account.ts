import type { Address } from '@solana/kit';

/** An account as the chain holds it. `lamports` and `rentEpoch` are u64; `data` is never changed in place. */
export type AccountState = Readonly<{
  lamports: bigint;
  data: Uint8Array;
  owner: Address;
  executable: boolean;
  rentEpoch: bigint;
}>;

/** The rent epoch of every rent-exempt account: u64::MAX. */
export const RENT_EXEMPT_EPOCH = 18446744073709551615n;

/** Whether nothing that an observer could read differs. `undefined` is an account that does not exist. */
export function isSameAccount(one: AccountState | undefined, other: AccountState | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return (
    one.lamports === other.lamports &&
    one.owner === other.owner &&
    one.executable === other.executable &&
    one.rentEpoch === other.rentEpoch &&
    Buffer.compare(one.data, other.data) === 0
  );
}
