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
import type { AccountList, Accounts } from './accounts.ts';
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
function executeSoundly(
  svm: Svm,
  transaction: Transaction,
  account: (address: Address) => AccountState | undefined,
): Execution {
  const execution = svm.execute(transaction.wire);
  return { ...execution, error: soundError(execution.error, transaction, account) };
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
    innerInstructions: encodeInnerInstructions(execution),
    returnData: encodeReturnData(execution),
    memo: memoOf(transaction),
  };
}
