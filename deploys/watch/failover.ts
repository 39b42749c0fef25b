import type { Address } from '@solana/kit';
import { type DeploySlots, shrunkIn } from './change.ts';
import { readGenesisHash } from './genesis.ts';
import { implausibleIn } from './plausible.ts';
import type { Reading } from './program-state.ts';
import { readPrograms, type ReadOutcome } from './read.ts';
import type { RpcBackend } from './rpc.ts';

/**
 * The last reading of this run, which a new one must not go behind, every deploy slot seen in the run, and the chain
 * it is of once a backend told.
 */
export type Floor = Reading & Readonly<{ deploySlots: DeploySlots; genesisHash: string | undefined }>;

/** How a reading over all backends ended. `reasons` has a sentence for each backend that gave none. */
export type ReadingOutcome =
  | {
      readonly kind: 'read';
      readonly reading: Reading;
      readonly reasons: readonly string[];
      /** Of the backend that was read; `undefined` when it does not tell. */
      readonly genesisHash: string | undefined;
    }
  /** Every backend is of one and the same other chain than the reading before; `reading` is its first. */
  | {
      readonly kind: 'other-chain';
      readonly reading: Reading;
      readonly reasons: readonly string[];
      readonly genesisHash: string;
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
    const strangers: string[] = [];
    let odd: ReadingOutcome | undefined;
    let behind = 0;
    for (const { name, call } of backends) {
      if (signal.aborted) break;
      const outcome = judged(await readPrograms(call, addresses, floor?.contextSlot, signal), floor);
      const genesisHash = outcome.kind === 'failed' ? undefined : await readGenesisHash(call, signal);
      if (isOther(floor?.genesisHash, genesisHash)) {
        strangers.push(genesisHash);
        reasons.push(`${name} is of another chain than the reading before`);
        continue;
      }
      if (outcome.kind === 'read') return { kind: 'read', reading: outcome.reading, reasons, genesisHash };
      reasons.push(`${name} ${outcome.reason}`);
      if (outcome.kind === 'odd') odd ??= { kind: 'read', reading: outcome.reading, reasons, genesisHash };
      if (outcome.kind === 'implausible') doubted.push(outcome.reading);
      if (outcome.kind === 'behind') behind++;
    }
    if (odd !== undefined) return odd;
    if (strangers.length === backends.length) return readAnew(strangers, reasons, signal);
    const [first] = doubted;
    if (first !== undefined && doubted.length === backends.length)
      return { kind: 'implausible', reading: first, reasons };
    return behind > 0 && behind === reasons.length
      ? { kind: 'behind', reasons }
      : { kind: 'failed', reasons };
  };

  /** One backend of another chain is misplaced; when all are, the chain was begun anew. */
  async function readAnew(
    genesisHashes: readonly string[],
    reasons: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadingOutcome> {
    const [[genesisHash], [backend]] = [genesisHashes, backends];
    if (genesisHash === undefined || backend === undefined) return { kind: 'failed', reasons };
    if (genesisHashes.some((hash) => hash !== genesisHash)) return { kind: 'failed', reasons };
    // What was read before was asked for under the old chain's slots.
    const outcome = await readPrograms(backend.call, addresses, undefined, signal);
    return outcome.kind === 'read'
      ? { kind: 'other-chain', reading: outcome.reading, reasons, genesisHash }
      : { kind: 'failed', reasons };
  }
}

/** Nothing is said against a backend that does not tell. */
function isOther(before: string | undefined, told: string | undefined): told is string {
  return before !== undefined && told !== undefined && told !== before;
}

/** One backend's reading against the one before. */
type Judged =
  | { readonly kind: 'read'; readonly reading: Reading }
  | { readonly kind: 'implausible' | 'odd'; readonly reading: Reading; readonly reason: string }
  | { readonly kind: 'behind' | 'failed'; readonly reason: string };

function judged(outcome: ReadOutcome, floor: Floor | undefined): Judged {
  if (outcome.kind === 'behind') return { kind: 'behind', reason: 'is behind the reading before' };
  if (outcome.kind === 'failed' || floor === undefined) return outcome;
  const { reading } = outcome;
  const gone = implausibleIn(floor.programs, reading);
  if (gone !== undefined) {
    const reason = `shows ${gone.vanished} of ${gone.present} programs gone at once`;
    return { kind: 'implausible', reading, reason };
  }
  const shrunk = shrunkIn(floor.programs, reading);
  if (shrunk === undefined) return outcome;
  const reason = `shows an older deploy of ${shrunk} than the reading before`;
  // A program of loader v4 that is retracted may fall to slot 0: while the chain goes on, that is its own matter. Another
  // backend is asked all the same, because a node that is behind may look like this too.
  return reading.contextSlot > floor.contextSlot
    ? { kind: 'odd', reading, reason }
    : { kind: 'behind', reason };
}
