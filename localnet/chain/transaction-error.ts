/*
 * A transaction's error in the JSON that Agave's serde makes of `TransactionError`, and in the words of its Display.
 */
import {
  TransactionErrorDuplicateInstruction,
  TransactionErrorInstructionError,
  TransactionErrorInsufficientFundsForRent,
  TransactionErrorProgramExecutionTemporarilyRestricted,
  InstructionErrorCustom,
  type FailedTransactionMetadata,
} from 'litesvm/dist/internal';
import { INSTRUCTION_ERRORS, TRANSACTION_ERRORS } from './error-table.ts';

/** An instruction's error as on the wire: a name, or `{"Custom": u32}`. */
export type InstructionErrorJson = string | Readonly<{ Custom: number }>;

/** A transaction's error as on the wire. */
export type TransactionErrorJson =
  | string
  | Readonly<{ InstructionError: readonly [number, InstructionErrorJson] }>
  | Readonly<{ DuplicateInstruction: number }>
  | Readonly<{ InsufficientFundsForRent: Readonly<{ account_index: number }> }>
  | Readonly<{ ProgramExecutionTemporarilyRestricted: Readonly<{ account_index: number }> }>;

/** The error of a failed execution, in Agave's form. */
export function transactionErrorFrom(
  error: ReturnType<FailedTransactionMetadata['err']>,
): TransactionErrorJson {
  if (error instanceof TransactionErrorInstructionError) {
    return { InstructionError: [error.index, instructionErrorFrom(error.err())] };
  }
  if (error instanceof TransactionErrorDuplicateInstruction) return { DuplicateInstruction: error.index };
  if (error instanceof TransactionErrorInsufficientFundsForRent) {
    return { InsufficientFundsForRent: { account_index: error.accountIndex } };
  }
  if (error instanceof TransactionErrorProgramExecutionTemporarilyRestricted) {
    return { ProgramExecutionTemporarilyRestricted: { account_index: error.accountIndex } };
  }
  const entry = TRANSACTION_ERRORS[error];
  if (entry === undefined) throw new Error(`LiteSVM answered the unknown transaction error ${error}`);
  return entry[0];
}

function instructionErrorFrom(
  error: ReturnType<TransactionErrorInstructionError['err']>,
): InstructionErrorJson {
  if (error instanceof InstructionErrorCustom) return { Custom: error.code };
  if (typeof error !== 'number') return 'BorshIoError';
  const entry = INSTRUCTION_ERRORS[error];
  if (entry === undefined) throw new Error(`LiteSVM answered the unknown instruction error ${String(error)}`);
  return entry[0];
}

/** The sentence that Agave prints for an error, as it stands in "Transaction simulation failed: …". */
export function transactionErrorText(error: TransactionErrorJson): string {
  if (typeof error === 'string') return TRANSACTION_ERRORS.find(([name]) => name === error)?.[1] ?? error;
  if ('InstructionError' in error) {
    const [index, cause] = error.InstructionError;
    return `Error processing Instruction ${index}: ${instructionErrorText(cause)}`;
  }
  if ('DuplicateInstruction' in error) {
    return `Transaction contains a duplicate instruction (${error.DuplicateInstruction}) that is not allowed`;
  }
  if ('InsufficientFundsForRent' in error) {
    return `Transaction results in an account (${error.InsufficientFundsForRent.account_index}) with insufficient funds for rent`;
  }
  const { account_index: index } = error.ProgramExecutionTemporarilyRestricted;
  return `Execution of the program referenced by account at index ${index} is temporarily restricted.`;
}

function instructionErrorText(error: InstructionErrorJson): string {
  if (typeof error !== 'string') return `custom program error: 0x${error.Custom.toString(16)}`;
  return INSTRUCTION_ERRORS.find(([name]) => name === error)?.[1] ?? error;
}
