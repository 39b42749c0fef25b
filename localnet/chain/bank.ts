/*
 * A transaction meets the bank: it is refused (no trace, no fee), or it runs and is kept with its block, whether it
 * succeeded or failed. Everything it did is on disk before `send` returns.
 */
import { type Address, getBase58Encoder } from '@solana/kit';
import {
  type AccountState,
  isSameAccount,
  mintOf,
  type ReadAccount,
  tokenAccountOf,
} from '../protocol/account.ts';
import { addressOf, CLOCK_SYSVAR, LOADER_V3, SLOT_HASHES_SYSVAR } from '../protocol/address.ts';
import type { TransactionErrorJson } from '../protocol/error.ts';
import { feeOf } from '../protocol/fee.ts';
import { epochOf, firstSlotOf } from '../protocol/slot.ts';
import {
  advancedNonce,
  allKeys,
  derivesNonce,
  type LoadedKeys,
  loadKeys,
  memoOf,
  nonceAccountOf,
  type Transaction,
  withBlockhash,
  writableKeysOf,
} from '../protocol/transaction.ts';
import type { Ledger, TokenBalance, TransactionMeta, TransactionRecord } from '../store/ledger.ts';
import { type AccountList, type Accounts, inWritingOrder, type View } from './accounts.ts';
import type { Slots } from './slots.ts';
import type { Simulation, Svm } from './svm.ts';

/** The result of a simulation, with the keys that its lookup tables gave. */
export type SimulationResult = Simulation &
  Readonly<{
    loaded: LoadedKeys;
    /** How far it came: its signatures were wrong, it was refused without a fee, or it paid its fee and ran. */
    stage: 'unverified' | 'refused' | 'processed';
    /** Bytes that Agave counts against the transaction's limit of loaded data; none before it was processed. */
    loadedBytes: number;
  }>;

const base58Encoder = getBase58Encoder();
// Errors of loading, after the fee payer was found good: the fee is taken and the transaction kept (SIMD-0082).
const FEE_ONLY_ERRORS: ReadonlySet<unknown> = new Set([
  'ProgramAccountNotFound',
  'InvalidProgramForExecution',
  'MaxLoadedAccountsDataSizeExceeded',
]);

const refused = (error: TransactionErrorJson) => ({ kind: 'refused', error }) as const;

