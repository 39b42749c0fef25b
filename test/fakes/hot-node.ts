import { failure, result, type SeenCall, startBackend } from './backend.ts';
import {
  agavePage,
  configOf,
  GENESIS,
  type Held,
  heldAnswer,
  heldTransaction,
  type History,
  rowText,
  valuesOf,
} from './history.ts';

/** An Agave node: what it has itself, and what its BigTable has; it may be changed between calls. */
type HotNode = {
  history: History;
  held: Held;
  /** Long-term storage behind it; a call with `x-bigtable: disabled` does without. */
  bigtable: Held | undefined;
  /** Agave 4.0: an unknown cursor is -32020, and rows have a `transactionIndex`. */
  strictCursors: boolean;
};

const RANGE_MAX = 500_000;

/** An Agave node with a ledger that begins at a floor, over a real socket. */
export function startHotNode(state: HotNode) {
  const script = (call: SeenCall) => answer(call, viewOf(state, call), state);
  const backend = startBackend(script);
  backend.probed(script);
  return { ...backend, state };
}

/** What this call may see: the node's own slots, and with a BigTable those below too. */
function viewOf({ held, bigtable }: HotNode, { request }: SeenCall): Held {
  if (bigtable === undefined || request.headers.get('x-bigtable') === 'disabled') return held;
  return { floor: Math.min(held.floor, bigtable.floor), top: Math.max(held.top, bigtable.top) };
}

function answer(call: SeenCall, view: Held, state: HotNode): Response | undefined {
  const { history, held, strictCursors } = state;
  const [first, second] = valuesOf(call);
  const slot = Number(first);
  switch (call.method) {
    case 'getSlot':
      return result(call, String(held.top));
    case 'getHealth':
      return result(call, '"ok"');
    case 'getGenesisHash':
      return result(call, GENESIS);
    case 'getFirstAvailableBlock':
      return result(call, String(view.floor));
    case 'getBlock':
    case 'getBlockTime':
      if (slot > view.top) return failure(call, -32004, `Block not available for slot ${slot}`);
      if (slot < view.floor) return failure(call, -32001, cleanedUp(slot, view));
      if (!history.slots.includes(slot)) return failure(call, -32007, skipped(slot));
      break;
    case 'getBlocks':
      if (Number(second ?? 0) - slot > RANGE_MAX)
        return failure(call, -32602, `Slot range too large; max ${RANGE_MAX}`);
      break;
    case 'getSignatureStatuses':
      return result(call, statuses(history, view, first));
    case 'getSignaturesForAddress':
      return page(call, view, history, strictCursors);
  }
  const json = heldAnswer(call, history, view);
  return json === undefined ? undefined : result(call, json);
}

function page(call: SeenCall, view: Held, history: History, strict: boolean): Response {
  const { limit = 1_000, before, until } = configOf(call);
  if (typeof limit !== 'number' || limit < 1 || limit > 1_000)
    return failure(call, -32602, 'Invalid limit; max 1000');
  const ask = { address: valuesOf(call)[0], limit, before, until };
  const found = agavePage(history, view, ask, strict);
  if (found.kind === 'unknown') return failure(call, -32020, `Transaction ${String(found.cursor)} not found`);
  const rows = found.rows.map((row) => rowText(row, strict ? `,"transactionIndex":${row.index}` : ''));
  return result(call, `[${rows.join(',')}]`);
}

function statuses(history: History, view: Held, signatures: unknown): string {
  const values = (Array.isArray(signatures) ? signatures : []).map((signature: unknown) => {
    const found = heldTransaction(history, view, signature);
    return found === undefined
      ? 'null'
      : `{"confirmationStatus":"finalized","confirmations":null,"err":null,"slot":${found.slot},"status":{"Ok":null}}`;
  });
  return `{"context":{"apiVersion":"3.1.8","slot":${view.top}},"value":[${values.join(',')}]}`;
}

function cleanedUp(slot: number, { floor }: Held): string {
  return `Block ${slot} cleaned up, does not exist on node. First available block: ${floor}`;
}

function skipped(slot: number): string {
  return `Slot ${slot} was skipped, or missing due to ledger jump to recent snapshot`;
}
