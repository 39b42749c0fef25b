import type { Address, Slot } from '@solana/kit';
import { unreachable } from '../../shared/brand.ts';
import { type Accounts, accountsFrom } from './accounts.ts';
import {
  decodeProgram,
  decodeProgramData,
  PROGRAM_DATA_HEAD_BYTES,
  PROGRAM_HEAD_BYTES,
  type AccountHead,
} from './decode.ts';
import { deploySlotOf, type ProgramState, type Reading } from './program-state.ts';
import type { Call } from './rpc.ts';

/** How one reading of one backend ended. */
export type ReadOutcome =
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
