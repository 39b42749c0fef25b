import { setTimeout as sleep } from 'node:timers/promises';
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

/** The older names, which web3.js still takes, by what nodes take them for. */
const RANKS: Readonly<Record<Commitment, number>> = {
  processed: 0,
  recent: 0,
  confirmed: 1,
  single: 1,
  singleGossip: 1,
  finalized: 2,
  root: 2,
  max: 2,
};
const ATTEMPTS = 5;
const LONGEST_WAIT_MS = 30_000;

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
    checkSignature(given.signature);
    // Where nobody says when it expires: not after a blockhash that is fetched now.
    const { lastValidBlockHeight } =
      'lastValidBlockHeight' in given ? given : await this.getLatestBlockhash('confirmed');
    for (let isOver = false; ; await new Promise((resolve) => setTimeout(resolve, this.pollMs))) {
      if ('abortSignal' in given) given.abortSignal?.throwIfAborted();
      const { value } = await this.getSignatureStatuses([given.signature]);
      const [status] = value;
      // The transaction's own slot, which the commitment has reached; that of the answer is still in progress.
      if (status?.confirmationStatus && RANKS[status.confirmationStatus] >= RANKS[commitment])
        return { context: { slot: status.slot }, value: { err: status.err } };
      if (!status && isOver) throw new TransactionExpiredBlockheightExceededError(given.signature);
      // One more status is read after this height: the last block it is valid in may have come between the two.
      isOver = !status && (await this.getBlockHeight('confirmed')) > lastValidBlockHeight;
    }
  }
}

/** As web3.js checks it: the status of what is no signature would be asked for until the blockhash is over. */
function checkSignature(signature: string): void {
  let bytes: Uint8Array;
  try {
    bytes = bs58.decode(signature);
  } catch {
    throw new Error(`signature must be base58 encoded: ${signature}`);
  }
  if (bytes.length !== 64) throw new Error('signature has invalid length');
}

/** `fetch` that waits as long as `Retry-After` says and sends again: a transaction refused with it was not sent. */
async function retryingFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(input, init);
    const waitMs = waitMsOf(response.headers);
    if (attempt === ATTEMPTS || !(waitMs <= LONGEST_WAIT_MS)) return response;
    await response.arrayBuffer(); // gives the connection back
    // A signal ends the wait, and then the next attempt.
    const signal = init?.signal ?? undefined;
    await sleep(waitMs + 1_000 * Math.random(), undefined, { signal }).catch(() => undefined);
  }
}

/** The wait that an answer asks for by its `Retry-After`, seconds or a date; NaN: none. */
function waitMsOf(headers: Headers): number {
  const value = headers.get('retry-after') ?? '';
  return /^\d+$/.test(value) ? 1_000 * Number(value) : Math.max(0, Date.parse(value) - Date.now());
}
