import {
  type BlockheightBasedTransactionConfirmationStrategy,
  type Commitment,
  Connection,
  type ConnectionConfig,
  type FetchFn,
  type RpcResponseAndContext,
  type SendOptions,
  SendTransactionError,
  type SignatureResult,
  type TransactionConfirmationStrategy,
  TransactionExpiredBlockheightExceededError,
} from '@solana/web3.js';
import bs58 from 'bs58';

const RANKS: readonly (string | undefined)[] = ['processed', 'confirmed', 'finalized'];
const ATTEMPTS = 5;
const LONGEST_WAIT_SECONDS = 30;

/**
 * A `Connection` for an endpoint without WebSocket. Everything that waits through a `Connection` works with it as it is:
 * `sendAndConfirmTransaction`, anchor's `rpc()`, spl-token, umi's `sendAndConfirm`. Not for durable nonces, which never expire.
 */
export class PollingConnection extends Connection {
  pollMs = 450;

  constructor(url: string, config: ConnectionConfig) {
    // Bun's own type of `fetch` has a `preconnect`, which web3.js does not call. Its retries do not read Retry-After.
    super(url, { fetch: retryingFetch as FetchFn, disableRetryOnRateLimit: true, ...config });
  }

  /** Does not throw when the transaction may have been sent: its status tells. */
  override async sendEncodedTransaction(encoded: string, options?: SendOptions): Promise<string> {
    try {
      return await super.sendEncodedTransaction(encoded, options);
    } catch (error) {
      const text = String(Object(error).message);
      const isRefused = error instanceof SendTransactionError || /^4\d\d /.test(text);
      if (isRefused && !text.includes('already been processed')) throw error;
      return bs58.encode(Buffer.from(encoded, 'base64').subarray(1, 65));
    }
  }

  /** Waits until the transaction is confirmed or can no longer be. If it throws anything else, call it again. */
  override async confirmTransaction(
    strategy: TransactionConfirmationStrategy | BlockheightBasedTransactionConfirmationStrategy | string,
    commitment: Commitment = this.commitment ?? 'finalized',
  ): Promise<RpcResponseAndContext<SignatureResult>> {
    const given = typeof strategy === 'string' ? { signature: strategy } : strategy;
    // Where nobody says when it expires: not after a blockhash that is fetched now.
    const { lastValidBlockHeight } =
      'lastValidBlockHeight' in given ? given : await this.getLatestBlockhash('confirmed');
    for (let isOver = false; ; await new Promise((resolve) => setTimeout(resolve, this.pollMs))) {
      if ('abortSignal' in given) given.abortSignal?.throwIfAborted();
      const { context, value } = await this.getSignatureStatuses([given.signature]);
      const [status] = value;
      if (status && RANKS.indexOf(status.confirmationStatus) >= RANKS.indexOf(commitment))
        return { context, value: { err: status.err } };
      if (!status && isOver) throw new TransactionExpiredBlockheightExceededError(given.signature);
      // One more status is read after this height: the last block it is valid in may have come between the two.
      isOver = !status && (await this.getBlockHeight('confirmed')) > lastValidBlockHeight;
    }
  }
}

/** `fetch` that waits as long as `Retry-After` says and sends again: a transaction refused with it was not sent. */
async function retryingFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(input, init);
    const seconds = Number(response.headers.get('retry-after') ?? Infinity);
    if (attempt === ATTEMPTS || !(seconds <= LONGEST_WAIT_SECONDS)) return response;
    await response.arrayBuffer(); // gives the connection back
    await new Promise((resolve) => setTimeout(resolve, 1_000 * (seconds + Math.random())));
  }
}
