import { type Address, isAddress, type Slot } from '@solana/kit';
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
  accountsFrom,
  decodeProgram,
  decodeProgramData,
  PROGRAM_DATA_HEAD_BYTES,
  PROGRAM_HEAD_BYTES,
} from './decode.ts';
import type { Call, RpcBackend } from './rpc.ts';

/** The last reading of this run, which a new one must not be older than, with every deploy slot seen in the run. */
export type Floor = Reading & Readonly<{ deploySlots: DeploySlots; genesisHash: string | undefined }>;

/** How a reading over all backends ended. `reasons` says of each backend that gave none why. */
export type ReadingOutcome = Readonly<{ reasons: readonly string[] }> &
  /** `genesisHash` is that of the backend that was read; `undefined` when it does not answer the method. */
  (
    | Readonly<{ kind: 'read'; reading: Reading; genesisHash: string | undefined }>
    /** Every backend is on one and the same chain, another than the previous reading's; `reading` is its first. */
    | Readonly<{ kind: 'other-chain'; reading: Reading; genesisHash: string }>
    /** Every backend reports most programs missing at once; `reading` is the first one's. */
    | Readonly<{ kind: 'implausible'; reading: Reading }>
    /** `behind`: every backend that answered is older than the previous reading, or contradicts it. */
    | Readonly<{ kind: 'behind' | 'failed' }>
  );

/** Reads all watched programs; `floor` is `undefined` when nothing was read in this run. Never rejects. */
export type ReadPrograms = (floor: Floor | undefined, signal: AbortSignal) => Promise<ReadingOutcome>;

/** Reads from the first of `backends` that can give a reading, in their order, anew each time. */
export function createRead(backends: readonly RpcBackend[], addresses: readonly Address[]): ReadPrograms {
  return async function read(floor, signal) {
    const reasons: string[] = [];
    const doubted: Reading[] = [];
    const strangers: { call: Call; genesisHash: string }[] = [];
    let odd: ReadingOutcome | undefined;
    let behind = 0;
    for (const { name, call } of backends) {
      if (signal.aborted) break;
      const outcome = judged(await readPrograms(call, addresses, floor?.contextSlot, signal), floor);
      const genesisHash = outcome.kind === 'failed' ? undefined : await readGenesisHash(call, signal);
      if (isOther(floor?.genesisHash, genesisHash)) {
        strangers.push({ call, genesisHash });
        reasons.push(`${name} is on a different chain than the previous reading`);
        continue;
      }
      if (outcome.kind === 'read') return { kind: 'read', reading: outcome.reading, reasons, genesisHash };
      reasons.push(`${name} ${outcome.reason}`);
      if (outcome.kind === 'odd') odd ??= { kind: 'read', reading: outcome.reading, reasons, genesisHash };
      if (outcome.kind === 'implausible') doubted.push(outcome.reading);
      if (outcome.kind === 'behind') behind++;
    }
    if (odd !== undefined) return odd;
    const [stranger] = strangers;
    const same = strangers.filter(({ genesisHash }) => genesisHash === stranger?.genesisHash);
    // A single backend on another chain is misconfigured; when all are on the same one, the chain was reset.
    if (stranger !== undefined && same.length === backends.length) {
      // The readings above were requested with slots of the old chain.
      const { call, genesisHash } = stranger;
      const outcome = await readPrograms(call, addresses, undefined, signal);
      if (outcome.kind === 'read')
        return { kind: 'other-chain', reading: outcome.reading, reasons, genesisHash };
    }
    const [first] = doubted;
    if (first !== undefined && doubted.length === backends.length)
      return { kind: 'implausible', reading: first, reasons };
    return behind > 0 && behind === reasons.length
      ? { kind: 'behind', reasons }
      : { kind: 'failed', reasons };
  };
}

/** A backend that does not tell its chain is trusted. */
function isOther(before: string | undefined, now: string | undefined): now is string {
  return before !== undefined && now !== undefined && now !== before;
}

type Judged = OneReading | Readonly<{ kind: 'implausible' | 'odd'; reading: Reading; reason: string }>;

function judged(outcome: OneReading, floor: Floor | undefined): Judged {
  if (outcome.kind !== 'read' || floor === undefined) return outcome;
  const { reading } = outcome;
  const gone = implausibleIn(floor.programs, reading);
  if (gone !== undefined) {
    const reason = `reports ${gone.vanished} of ${gone.present} programs missing at once`;
    return { kind: 'implausible', reading, reason };
  }
  const shrunk = shrunkIn(floor.programs, reading);
  if (shrunk === undefined) return outcome;
  const reason = `reports an older deploy of ${shrunk} than the previous reading`;
  // A retracted program of loader v4 may fall to slot 0, which is valid while the chain goes on. The next backend is tried
  // all the same, because a node that is behind looks the same.
  return reading.contextSlot > floor.contextSlot
    ? { kind: 'odd', reading, reason }
    : { kind: 'behind', reason };
}

