import { isAddress } from '@solana/kit';
import type { Call } from './rpc.ts';

/**
 * The genesis hash of the chain behind `call`, in base58: two chains never share one. `undefined` when the backend
 * does not tell it, which many do not and none has to. Never rejects.
 */
export async function readGenesisHash(call: Call, signal: AbortSignal): Promise<string | undefined> {
  const outcome = await call('getGenesisHash', [], signal);
  if (outcome.kind !== 'result') return undefined;
  // A hash is 32 bytes in base58, as an address is.
  return typeof outcome.result === 'string' && isAddress(outcome.result) ? outcome.result : undefined;
}
