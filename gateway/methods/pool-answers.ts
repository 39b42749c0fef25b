import type { Forward, Reply } from '../backend/forward.ts';
import type { Pool } from '../pool/pool.ts';
import { NODE_UNHEALTHY, rpcError, rpcResult } from '../response/rpc-error.ts';

/**
 * Adds the answers that are the pool's and not one node's (DESIGN 3.5): its health, and its first available block with
 * the archives included. Until every backend with history has been asked, a node answers for its own blocks.
 */
export function withPoolAnswers(forward: Forward, pool: Pool): Forward {
  return async function forwardUnlessOwn(call, route, asking) {
    const bytes = ownAnswer(call.method, call.id);
    if (bytes === undefined) return forward(call, route, asking);
    asking.onOver();
    const reply: Reply = { kind: 'whole', bytes, encoding: undefined };
    return reply;
  };

  function ownAnswer(method: string, id: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
    if (method === 'getHealth') {
      return pool.isHealthy() ? rpcResult('"ok"', id) : rpcError(NODE_UNHEALTHY, 'Node is unhealthy', id);
    }
    if (method !== 'getFirstAvailableBlock' && method !== 'minimumLedgerSlot') return undefined;
    const floor = pool.floor();
    return floor === undefined ? undefined : rpcResult(String(floor), id);
  }
}
