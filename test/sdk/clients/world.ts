import { failure, result, type SeenCall, startBackend } from '../../fakes/backend.ts';
import { JSON_HEADERS, startGateway } from '../../started/gateway.ts';
import { freePort } from '../../started/ports.ts';
import { startTiers } from '../tiers.ts';

/** One call, then none for 100 seconds; one a second; ten a second and ten at once. */
const PLANS =
  '[plans.stuck]\nrps = 0.01\nburst = 1\n[plans.one]\nrps = 1\nburst = 1\n[plans.ten]\nrps = 10\nburst = 10\n';
const SLOW_MS = 1_200;
const DRIPS = 20;
const DRIP_MS = 100;

/**
 * A started gateway over a real chain with its plans, and a gateway whose node is in trouble: it takes transactions and does
 * not say so, is slow with a balance, writes an account list for 2 seconds and never answers getClusterNodes.
 */
export async function startWorld() {
  const tiers = await startTiers(PLANS);
  const backend = startBackend(troubles);
  const troubled = await startGateway({ backends: [{ name: 'troubled', url: backend.url }] });

  /** A key whose plan takes one call at a time, and that has just made it. */
  async function spent(plan: string): Promise<string> {
    const key = tiers.key(plan);
    const headers = { ...JSON_HEADERS, 'x-token': key };
    await fetch(tiers.url, {
      method: 'POST',
      headers,
      body: '{"jsonrpc":"2.0","id":1,"method":"getHealth"}',
    });
    return key;
  }

  return {
    tiers,
    troubled,
    /** Calls of a method that reached the troubled node. */
    reached: (method: string) => backend.seen.filter((call) => call.method === method).length,
    /** A key that is refused until a test is long over, and one that is refused for a second. */
    stuck: () => spent('stuck'),
    brisk: () => spent('one'),
    /** Where nothing listens. */
    closed: `http://127.0.0.1:${freePort()}/`,
    async [Symbol.asyncDispose]() {
      await troubled[Symbol.asyncDispose]();
      await backend[Symbol.asyncDispose]();
      await tiers[Symbol.asyncDispose]();
    },
  };
}

function troubles(call: SeenCall): Response | Promise<Response> | undefined {
  switch (call.method) {
    case 'sendTransaction':
      return Bun.sleep(SLOW_MS).then(() => new Response('late', { status: 504 }));
    case 'getBalance':
      return Bun.sleep(SLOW_MS).then(() => result(call, '{"context":{"slot":1},"value":1}'));
    case 'getProgramAccounts':
      return new Response(drips(`{"jsonrpc":"2.0","result":[`, `],"id":${call.id}}`), {
        headers: JSON_HEADERS,
      });
    case 'getClusterNodes':
      return Bun.sleep(40_000).then(() => result(call, '[]'));
    case 'getSlot':
      return undefined;
    default:
      return failure(call, -32601, 'Method not found');
  }
}

/** A body that is written over so long that a limit to the whole of it is met, and none to its pauses. */
async function* drips(head: string, end: string) {
  yield Buffer.from(head);
  for (let i = 0; i < DRIPS; i++) {
    await Bun.sleep(DRIP_MS);
    yield Buffer.from(' ');
  }
  yield Buffer.from(end);
}
