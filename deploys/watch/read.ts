import { type Address, isAddress, type Slot } from '@solana/kit';
import { unreachable } from '../../shared/brand.ts';
import {
  deploySlotOf,
  type DeploySlots,
  implausibleIn,
  type ProgramState,
  type Reading,
  shrunkIn,
} from './change.ts';
import {
  type AccountHead,
  type Accounts,
  accountsFrom,
  decodeProgram,
  decodeProgramData,
  PROGRAM_DATA_HEAD_BYTES,
  PROGRAM_HEAD_BYTES,
} from './decode.ts';
import type { Call, RpcBackend } from './rpc.ts';

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

/** How one reading of one backend ended. */
type ReadOutcome =
  | { readonly kind: 'read'; readonly reading: Reading }
  /** The backend has not reached the slot of the reading before. */
  | { readonly kind: 'behind' }
  | { readonly kind: 'failed'; readonly reason: string };

type NotRead = Exclude<ReadOutcome, { kind: 'read' }>;
type Heads = { readonly kind: 'heads' } & Readonly<{
  first: Slot;
  last: Slot;
  accounts: readonly (AccountHead | undefined)[];
}>;

type Look = Extract<ReadOutcome, { kind: 'read' }> & Readonly<{ spansSlots: boolean }>;

/** Addresses that a `getMultipleAccounts` call may name. */
const ADDRESSES_MAX = 100;
/** Tries to get the whole reading from one slot. */
const TRIES_MAX = 3;
/** MinContextSlotNotReached. */
const BEHIND_CODE = -32016;

/**
 * Reads every program of `addresses` from one backend at `finalized`, not older than `floor`. Never rejects.
 *
 * Why one backend: its slots are one history, so a reading is never put together from two. Why `minContextSlot`:
 * each call is told the slot of the one before, so a ProgramData account is never older than the program that
 * names it, also when the backend is a balancer in front of many nodes. When a slot passes between two calls the
 * reading is done again, at most three times; one that spans slots is kept in the end, because those orders hold.
 */
export async function readPrograms(
  call: Call,
  addresses: readonly Address[],
  floor: Slot | undefined,
  signal: AbortSignal,
): Promise<ReadOutcome> {
  let kept: Extract<ReadOutcome, { kind: 'read' }> | undefined;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const look = await lookOnce(call, addresses, kept?.reading.contextSlot ?? floor, signal);
    if (look.kind !== 'read') return kept ?? look;
    kept = { kind: 'read', reading: look.reading };
    if (!look.spansSlots) break;
  }
  return kept ?? { kind: 'failed', reason: 'was not asked' };
}

async function lookOnce(
  call: Call,
  addresses: readonly Address[],
  floor: Slot | undefined,
  signal: AbortSignal,
): Promise<Look | NotRead> {
  const programs = await readHeads(call, addresses, PROGRAM_HEAD_BYTES, floor, signal);
  if (programs.kind !== 'heads') return programs;
  const decoded = programs.accounts.map(decodeProgram);
  const pointers = decoded.flatMap((account) =>
    account.kind === 'program-data-at' ? [account.address] : [],
  );
  const datas = await readHeads(call, pointers, PROGRAM_DATA_HEAD_BYTES, programs.last, signal);
  if (datas.kind !== 'heads') return datas;
  const states = joined(decoded, datas.accounts);
  if (!Array.isArray(states)) return states;
  const outcome = readingFrom(addresses, states, datas.last);
  return outcome.kind === 'read' ? { ...outcome, spansSlots: datas.last !== programs.first } : outcome;
}

/** The heads of accounts, by the hundred and in order; each call at least as new as the one before. */
async function readHeads(
  call: Call,
  addresses: readonly Address[],
  length: number,
  floor: Slot | undefined,
  signal: AbortSignal,
): Promise<Heads | NotRead> {
  const accounts: (AccountHead | undefined)[] = [];
  let [first, last] = [undefined as Slot | undefined, floor]; // the tuple's literal type would be undefined alone
  for (let i = 0; i < addresses.length; i += ADDRESSES_MAX) {
    const asked = addresses.slice(i, i + ADDRESSES_MAX);
    const answer = await readHundred(call, asked, length, last, signal);
    if (!('accounts' in answer)) return answer;
    accounts.push(...answer.accounts);
    first ??= answer.contextSlot;
    last = answer.contextSlot;
  }
  return { kind: 'heads', first: first ?? last ?? 0n, last: last ?? 0n, accounts };
}

async function readHundred(
  call: Call,
  addresses: readonly Address[],
  length: number,
  floor: Slot | undefined,
  signal: AbortSignal,
): Promise<Accounts | NotRead> {
  const options = {
    commitment: 'finalized',
    encoding: 'base64',
    dataSlice: { offset: 0, length },
    ...(floor === undefined ? {} : { minContextSlot: Number(floor) }),
  };
  const outcome = await call('getMultipleAccounts', [addresses, options], signal);
  switch (outcome.kind) {
    case 'failed':
      return { kind: 'failed', reason: outcome.reason };
    case 'error':
      if (outcome.code === BEHIND_CODE) return { kind: 'behind' };
      return { kind: 'failed', reason: `answered JSON-RPC error ${outcome.code}` };
    case 'result': {
      const accounts = accountsFrom(outcome.result, addresses.length);
      if (accounts === undefined)
        return { kind: 'failed', reason: 'answered accounts that were not asked for' };
      // Not every backend knows `minContextSlot`, so what it promises is looked at.
      return floor !== undefined && accounts.contextSlot < floor ? { kind: 'behind' } : accounts;
    }
    default:
      return unreachable(outcome);
  }
}

/** The states in the order of the programs; `datas` are of those that point to one, in the same order. */
function joined(
  decoded: readonly ReturnType<typeof decodeProgram>[],
  datas: readonly (AccountHead | undefined)[],
): ProgramState[] | NotRead {
  const states: ProgramState[] = [];
  let next = 0;
  for (const account of decoded) {
    if (account.kind === 'malformed') return { kind: 'failed', reason: `answered ${account.reason}` };
    const state = account.kind === 'decided' ? account.state : decodeProgramData(datas[next++]);
    if ('kind' in state) return { kind: 'failed', reason: `answered ${state.reason}` };
    states.push(state);
  }
  return states;
}

function readingFrom(
  addresses: readonly Address[],
  states: readonly ProgramState[],
  contextSlot: Slot,
): ReadOutcome {
  const programs = new Map<Address, ProgramState>();
  for (const [i, address] of addresses.entries()) {
    const state = states[i];
    if (state === undefined) return { kind: 'failed', reason: 'answered fewer accounts than were asked for' };
    if ((deploySlotOf(state) ?? 0n) > contextSlot)
      return { kind: 'failed', reason: `answered a deploy of ${address} from after its own slot` };
    programs.set(address, state);
  }
  return { kind: 'read', reading: { contextSlot, programs } };
}

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
