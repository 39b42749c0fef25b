import type { Chain } from '../chain/chain.ts';
import type { Commitment } from '../chain/slots.ts';
import type { View } from '../chain/accounts.ts';
import type { Json, JsonObject } from '../json/value.ts';
import { invalidParams, RpcFailure } from './failure.ts';
import { readOptionalU64 } from './params.ts';

/** The commitment of a configuration: finalized when absent, and when misspelt, because Agave flattens it. */
export function readCommitment(config: JsonObject): Commitment {
  return commitmentNamed(config.commitment) ?? 'finalized';
}

/** As `readCommitment`, for the history methods, which know nothing of the slot in progress. */
export function readHistoryCommitment(config: JsonObject): Commitment {
  const commitment = readCommitment(config);
  if (commitment === 'processed') throw invalidParams('Method does not support commitment below `confirmed`');
  return commitment;
}

function commitmentNamed(value: Json | undefined): Commitment | undefined {
  return value === 'processed' || value === 'confirmed' || value === 'finalized' ? value : undefined;
}

/** The slot of a commitment's bank; -32016 while it is below the configuration's minContextSlot. */
export function readBankSlot(chain: Chain, config: JsonObject): bigint {
  const slot = chain.slotAt(readCommitment(config));
  requireContextSlot(slot, config);
  return slot;
}

/** The state at a commitment; -32016 as above. */
export function readView(chain: Chain, config: JsonObject): View {
  const view = chain.viewAt(readCommitment(config));
  requireContextSlot(view.slot, config);
  return view;
}

/** -32016 with the context slot, when a bank is older than asked for. */
export function requireContextSlot(slot: bigint, config: JsonObject): void {
  const minimum = readOptionalU64(config.minContextSlot);
  if (minimum === undefined || slot >= minimum) return;
  throw new RpcFailure(-32016, 'Minimum context slot has not been reached', { contextSlot: slot });
}
