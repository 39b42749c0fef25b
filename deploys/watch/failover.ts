import type { Address, Slot } from '@solana/kit';
import { type DeploySlots, shrunkIn } from './change.ts';
import type { Reading } from './program-state.ts';
import { readPrograms } from './read.ts';
import type { RpcBackend } from './rpc.ts';

/** What a new reading must not go behind. */
export type Floor = Readonly<{ contextSlot: Slot; deploySlots: DeploySlots }>;

/** How a reading over all backends ended. `reasons` has a sentence for each backend that gave none. */
export type ReadingOutcome =
  | { readonly kind: 'read'; readonly reading: Reading; readonly reasons: readonly string[] }
  /** Every backend that answered is older than the reading before, or contradicts it. */
  | { readonly kind: 'behind'; readonly reasons: readonly string[] }
  | { readonly kind: 'failed'; readonly reasons: readonly string[] };

/** Reads all watched programs; `floor` is `undefined` when nothing was read in this run. Never rejects. */
export type Read = (floor: Floor | undefined, signal: AbortSignal) => Promise<ReadingOutcome>;

/** Reads from the first of `backends` that can give a reading, in their order, anew each time. */
export function createRead(backends: readonly RpcBackend[], addresses: readonly Address[]): Read {
  return async function read(floor, signal) {
    const reasons: string[] = [];
    let behind = 0;
    for (const { name, call } of backends) {
      if (signal.aborted) break;
      const outcome = await readPrograms(call, addresses, floor?.contextSlot, signal);
      if (outcome.kind === 'failed') {
        reasons.push(`${name} ${outcome.reason}`);
        continue;
      }
      const fault = outcome.kind === 'read' ? contradiction(floor, outcome.reading) : BEHIND;
      if (outcome.kind === 'read' && fault === undefined)
        return { kind: 'read', reading: outcome.reading, reasons };
      reasons.push(`${name} ${fault}`);
      behind++;
    }
    return behind > 0 && behind === reasons.length
      ? { kind: 'behind', reasons }
      : { kind: 'failed', reasons };
  };
}

const BEHIND = 'is behind the reading before';

function contradiction(floor: Floor | undefined, reading: Reading): string | undefined {
  const shrunk = floor === undefined ? undefined : shrunkIn(floor.deploySlots, reading);
  return shrunk === undefined ? undefined : `shows an older deploy of ${shrunk} than the reading before`;
}
