/*
 * A transaction meets the bank: it is refused (no trace, no fee), or it runs and is kept with its block, whether it
 * succeeded or failed. Everything it did is on disk before this returns.
 */
import { type Address, getBase58Decoder, getBase58Encoder } from '@solana/kit';
import type { Json } from '../json/value.ts';
import {
  type AccountState,
  isSameAccount,
  mintOf,
  type ReadAccount,
  tokenAccountOf,
} from '../protocol/account.ts';
import { addressOf, LOADER_V3 } from '../protocol/address.ts';
import type { TransactionErrorJson } from '../protocol/error.ts';
import { feeOf } from '../protocol/fee.ts';
import {
  advancedNonce,
  allKeys,
  isWritable,
  type LoadedKeys,
  loadKeys,
  memoOf,
  nonceAccountOf,
  type Transaction,
  withBlockhash,
} from '../protocol/transaction.ts';
import type {
  InnerInstructions,
  Ledger,
  TokenBalance,
  TransactionMeta,
  TransactionRecord,
} from '../store/ledger.ts';
import type { AccountList, Accounts, View } from './accounts.ts';
import type { Execution, Simulation, Svm } from './svm.ts';

/** Kept in the block, or refused without a trace. */
type Processed =
  | Readonly<{ kind: 'kept'; record: TransactionRecord }>
  | Readonly<{ kind: 'refused'; error: TransactionErrorJson }>;

/** Whether a blockhash may be used in the slot in progress. */
type IsRecent = (blockhash: string) => boolean;

const base58Encoder = getBase58Encoder();
const base58Decoder = getBase58Decoder();
// Errors of loading, after the fee payer was found good: the fee is taken and the transaction kept (SIMD-0082).
const FEE_ONLY_ERRORS: ReadonlySet<unknown> = new Set([
  'ProgramAccountNotFound',
  'InvalidProgramForExecution',
  'MaxLoadedAccountsDataSizeExceeded',
]);

