import type { Address } from '@solana/kit';
import { type DeploySlots, shrunkIn } from './change.ts';
import { readGenesisHash } from './genesis.ts';
import { implausibleIn } from './plausible.ts';
import type { Reading } from './program-state.ts';
import { readPrograms, type ReadOutcome } from './read.ts';
import type { RpcBackend } from './rpc.ts';

/** The last reading of this run, which a new one must not go behind, and every deploy slot seen in it. */
export type Floor = Reading & Readonly<{ deploySlots: DeploySlots }>;

/** How a reading over all backends ended. `reasons` has a sentence for each backend that gave none. */
export type ReadingOutcome =
  | {
      readonly kind: 'read';
      readonly reading: Reading;
      readonly reasons: readonly string[];
      /** Of the backend that was read; asked only without a floor, and `undefined` when it does not tell. */
      readonly genesisHash: string | undefined;
    }
  /** Every backend says that most programs are gone at once; `reading` is the first one's. */
  | { readonly kind: 'implausible'; readonly reading: Reading; readonly reasons: readonly string[] }
  /** Every backend that answered is older than the reading before, or contradicts it. */
  | { readonly kind: 'behind'; readonly reasons: readonly string[] }
  | { readonly kind: 'failed'; readonly reasons: readonly string[] };

/** Reads all watched programs; `floor` is `undefined` when nothing was read in this run. Never rejects. */
export type Read = (floor: Floor | undefined, signal: AbortSignal) => Promise<ReadingOutcome>;

/** Reads from the first of `backends` that can give a reading, in their order, anew each time. */
export function createRead(backends: readonly RpcBackend[], addresses: readonly Address[]): Read {
  return async function read(floor, signal) {
    const reasons: string[] = [];
    const doubted: Reading[] = [];
    let behind = 0;
    for (const { name, call } of backends) {
      if (signal.aborted) break;
      const outcome = judged(await readPrograms(call, addresses, floor?.contextSlot, signal), floor);
      if (outcome.kind === 'read') {
        const genesisHash = floor === undefined ? await readGenesisHash(call, signal) : undefined;
        return { kind: 'read', reading: outcome.reading, reasons, genesisHash };
      }
      reasons.push(`${name} ${outcome.reason}`);
      if (outcome.kind === 'implausible') doubted.push(outcome.reading);
      if (outcome.kind === 'behind') behind++;
    }
    const [first] = doubted;
    if (first !== undefined && doubted.length === backends.length)
      return { kind: 'implausible', reading: first, reasons };
    return behind > 0 && behind === reasons.length
      ? { kind: 'behind', reasons }
      : { kind: 'failed', reasons };
  };
}

/** One backend's reading against the one before. */
type Judged =
  | { readonly kind: 'read'; readonly reading: Reading }
  | { readonly kind: 'implausible'; readonly reading: Reading; readonly reason: string }
  | { readonly kind: 'behind' | 'failed'; readonly reason: string };

function judged(outcome: ReadOutcome, floor: Floor | undefined): Judged {
  if (outcome.kind === 'behind') return { kind: 'behind', reason: 'is behind the reading before' };
  if (outcome.kind === 'failed' || floor === undefined) return outcome;
  const { reading } = outcome;
  const shrunk = shrunkIn(floor.deploySlots, reading);
  if (shrunk !== undefined)
    return { kind: 'behind', reason: `shows an older deploy of ${shrunk} than the reading before` };
  const gone = implausibleIn(floor.programs, reading);
  if (gone === undefined) return outcome;
  const reason = `shows ${gone.vanished} of ${gone.present} programs gone at once`;
  return { kind: 'implausible', reading, reason };
}
