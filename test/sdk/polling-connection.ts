import {
  type BlockheightBasedTransactionConfirmationStrategy,
  type Commitment,
  Connection,
  type RpcResponseAndContext,
  type SignatureResult,
  type TransactionConfirmationStrategy,
  TransactionExpiredTimeoutError,
} from '@solana/web3.js';

const POLL_MS = 50;
const CONFIRM_TIMEOUT_MS = 30_000;
const RANKS = ['processed', 'confirmed', 'finalized'] as const;

/**
 * What a user of web3.js, anchor or umi writes once for an endpoint without WebSocket. Their own `confirmTransaction`
 * asks for statuses only after a subscription has begun; this one only asks. Everything that waits through the
 * `Connection` then works as it is: `sendAndConfirmTransaction`, anchor's `rpc()`, umi's `airdrop` and `sendAndConfirm`.
 */
export class PollingConnection extends Connection {
  override async confirmTransaction(
    strategy: TransactionConfirmationStrategy | BlockheightBasedTransactionConfirmationStrategy | string,
    commitment: Commitment = this.commitment ?? 'finalized',
  ): Promise<RpcResponseAndContext<SignatureResult>> {
    const signature = typeof strategy === 'string' ? strategy : strategy.signature;
    const caller = typeof strategy === 'string' ? undefined : strategy.abortSignal;
    const deadline = AbortSignal.timeout(CONFIRM_TIMEOUT_MS);
    while (!deadline.aborted) {
      caller?.throwIfAborted();
      const { context, value } = await this.getSignatureStatuses([signature]);
      const status = value[0];
      if (status && rankOf(status.confirmationStatus) >= rankOf(commitment)) {
        return { context, value: { err: status.err } };
      }
      await Bun.sleep(POLL_MS); // between two questions to a chain that moves by itself
    }
    throw new TransactionExpiredTimeoutError(signature, CONFIRM_TIMEOUT_MS / 1_000);
  }
}

function rankOf(commitment: Commitment | undefined): number {
  return RANKS.findIndex((rank) => rank === commitment);
}
