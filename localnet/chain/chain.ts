/*
 * The chain: one bank, the slot in progress, which transactions change at once; and the past, which commitments look
 * back to.
 */
import { createHash } from 'node:crypto';
import { getBase58Decoder } from '@solana/kit';
import type { Ledger } from '../store/ledger.ts';
import { createAccounts, type View } from './accounts.ts';
import { createBank } from './bank.ts';
import { type Commitment, createSlots, startChain, type StartOptions } from './slots.ts';
import { createSvm } from './svm.ts';

export type Chain = Awaited<ReturnType<typeof createChain>>;

/** Opens the chain of a ledger, or begins one, with its first slot in progress. */
export async function createChain(options: StartOptions & Readonly<{ ledger: Ledger; rootedLag: number }>) {
  const { ledger, slotMs, rootedLag } = options;
  const svm = createSvm();
  const accounts = createAccounts(svm);
  const start = await startChain(ledger, accounts, svm.rentExemptMinimum, options);
  const { end, ...slots } = createSlots(ledger, start, slotMs, BigInt(Math.max(1, rootedLag)));
  const bank = createBank(svm, accounts, ledger, slots);
  bank.beginSlot();
  const genesisHash = createHash('sha256').update('genesis').update(start.seed).digest();

  return {
    ...slots,
    send: bank.send,
    simulate: bank.simulate,
    featureSetId: svm.featureSetId(),
    rentExemptMinimum: svm.rentExemptMinimum,
    /** Slots whose past is kept; more than the lag only while a scan is read. */
    heldSlots: accounts.layerCount,
    ledger,
    slotMs,
    genesisHash: getBase58Decoder().decode(genesisHash),
    slotAt: slots.at,
    viewAt: (commitment: Commitment): View => accounts.viewAt(slots.at(commitment)),
    advance(): void {
      slots.advance();
      bank.beginSlot();
    },
    /** Ends the run; the next one goes on with the slot after this one. */
    close(): void {
      end();
      ledger.close();
    },
  } as const;
}