/** The bank of the slot in progress. */
export function createBank(
  svm: Svm,
  accounts: Accounts,
  ledger: Ledger,
  slots: Pick<Slots, 'tip' | 'at' | 'hashes' | 'blockTimeOf' | 'isRecentAt' | 'latestBlockhash'>,
) {
  let position = 0;

  function setClock(slot: bigint): void {
    svm.setTime(slot, slots.blockTimeOf(slot), slots.blockTimeOf(firstSlotOf(epochOf(slot))));
  }

  function beginSlot(): void {
    accounts.openLayer(slots.tip());
    setClock(slots.tip());
    svm.setSlotHashes(slots.hashes());
    for (const sysvar of [CLOCK_SYSVAR, SLOT_HASHES_SYSVAR]) accounts.refresh(sysvar);
    // Sysvars follow from the slot and are not written down.
    accounts.takeChanged();
    accounts.forgetUntil(slots.at('finalized'));
    position = 0;
  }

  /** Runs a transaction in the slot in progress, without a preflight: it is kept in the block, or refused without a trace. */
  function send(transaction: Transaction) {
    const [slot, { account }] = [slots.tip(), accounts];
    const isFresh = slots.isRecentAt(slot, transaction.recentBlockhash);
    const nonceAddress = isFresh ? undefined : nonceAccountOf(transaction, account);
    if (!isFresh && nonceAddress === undefined) return refused('BlockhashNotFound');
    if (ledger.find(transaction.signature) !== undefined) return refused('AlreadyProcessed');
    const loaded = loadKeys(transaction, account);
    const keys = allKeys(transaction, loaded);
    const before = keys.map((key) => [key, account(key)] as const);
    const writableKeys = writableKeysOf(transaction, loaded, account);
    const pre = balancesOf(keys, account);
    const fee = feeOf(transaction);
    const execution = derivesNonce(transaction)
      ? executeNonce(transaction)
      : svm.execute(transaction.wire, true);
    const error = soundError(execution.error, transaction, account);
    if (error === undefined) for (const key of writableKeys) accounts.refresh(key);
    else if (takesFee(error, transaction, fee)) settleFailed(transaction, nonceAddress);
    else return refused(error);
    const post = balancesOf(keys, account);
    const meta: TransactionMeta = {
      error: error ?? null,
      fee,
      preBalances: pre.lamports,
      postBalances: post.lamports,
      preTokenBalances: pre.tokens,
      postTokenBalances: post.tokens,
      writableKeys,
      loadedWritable: loaded.writable,
      loadedReadonly: loaded.readonly,
      logs: execution.logs,
      unitsConsumed: execution.unitsConsumed,
      innerInstructions: execution.innerInstructions,
      returnData: execution.returnData,
      memo: memoOf(transaction),
    };
    const record = { slot, position, signature: transaction.signature, wire: transaction.wire, meta };
    keep(record, keys, before);
    position += 1;
    return { kind: 'kept', record } as const;
  }

  /** The newest blockhash of a bank, which LiteSVM takes from the transaction itself. */
  const newestHash = (slot: bigint) =>
    new Uint8Array(base58Encoder.encode(slots.latestBlockhash(slot).blockhash));

  /** Runs a transaction that derives nonces in its bank: with that one's blockhash, once its own signatures are verified. */
  function executeNonce(transaction: Transaction) {
    const verified = svm.simulate(transaction.wire, true);
    if (verified.error === 'SignatureFailure') return verified;
    return svm.execute(withBlockhash(transaction, newestHash(slots.tip())), false);
  }

  /** Whether a failed transaction paid its fee, which keeps it. Takes the fee where LiteSVM leaves it. */
  function takesFee(error: TransactionErrorJson, { staticKeys: [payer] }: Transaction, fee: bigint): boolean {
    const before = payer === undefined ? undefined : accounts.account(payer);
    if (payer === undefined || before === undefined) return false;
    if ((svm.account(payer)?.lamports ?? 0n) < before.lamports) return true;
    const lamports = before.lamports - fee;
    if (!FEE_ONLY_ERRORS.has(error) || lamports < 0n) return false;
    svm.setAccount(payer, lamports === 0n ? undefined : { ...before, lamports });
    return true;
  }

  /** A transaction that failed changed its payer alone, and the nonce that carried it. */
  function settleFailed({ staticKeys: [payer] }: Transaction, nonceAddress?: Address): void {
    if (payer !== undefined) accounts.refresh(payer);
    const nonce = nonceAddress === undefined ? undefined : accounts.account(nonceAddress);
    if (nonceAddress !== undefined && nonce !== undefined)
      accounts.set(nonceAddress, advancedNonce(nonce, newestHash(slots.tip())));
  }

  /** Writes it down; what cannot be written did not happen. */
  function keep(record: TransactionRecord, keys: readonly Address[], before: AccountList): void {
    try {
      ledger.commit(record, keys, accounts.takeChanged());
    } catch (cause) {
      accounts.setAll(before);
      accounts.takeChanged();
      throw cause;
    }
  }

  /** Runs a transaction at a view and keeps nothing; `replaceBlockhash` stands in for its own. */
  function simulate(
    view: View,
    transaction: Transaction,
    { sigVerify, replaceBlockhash }: Readonly<{ sigVerify: boolean; replaceBlockhash: string | undefined }>,
  ): SimulationResult {
    const loaded = loadKeys(transaction, view.account);
    const wire =
      replaceBlockhash === undefined
        ? transaction.wire
        : withBlockhash(transaction, new Uint8Array(base58Encoder.encode(replaceBlockhash)));
    const keys = [...allKeys(transaction, loaded), ...transaction.lookups.map(({ table }) => table)];
    const restore = rewind(view, keys);
    try {
      const own = svm.simulate(wire, sigVerify);
      const isRunAgain = own.error !== 'SignatureFailure' && derivesNonce(transaction);
      const simulation = isRunAgain
        ? svm.simulate(withBlockhash(transaction, newestHash(view.slot)), false)
        : own;
      const nothing = { ...NOTHING_RAN, loaded, loadedBytes: 0 };
      // Agave verifies the signatures before it asks anything of the bank.
      if (simulation.error === 'SignatureFailure')
        return { ...nothing, error: simulation.error, stage: 'unverified' };
      const refusal = replaceBlockhash === undefined ? ageError(view, transaction) : undefined;
      const error = refusal ?? soundError(simulation.error, transaction, view.account);
      if (error !== undefined && !isProcessed(error)) return { ...nothing, error, stage: 'refused' };
      const loadedBytes = loadedBytesOf(transaction, loaded, view.account);
      return { ...simulation, error, loaded, stage: 'processed', loadedBytes };
    } finally {
      restore();
    }
  }

  function ageError(view: View, transaction: Transaction): TransactionErrorJson | undefined {
    const { recentBlockhash, signature } = transaction;
    const isUsable =
      slots.isRecentAt(view.slot, recentBlockhash) || nonceAccountOf(transaction, view.account) !== undefined;
    if (!isUsable) return 'BlockhashNotFound';
    const record = ledger.find(signature);
    return record !== undefined && record.slot <= view.slot ? 'AlreadyProcessed' : undefined;
  }

  /** Sets accounts and the clock back to what they were at a view, until restored. Nothing else runs in between. */
  function rewind(view: View, keys: readonly Address[]): () => void {
    if (view.slot === slots.tip()) return () => {};
    const differs = (key: Address) => !isSameAccount(view.account(key), accounts.account(key));
    const differing = new Set(keys.filter(differs));
    for (const key of keys) {
      const programData = programDataOf(accounts.account(key));
      if (programData !== undefined && differs(programData)) differing.add(programData).add(key);
    }
    function write(slot: bigint, account: ReadAccount): void {
      setClock(slot);
      const states = Array.from(differing, (key) => [key, account(key)] as const);
      for (const [key, state] of inWritingOrder(states)) svm.setAccount(key, state);
    }
    write(view.slot, view.account);
    return () => write(slots.tip(), accounts.account);
  }

  return { beginSlot, send, simulate } as const;
}

