import { type Address, isAddress, type Slot } from '@solana/kit';
import type { AccountHead } from './decode.ts';

/** What `getMultipleAccounts` answered: one entry per address asked for, in that order. */
export type Accounts = Readonly<{ contextSlot: Slot; accounts: readonly (AccountHead | undefined)[] }>;

/** Reads a `getMultipleAccounts` result with base64 data; `undefined` when it is not one of `count` accounts. */
export function accountsFrom(result: unknown, count: number): Accounts | undefined {
  if (!isObject(result) || !isObject(result['context']) || !Array.isArray(result['value'])) return undefined;
  const slot = result['context']['slot'];
  if (!isCount(slot) || result['value'].length !== count) return undefined;
  const accounts: (AccountHead | undefined)[] = [];
  for (const value of result['value']) {
    if (value === null) {
      accounts.push(undefined);
      continue;
    }
    const account = accountFrom(value);
    if (account === undefined) return undefined;
    accounts.push(account);
  }
  return { contextSlot: BigInt(slot), accounts };
}

function accountFrom(value: unknown): AccountHead | undefined {
  if (!isObject(value)) return undefined;
  const { owner, data, space } = value;
  if (typeof owner !== 'string' || !isAddress(owner)) return undefined;
  if (!Array.isArray(data) || data[1] !== 'base64' || typeof data[0] !== 'string') return undefined;
  const bytes = bytesFrom(data[0]);
  if (bytes === undefined) return undefined;
  return { owner: owner satisfies Address, data: bytes, space: isCount(space) ? space : undefined };
}

/** `Buffer` skips what is not base64, which would shift every byte behind it. */
function bytesFrom(base64: string): Uint8Array | undefined {
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