/** Makes `process`, which runs one transaction at a place of the slot in progress. */
export function createProcess(
  deps: Readonly<{ svm: Svm; accounts: Accounts; ledger: Ledger; isRecent: IsRecent }>,
) {
  const { svm, accounts, ledger, isRecent } = deps;

  return function process(transaction: Transaction, slot: bigint, position: number): Processed {
    const isFresh = isRecent(transaction.recentBlockhash);
    const nonceAddress = isFresh ? undefined : nonceAccountOf(transaction, accounts.account);
    if (!isFresh && nonceAddress === undefined) return { kind: 'refused', error: 'BlockhashNotFound' };
    if (ledger.find(transaction.signature) !== undefined)
      return { kind: 'refused', error: 'AlreadyProcessed' };
    const loaded = loadKeys(transaction, accounts.account);
    const keys = allKeys(transaction, loaded);
    const before = keys.map((key) => [key, accounts.account(key)] as const);
    const writableKeys = keys.filter((_, index) => isWritable(transaction, loaded, index, accounts.account));
    const pre = balancesOf(keys, accounts.account);
    const fee = feeOf(transaction);
    const execution = executeSoundly(svm, transaction, accounts.account);
    if (!isKept(execution, transaction, accounts, svm, fee)) {
      return { kind: 'refused', error: execution.error ?? 'SanitizeFailure' };
    }
    if (execution.error === undefined) writableKeys.forEach(accounts.refresh);
    else takeFee(transaction, nonceAddress);
    const post = balancesOf(keys, accounts.account);
    const meta = metaOf({ transaction, execution, fee, pre, post, loaded, writableKeys });
    const record = { slot, position, signature: transaction.signature, wire: transaction.wire, meta };
    keep(record, keys, before);
    return { kind: 'kept', record };
  };

  /** A transaction that failed changed its payer alone, and the nonce that carried it. */
  function takeFee(transaction: Transaction, nonceAddress: Address | undefined): void {
    const [payer] = transaction.staticKeys;
    if (payer !== undefined) accounts.refresh(payer);
    const nonce = nonceAddress === undefined ? undefined : accounts.account(nonceAddress);
    if (nonceAddress === undefined || nonce === undefined) return;
    accounts.set(nonceAddress, advancedNonce(nonce, transaction.recentBlockhash));
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
}

/** Runs it, and names a program that is not there as Agave does; LiteSVM calls it not executable. */
function executeSoundly(svm: Svm, transaction: Transaction, account: ReadAccount): Execution {
  const execution = svm.execute(transaction.wire);
  return { ...execution, error: soundError(execution.error, transaction, account) };
}

/** A load error as Agave tells it: a program without an account does not exist. */
function soundError(
  error: TransactionErrorJson | undefined,
  transaction: Transaction,
  account: ReadAccount,
): TransactionErrorJson | undefined {
  if (error !== 'InvalidProgramForExecution') return error;
  const isAbsent = transaction.instructions.some((instruction) => {
    const program = transaction.staticKeys[instruction.programIdIndex];
    return program !== undefined && account(program) === undefined;
  });
  return isAbsent ? 'ProgramAccountNotFound' : error;
}

/** Whether the fee was paid, which keeps a transaction. Takes the fee where LiteSVM leaves it. */
function isKept(
  execution: Execution,
  transaction: Transaction,
  accounts: Accounts,
  svm: Svm,
  fee: bigint,
): boolean {
  if (execution.error === undefined) return true;
  const payer = transaction.staticKeys[0];
  const paidBy = payer === undefined ? undefined : accounts.account(payer);
  if (payer === undefined || paidBy === undefined) return false;
  const now = svm.account(payer);
  if ((now?.lamports ?? 0n) < paidBy.lamports) return true;
  if (!FEE_ONLY_ERRORS.has(execution.error)) return false;
  const left = paidBy.lamports - fee;
  if (left < 0n) return false;
  svm.setAccount(payer, left === 0n ? undefined : { ...paidBy, lamports: left });
  return true;
}

function metaOf(from: {
  transaction: Transaction;
  execution: Execution;
  fee: bigint;
  pre: Balances;
  post: Balances;
  loaded: Readonly<{ writable: readonly Address[]; readonly: readonly Address[] }>;
  writableKeys: readonly Address[];
}): TransactionMeta {
  const { transaction, execution, fee, pre, post, loaded, writableKeys } = from;
  return {
    error: execution.error ?? null,
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
    innerInstructions: compiledInner(execution),
    returnData: encodeReturnData(execution),
    memo: memoOf(transaction),
  };
}

/*
 * A transaction run at a commitment's bank: the accounts it names are set back to what they were at the end of that
 * slot, it runs without being kept, and they are put forward again. Nothing else runs in between.
 */

/** What a simulation needs to know of the bank it runs on. */
type SimulatedBank = Readonly<{
  view: View;
  /** An account at the tip, which is what the machine holds. */
  present(address: Address): AccountState | undefined;
  /** Sets the machine's clock to that of a slot. */
  setClock(slot: bigint): void;
  tip: bigint;
  isRecent(blockhash: string): boolean;
  /** Whether the transaction is already in a block of the bank. */
  isProcessed(signature: string): boolean;
}>;

/** How to run it: verify signatures or not; with the given blockhash instead of its own. */
export type SimulationOptions = Readonly<{ sigVerify: boolean; replaceBlockhash: string | undefined }>;

/** What came of it, with the keys that its lookup tables gave. */
export type SimulationResult = Simulation & Readonly<{ loaded: LoadedKeys }>;

const NOTHING_RAN = {
  logs: [],
  unitsConsumed: 0n,
  innerInstructions: [],
  returnData: undefined,
  accounts: () => new Map<Address, AccountState>(),
} as const;

/** Runs a transaction at the bank's view; keeps nothing. */
export function simulateAt(
  svm: Svm,
  bank: SimulatedBank,
  transaction: Transaction,
  options: SimulationOptions,
): SimulationResult {
  const loaded = loadKeys(transaction, bank.view.account);
  const refusal = options.replaceBlockhash === undefined ? ageError(bank, transaction) : undefined;
  if (refusal !== undefined) return { ...NOTHING_RAN, error: refusal, loaded };
  const { replaceBlockhash } = options;
  const wire =
    replaceBlockhash === undefined
      ? transaction.wire
      : withBlockhash(transaction, new Uint8Array(base58Encoder.encode(replaceBlockhash)));
  const keys = [...allKeys(transaction, loaded), ...transaction.lookups.map((lookup) => lookup.table)];
  const restore = rewind(svm, bank, keys);
  try {
    const simulation = svm.simulate(wire, options.sigVerify);
    return { ...simulation, error: soundError(simulation.error, transaction, bank.view.account), loaded };
  } finally {
    restore();
  }
}

function ageError(bank: SimulatedBank, transaction: Transaction): TransactionErrorJson | undefined {
  if (
    !bank.isRecent(transaction.recentBlockhash) &&
    nonceAccountOf(transaction, bank.view.account) === undefined
  ) {
    return 'BlockhashNotFound';
  }
  return bank.isProcessed(transaction.signature) ? 'AlreadyProcessed' : undefined;
}

function rewind(svm: Svm, bank: SimulatedBank, keys: readonly Address[]): () => void {
  if (bank.view.slot === bank.tip) return () => {};
  const differing = new Map<
    Address,
    Readonly<{ past: AccountState | undefined; present: AccountState | undefined }>
  >();
  function consider(key: Address): boolean {
    const past = bank.view.account(key);
    const present = bank.present(key);
    const differs = !isSameAccount(past, present);
    if (differs) differing.set(key, { past, present });
    return differs;
  }
  for (const key of keys) {
    consider(key);
    const program = bank.present(key);
    const dataAddress = program === undefined ? undefined : programDataOf(program);
    // A program is compiled when its own account is written, so it follows its ProgramData.
    if (dataAddress !== undefined && consider(dataAddress))
      differing.set(key, { past: bank.view.account(key), present: program });
  }
  bank.setClock(bank.view.slot);
  write(
    svm,
    [...differing].map(([key, { past }]) => [key, past]),
  );
  return function restore() {
    bank.setClock(bank.tip);
    write(
      svm,
      [...differing].map(([key, { present }]) => [key, present]),
    );
  };
}

function write(svm: Svm, accounts: readonly (readonly [Address, AccountState | undefined])[]): void {
  for (const [key, state] of accounts) if (state?.executable !== true) svm.setAccount(key, state);
  for (const [key, state] of accounts) if (state?.executable === true) svm.setAccount(key, state);
}

function programDataOf(state: AccountState): Address | undefined {
  return state.executable && state.owner === LOADER_V3 ? addressOf(state.data.subarray(4, 36)) : undefined;
}

/** Lamports and token balances of all account keys at one time. */
type Balances = Readonly<{ lamports: readonly bigint[]; tokens: readonly TokenBalance[] }>;

/** Reads the balances of `keys`. Token balances exist for initialized token accounts whose mint exists. */
export function balancesOf(keys: readonly Address[], account: ReadAccount): Balances {
  const lamports: bigint[] = [];
  const tokens: TokenBalance[] = [];
  keys.forEach((key, index) => {
    const state = account(key);
    lamports.push(state?.lamports ?? 0n);
    const token = state === undefined ? undefined : tokenAccountOf(state);
    if (state === undefined || token === undefined) return;
    const mintState = account(token.mint);
    const mint = mintState === undefined ? undefined : mintOf(mintState);
    if (mint === undefined) return;
    tokens.push({
      accountIndex: BigInt(index),
      mint: token.mint,
      owner: token.owner,
      programId: state.owner,
      amount: token.amount,
      decimals: BigInt(mint.decimals),
    });
  });
  return { lamports, tokens };
}

/** Inner instructions as they are kept. */
export function compiledInner(execution: Execution): InnerInstructions {
  return execution.innerInstructions.flatMap((list, index) => {
    if (list.length === 0) return [];
    const instructions = list.map((inner) => ({
      programIdIndex: inner.programIdIndex,
      accounts: inner.accounts,
      data: base58Decoder.decode(inner.data),
      stackHeight: inner.stackHeight,
    }));
    return [{ index, instructions }];
  });
}

/** Return data in Agave's form, or null when the transaction set none. */
export function encodeReturnData(execution: Execution): Json {
  if (execution.returnData === undefined) return null;
  const { programAddress, data } = execution.returnData;
  return { programId: programAddress, data: [Buffer.from(data).toString('base64'), 'base64'] };
}
