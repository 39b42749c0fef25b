import { float, type Json } from '../json/value.ts';

/** A token amount in Agave's form: exact text, decimals, and a float for people. */
export function encodeTokenAmount(amount: bigint, decimals: number): Json {
  return {
    amount: amount.toString(),
    decimals,
    // The divisor is a u64 in Agave; beyond it there is no float.
    uiAmount: decimals > 19 ? null : float(Number(amount) / 10 ** decimals),
    uiAmountString: decimalText(amount, decimals),
  };
}

/** An amount with its decimal point, without trailing zeros. */
export function decimalText(amount: bigint, decimals: number): string {
  if (decimals === 0) return amount.toString();
  const digits = amount.toString().padStart(decimals + 1, '0');
  return `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`.replace(/0+$/, '').replace(/\.$/, '');
}
