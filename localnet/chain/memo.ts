import { MEMO_PROGRAM, MEMO_V1_PROGRAM } from './known-address.ts';
import { programOf, type Transaction } from './transaction.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

/** The memos of a transaction as getSignaturesForAddress gives them: `[length] text`, joined by `; `. */
export function memoOf(transaction: Transaction): string | null {
  const memos = transaction.instructions.flatMap((instruction) => {
    const program = programOf(transaction, instruction);
    if (program !== MEMO_PROGRAM && program !== MEMO_V1_PROGRAM) return [];
    return [`[${instruction.data.length}] ${textOf(instruction.data)}`];
  });
  return memos.length === 0 ? null : memos.join('; ');
}

function textOf(data: Uint8Array): string {
  try {
    return decoder.decode(data);
  } catch {
    return '(unparseable)';
  }
}
