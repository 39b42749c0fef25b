/*
 * A transaction meets the bank: it is refused (no trace, no fee), or it runs and is kept with its block, whether it
 * succeeded or failed. Everything it did is on disk before this returns.
 */
import type { Address } from '@solana/kit';
import type { AccountState } from './account.ts';
import { allKeys, isWritable, loadKeys } from './account-keys.ts';
import { balancesOf, type Balances } from './balances.ts';
import { encodeInnerInstructions, encodeReturnData } from './execution-json.ts';
import { feeOf } from './fee.ts';
import { memoOf } from './memo.ts';
import { advancedNonce, nonceAccountOf } from './nonce.ts';
import type { TransactionMeta, TransactionRecord } from './record.ts';
import type { Accounts } from './accounts.ts';
import type { Execution, Svm } from './svm.ts';
import type { Transaction } from './transaction.ts';
import type { TransactionErrorJson } from './transaction-error.ts';
import type { Ledger } from '../store/ledger.ts';

/** Kept in the block, or refused without a trace. */
export type Processed =
  | Readonly<{ kind: 'kept'; record: TransactionRecord }>
  | Readonly<{ kind: 'refused'; error: TransactionErrorJson }>;

/** Whether a blockhash may be used in the slot in progress. */
export type IsRecent = (blockhash: string) => boolean;

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
    const nonceAddress = isRecent(transaction.recentBlockhash)
      ? undefined
      : nonceAccountOf(transaction, svm.account);
    if (nonceAddress === undefined && !isRecent(transaction.recentBlockhash)) {
      return { kind: 'refused', error: 'BlockhashNotFound' };
    }
    if (ledger.find(transaction.signature) !== undefined)
      return { kind: 'refused', error: 'AlreadyProcessed' };
    const loaded = loadKeys(transaction, svm.account);
    const keys = allKeys(transaction, loaded);
    const before = new Map(keys.map((key) => [key, svm.account(key)] as const));
    const isWritten = keys.map((_, index) =>
      isWritable(transaction, loaded, index, (key) => before.get(key)),
    );
    const pre = balancesOf(keys, (key) => (before.has(key) ? before.get(key) : svm.account(key)));
    const execution = executeSoundly(svm, transaction, before);
    const fee = feeOf(transaction);
    if (!isKept(execution, transaction, before, svm, fee))
      return { kind: 'refused', error: execution.error ?? 'SanitizeFailure' };
    if (execution.error !== undefined && nonceAddress !== undefined) advanceNonce(nonceAddress, transaction);
    keys.forEach((key, index) => {
      if (isWritten[index] === true) accounts.note(key, before.get(key), svm.account(key));
    });
    const post = balancesOf(keys, svm.account);
    const writableKeys = keys.filter((_, index) => isWritten[index] === true);
    const meta = metaOf({ transaction, execution, fee, pre, post, loaded, writableKeys });
    const record: TransactionRecord = {
      slot,
      position,
      signature: transaction.signature,
      wire: transaction.wire,
      meta,
    };
    ledger.commit(
      record,
      keys,
      [...accounts.takeChanged()].map((key) => [key, svm.account(key)] as const),
    );
    return { kind: 'kept', record };
  };

  function advanceNonce(nonceAddress: Address, transaction: Transaction): void {
    const state = svm.account(nonceAddress);
    if (state !== undefined) accounts.set(nonceAddress, advancedNonce(state, transaction.recentBlockhash));
  }
}

/** Runs it, and names a program that is not there as Agave does; LiteSVM calls it not executable. */
function executeSoundly(
  svm: Svm,
  transaction: Transaction,
  before: ReadonlyMap<Address, AccountState | undefined>,
): Execution {
  const execution = svm.execute(transaction.wire);
  return { ...execution, error: soundError(execution.error, transaction, (key) => before.get(key)) };
}

/** A load error as Agave tells it: a program without an account does not exist. */
export function soundError(
  error: TransactionErrorJson | undefined,
  transaction: Transaction,
  account: (address: Address) => AccountState | undefined,
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
  before: ReadonlyMap<Address, AccountState | undefined>,
  svm: Svm,
  fee: bigint,
): boolean {
  if (execution.error === undefined) return true;
  const payer = transaction.staticKeys[0];
  const paidBy = payer === undefined ? undefined : before.get(payer);
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
    innerInstructions: encodeInnerInstructions(execution),
    returnData: encodeReturnData(execution),
    memo: memoOf(transaction),
  };
}
