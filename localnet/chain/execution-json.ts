import { getBase58Decoder } from '@solana/kit';
import type { Execution } from './svm.ts';
import type { Json } from '../json/value.ts';

const base58 = getBase58Decoder();

/** Inner instructions in Agave's form; top-level instructions without any are left out. */
export function encodeInnerInstructions(execution: Execution): Json {
  return execution.innerInstructions.flatMap((list, index) => {
    if (list.length === 0) return [];
    const instructions = list.map((inner) => ({
      programIdIndex: inner.programIdIndex,
      accounts: inner.accounts,
      data: base58.decode(inner.data),
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