const NOTHING_RAN = {
  logs: [],
  unitsConsumed: 0n,
  innerInstructions: [],
  returnData: null,
  accounts: () => new Map<Address, AccountState>(),
};

/** Whether a transaction with this error paid its fee: one that ran and failed, or whose programs could not be loaded. */
function isProcessed(error: TransactionErrorJson): boolean {
  return typeof error === 'object' || FEE_ONLY_ERRORS.has(error);
}

/** A load error as Agave reports it: a program without an account does not exist; LiteSVM calls it not executable. */
function soundError(
  error: TransactionErrorJson | undefined,
  { instructions, staticKeys }: Transaction,
  account: ReadAccount,
): TransactionErrorJson | undefined {
  if (error !== 'InvalidProgramForExecution') return error;
  const programs = instructions.flatMap(({ programIdIndex }) => staticKeys[programIdIndex] ?? []);
  return programs.every((program) => account(program)) ? error : 'ProgramAccountNotFound';
}

function programDataOf(state: AccountState | undefined): Address | undefined {
  if (state?.executable !== true || state.owner !== LOADER_V3) return undefined;
  return addressOf(state.data.subarray(4, 36));
}

const ACCOUNT_BYTES = 64;
const LOOKUP_TABLE_BYTES = 8_248;

/** Counts the bytes of loading (SIMD-0186): each account that exists with its data, each program's code once, and each table. */
function loadedBytesOf(transaction: Transaction, loaded: LoadedKeys, account: ReadAccount): number {
  const keys = allKeys(transaction, loaded);
  const code = new Set(keys.flatMap((key) => programDataOf(account(key)) ?? []));
  const counted = [...keys, ...code.difference(new Set(keys))];
  const ofTables = transaction.lookups.length * LOOKUP_TABLE_BYTES;
  return counted.map(account).reduce((sum, state) => sum + bytesOf(state), ofTables);
}

function bytesOf(state: AccountState | undefined): number {
  return state === undefined ? 0 : ACCOUNT_BYTES + state.data.length;
}

/** Lamports and token balances of `keys` at one time. Token balances exist for initialized accounts whose mint exists. */
export function balancesOf(keys: readonly Address[], account: ReadAccount) {
  const states = keys.map(account);
  const tokens = states.flatMap((state, index): TokenBalance[] => {
    const token = state === undefined ? undefined : tokenAccountOf(state);
    const mintState = token === undefined ? undefined : account(token.mint);
    const decimals = mintState === undefined ? undefined : mintOf(mintState)?.decimals;
    if (state === undefined || token === undefined || decimals === undefined) return [];
    const { mint, owner, amount } = token;
    const programId = state.owner;
    return [{ accountIndex: BigInt(index), mint, owner, programId, amount, decimals: BigInt(decimals) }];
  });
  return { lamports: states.map((state) => state?.lamports ?? 0n), tokens };
}
