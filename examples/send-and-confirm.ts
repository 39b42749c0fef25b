import { setTimeout as sleep } from 'node:timers/promises';
import {
  type GetBlockHeightApi,
  type GetSignatureStatusesApi,
  getBase64EncodedWireTransaction,
  getSignatureFromTransaction,
  getSolanaErrorFromTransactionError,
  isSolanaError,
  type Rpc,
  type RpcTransport,
  type SendableTransaction,
  type SendTransactionApi,
  type Signature,
  SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR,
  SOLANA_ERROR__TRANSACTION_ERROR__ALREADY_PROCESSED,
  type Transaction,
} from '@solana/kit';

const ATTEMPTS = 5;
const LONGEST_WAIT_MS = 30_000;
const POLL_MS = 450;

/** A transport that waits as long as `Retry-After` says and sends again: a transaction refused with it was not sent. */
export function retrying(transport: RpcTransport): RpcTransport {
  return async <T>(request: Parameters<RpcTransport>[0]) => {
    for (let attempt = 1; ; attempt++) {
      request.signal?.throwIfAborted();
      try {
        return await transport<T>(request);
      } catch (error) {
        if (!isSolanaError(error, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR)) throw error;
        const waitMs = waitMsOf(error.context.headers);
        if (attempt === ATTEMPTS || !(waitMs <= LONGEST_WAIT_MS)) throw error;
        // A signal ends the wait; why, the loop throws then.
        await sleep(waitMs + 1_000 * Math.random(), undefined, { signal: request.signal }).catch(
          () => undefined,
        );
      }
    }
  };
}

/** The wait that an answer asks for by its `Retry-After`, seconds or a date; NaN: none. */
function waitMsOf(headers: Headers): number {
  const value = headers.get('retry-after') ?? '';
  return /^\d+$/.test(value) ? 1_000 * Number(value) : Math.max(0, Date.parse(value) - Date.now());
}

/** Sends what was signed. Does not throw when it may have been sent: its status tells. */
export async function send(
  rpc: Rpc<SendTransactionApi>,
  transaction: SendableTransaction & Transaction,
): Promise<Signature> {
  const wire = getBase64EncodedWireTransaction(transaction);
  try {
    await rpc.sendTransaction(wire, { encoding: 'base64', preflightCommitment: 'confirmed' }).send();
  } catch (error) {
    const isHttp = isSolanaError(error, SOLANA_ERROR__RPC__TRANSPORT_HTTP_ERROR);
    const isRefused = isHttp ? error.context.statusCode < 500 : isSolanaError(error);
    const cause = isSolanaError(error) ? error.cause : undefined;
    if (isRefused && !isSolanaError(cause, SOLANA_ERROR__TRANSACTION_ERROR__ALREADY_PROCESSED)) throw error;
  }
  return getSignatureFromTransaction(transaction);
}

/** Waits until the transaction is confirmed or can no longer be. If it throws anything else, call it again. */
export async function confirm(
  rpc: Rpc<GetSignatureStatusesApi & GetBlockHeightApi>,
  signature: Signature,
  lastValidBlockHeight: bigint,
): Promise<void> {
  for (let isOver = false; ; await new Promise((resolve) => setTimeout(resolve, POLL_MS))) {
    const { value } = await rpc.getSignatureStatuses([signature]).send();
    const [status] = value;
    if (status && status.confirmationStatus !== 'processed') {
      if (status.err) throw getSolanaErrorFromTransactionError(status.err);
      return;
    }
    if (!status && isOver) throw new Error(`${signature} has expired and will never land`);
    // One more status is read after this height: the last block it is valid in may have come between the two.
    isOver = !status && (await rpc.getBlockHeight({ commitment: 'confirmed' }).send()) > lastValidBlockHeight;
  }
}