/** How one reading of one backend ended; `behind` when it has not reached the slot of the previous reading. */
type OneReading = Readonly<{ kind: 'read'; reading: Reading }> | NotRead;
type NotRead = Readonly<{ kind: 'behind' | 'failed'; reason: string }>;
const BEHIND: NotRead = { kind: 'behind', reason: 'is behind the previous reading' };

/** Addresses that a `getMultipleAccounts` call may name. */
const ADDRESSES_MAX = 100;
/** Tries to get the whole reading from one slot. */
const TRIES_MAX = 3;
/** MinContextSlotNotReached. */
const BEHIND_CODE = -32016;

/**
 * Reads every program of `addresses` from one backend at `finalized`, not older than `floor`. Never rejects.
 *
 * Why one backend: its slots are one history, so a reading is never put together from two. Why `minContextSlot`: each
 * call passes the slot of the one before, so a ProgramData account is never older than the program that names it, even
 * behind a load balancer. A reading that spans slots is repeated, and accepted the third time, because that order holds.
 */
async function readPrograms(
  call: Call,
  addresses: readonly Address[],
  floor: Slot | undefined,
  signal: AbortSignal,
): Promise<OneReading> {
  let kept: OneReading | undefined;
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const minSlot = kept?.kind === 'read' ? kept.reading.contextSlot : floor;
    const programs = await readHeads(call, addresses, PROGRAM_HEAD_BYTES, minSlot, signal);
    if (programs.kind !== 'heads') return kept ?? programs;
    const decoded = new Map(addresses.map((address, i) => [address, decodeProgram(programs.accounts[i])]));
    const pointers = [...decoded.values()].flatMap((one) =>
      one.kind === 'program-data-at' ? [one.address] : [],
    );
    const datas = await readHeads(call, pointers, PROGRAM_DATA_HEAD_BYTES, programs.last, signal);
    if (datas.kind !== 'heads') return kept ?? datas;
    const outcome = readingFrom(decoded, datas);
    if (outcome.kind !== 'read') return kept ?? outcome;
    kept = outcome;
    if (datas.last === programs.first) break;
  }
  return kept ?? failed('was not called');
}

/** Accounts with the slots of the first and the last call that gave them. */
type Heads = Readonly<{ kind: 'heads'; first: Slot; last: Slot; accounts: readonly (AccountHead | null)[] }>;

/** The heads of accounts, by the hundred and in order; each call at least as new as the one before. */
async function readHeads(
  call: Call,
  addresses: readonly Address[],
  length: number,
  floor: Slot | undefined,
  signal: AbortSignal,
): Promise<Heads | NotRead> {
  const accounts: (AccountHead | null)[] = [];
  let first: Slot | undefined;
  let last = floor;
  for (let i = 0; i < addresses.length; i += ADDRESSES_MAX) {
    const asked = addresses.slice(i, i + ADDRESSES_MAX);
    const options = {
      commitment: 'finalized',
      encoding: 'base64',
      dataSlice: { offset: 0, length },
      ...(last === undefined ? {} : { minContextSlot: Number(last) }),
    };
    const outcome = await call('getMultipleAccounts', [asked, options], signal);
    if (outcome.kind === 'failed') return failed(outcome.reason);
    if (outcome.kind === 'error')
      return outcome.code === BEHIND_CODE ? BEHIND : failed(`returned JSON-RPC error ${outcome.code}`);
    const answer = accountsFrom(outcome.result, asked.length);
    if (answer === undefined) return failed('returned other accounts than requested');
    // Not every backend supports `minContextSlot`.
    if (last !== undefined && answer.contextSlot < last) return BEHIND;
    accounts.push(...answer.accounts);
    first ??= answer.contextSlot;
    last = answer.contextSlot;
  }
  return { kind: 'heads', first: first ?? last ?? 0n, last: last ?? 0n, accounts };
}

/** `datas` are of those programs that point to one, in the same order. */
function readingFrom(
  decoded: ReadonlyMap<Address, ReturnType<typeof decodeProgram>>,
  { last: contextSlot, accounts: datas }: Heads,
): OneReading {
  const programs = new Map<Address, ProgramState>();
  let next = 0;
  for (const [address, account] of decoded) {
    const state = account.kind === 'program-data-at' ? decodeProgramData(datas[next++]) : account;
    if (state.kind === 'malformed') return failed(`returned ${state.reason}`);
    if ((deploySlotOf(state.state) ?? 0n) > contextSlot)
      return failed(`returned a deploy of ${address} newer than its own slot`);
    programs.set(address, state.state);
  }
  return { kind: 'read', reading: { contextSlot, programs } };
}

function failed(reason: string): NotRead {
  return { kind: 'failed', reason };
}

/** The genesis hash of the backend's chain, in base58; `undefined` when it does not answer the method, as many. Never rejects. */
async function readGenesisHash(call: Call, signal: AbortSignal): Promise<string | undefined> {
  const outcome = await call('getGenesisHash', [], signal);
  if (outcome.kind !== 'result') return undefined;
  // A hash is 32 bytes in base58, as an address is.
  return typeof outcome.result === 'string' && isAddress(outcome.result) ? outcome.result : undefined;
}
