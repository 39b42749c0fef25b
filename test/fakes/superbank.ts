import { failure, result, type SeenCall, startBackend } from './backend.ts';
import {
  agavePage,
  configOf,
  type Held,
  heldAnswer,
  heldSlots,
  heldTransaction,
  type History,
  rowText,
  valuesOf,
} from './history.ts';

/** What its ClickHouse holds; it may be changed between calls. */
export type Superbank = {
  history: History;
  held: Held;
  /** ClickHouse takes too long for any call. */
  timesOut: boolean;
  /** Its own errors come with HTTP 503 (`--emit-http-errors`). */
  emitHttpErrors: boolean;
};

const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  getSignaturesForAddress: [
    'limit',
    'before',
    'until',
    'beforeSlot',
    'untilSlot',
    'commitment',
    'minContextSlot',
  ],
  getBlock: ['encoding', 'transactionDetails', 'rewards', 'commitment', 'maxSupportedTransactionVersion'],
  getTransaction: ['encoding', 'commitment', 'maxSupportedTransactionVersion', 'slot'],
  getBlocks: ['commitment', 'minContextSlot'],
  getBlocksWithLimit: ['commitment', 'minContextSlot'],
};

const BATCH_MAX = 64;

/** solana-rpc/superbank with its quirks, over a real socket. */
export function startSuperbank(state: Superbank) {
  const refused = new Set<string>();
  const backend = startBackend(async (call) => {
    if (refused.has(call.method)) return marked(failure(call, -32601, 'Method not found'));
    if (!call.text.startsWith('[')) return marked(answer(call, state));
    const calls: unknown = JSON.parse(call.text);
    const items = Array.isArray(calls) ? calls : [];
    if (items.length > BATCH_MAX) return marked(failure(call, -32600, 'Batch too large'));
    const texts = items.map((item) => answer(itemOf(item, call), state).text());
    return marked(Response.json(JSON.parse(`[${(await Promise.all(texts)).join(',')}]`)));
  });
  backend.probed((call) => answer(call, state));
  /** From now on it does not serve a method, as behind a front that lets few of them through. */
  const refuses = (method: string) => void refused.add(method);
  return { ...backend, state, refuses };
}

/** One call of a batch; a notification is answered under id null. */
function itemOf(item: unknown, { request }: SeenCall): SeenCall {
  const { method, params, id }: { method?: unknown; params?: unknown; id?: unknown } = Object(item);
  return {
    method: String(method),
    params,
    id: JSON.stringify(id ?? null),
    text: JSON.stringify(item),
    request,
  };
}

function marked(response: Response): Response {
  response.headers.set('x-superbank-sources', 'clickhouse');
  return response;
}

function answer(call: SeenCall, state: Superbank): Response {
  const { history, held } = state;
  if (state.timesOut) return ownError(call, state);
  const slot = Number(valuesOf(call)[0]);
  const known = MEMBERS[call.method];
  const odd = Object.keys(configOf(call)).find((name) => known?.includes(name) === false);
  if (odd !== undefined) return failure(call, -32602, `Invalid params: unknown field \`${odd}\``);
  switch (call.method) {
    case 'getSlot':
      return result(call, String(held.top));
    case 'getFirstAvailableBlock':
      return result(call, String(held.floor));
    case 'getBlock':
    case 'getBlockTime':
      if (heldSlots(history, held, slot, slot).length === 0)
        return failure(call, -32009, `Slot ${slot} was skipped, or missing in long-term storage`);
      break;
    case 'getSignaturesForAddress':
      return page(call, history, held);
  }
  const json = heldAnswer(call, history, held);
  return json === undefined ? failure(call, -32601, 'Method not found') : result(call, json);
}

function page(call: SeenCall, history: History, held: Held): Response {
  const { limit = 1_000, before, until, beforeSlot, untilSlot } = configOf(call);
  const [floor, top] = [bound(untilSlot, held.floor - 1) + 1, bound(beforeSlot, held.top + 1) - 1];
  const cursors = { before, until };
  const unknown = Object.values(cursors).find(
    (cursor) => typeof cursor === 'string' && heldTransaction(history, held, cursor) === undefined,
  );
  if (unknown !== undefined) return failure(call, -32020, `Transaction ${String(unknown)} not found`);
  const ask = { address: valuesOf(call)[0], limit: Infinity, ...cursors };
  const found = agavePage(history, held, ask, true);
  const rows = found.kind === 'rows' ? found.rows : [];
  const kept = rows.filter((row) => row.slot >= floor && row.slot <= top);
  const clamped = Math.min(1_000, Math.max(1, Number(limit)));
  return result(call, `[${kept.slice(0, clamped).map((row) => rowText(row))}]`);
}

function bound(slot: unknown, otherwise: number): number {
  return typeof slot === 'number' ? slot : otherwise;
}

function ownError(call: SeenCall, { emitHttpErrors }: Superbank): Response {
  const { body, headers } = failure(call, -32000, 'Superbank request timeout');
  return new Response(body, { status: emitHttpErrors ? 503 : 200, headers });
}
