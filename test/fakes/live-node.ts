import { failure, result, type SeenCall, startBackend } from './backend.ts';
import { configOf } from './history.ts';

/** What a live node has and says; changed at any time. `slot` is the processed one, the others lag as on a cluster. */
export type LiveState = {
  slot: number;
  floor: number;
  genesis: string;
  /** `undefined`: healthy; else the slots it says it is behind. */
  behind: number | undefined;
  /** Answers nothing but 503, its questions included. */
  down: boolean;
  /** Answers nothing at all. */
  hangs: boolean;
};

const LAGS: Readonly<Record<string, number>> = { processed: 0, confirmed: 1, finalized: 32 };

/**
 * A node at the tip of a chain, as far as a pool can see it: its slots at every commitment, its health, its first block,
 * answers with the context they were read at, and -32016 below `minContextSlot` (Agave `rpc.rs`). It stands in for nodes
 * of a cluster that disagree, which one machine does not have.
 */
export function startLiveNode(state: Partial<LiveState> = {}) {
  const usual = { slot: 1_000, floor: 0, genesis: 'G1', behind: undefined, down: false, hangs: false };
  const now: LiveState = { ...usual, ...state };
  const backend = startBackend((call) => answer(call, now));
  backend.probed((call) => answer(call, now));
  return { ...backend, now, [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose]() };
}

function answer(call: SeenCall, now: LiveState): Response | Promise<Response> {
  if (now.hangs) return new Promise(() => undefined);
  if (now.down) return new Response('down', { status: 503 });
  const config = configOf(call);
  const slot = now.slot - (LAGS[String(config['commitment'] ?? 'finalized')] ?? 0);
  if (typeof config['minContextSlot'] === 'number' && slot < config['minContextSlot']) {
    return failure(call, -32016, 'Minimum context slot has not been reached', { contextSlot: slot });
  }
  switch (call.method) {
    case 'getSlot':
      return result(call, String(slot));
    case 'getHealth':
      return now.behind === undefined
        ? result(call, '"ok"')
        : failure(call, -32005, `Node is behind by ${now.behind} slots`);
    case 'getFirstAvailableBlock':
      return result(call, String(now.floor));
    case 'getGenesisHash':
      return result(call, `"${now.genesis}"`);
    default:
      return result(call, `{"context":{"apiVersion":"4.2.0","slot":${slot}},"value":null}`);
  }
}
