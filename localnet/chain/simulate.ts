/*
 * A transaction run at a commitment's bank: the accounts it names are set back to what they were at the end of that
 * slot, it runs without being kept, and they are put forward again. Nothing else runs in between.
 */
import { getBase58Encoder, type Address } from '@solana/kit';
import { isSameAccount, type AccountState } from './account.ts';
import { allKeys, loadKeys, type LoadedKeys } from './account-keys.ts';
import type { View } from './accounts.ts';
import { addressOf } from './address.ts';
import { LOADER_V3 } from './known-address.ts';
import { nonceAccountOf } from './nonce.ts';
import { soundError } from './process.ts';
import type { Simulation, Svm } from './svm.ts';
import { withBlockhash, type Transaction } from './transaction.ts';
import type { TransactionErrorJson } from './transaction-error.ts';

/** What a simulation needs to know of the bank it runs on. */
export type SimulatedBank = Readonly<{
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

const base58 = getBase58Encoder();
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
      : withBlockhash(transaction, new Uint8Array(base58.encode(replaceBlockhash)));
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
