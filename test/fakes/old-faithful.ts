import { gzipSync } from 'node:zlib';
import { failure, result, type SeenCall, startBackend } from './backend.ts';
import {
  configOf,
  GENESIS,
  type Held,
  heldAnswer,
  type History,
  rowText,
  type Transaction,
  valuesOf,
} from './history.ts';

/** The archived epochs, and whether there is an index of addresses; it may be changed between calls. */
type OldFaithful = {
  history: History;
  /** The first and the last archived epoch. */
  epochs: readonly [number, number];
  addressIndex: boolean;
};

const BODY_BYTES_MAX = 1_024;

/** rpcpool/yellowstone-faithful with its quirks, over a real socket. */
export function startOldFaithful(state: OldFaithful) {
  const backend = startBackend((call) => {
    if (call.text.length > BODY_BYTES_MAX) return new Response('Request body too large', { status: 413 });
    if (call.text.startsWith('[')) return parseError();
    return compressed(answer(call, state), call);
  });
  backend.probed((call) => answer(call, state));
  return { ...backend, state };
}

function parseError(): Response {
  return Response.json(
    { jsonrpc: '2.0', error: { code: -32700, message: 'Parse error' }, id: null },
    { status: 400 },
  );
}

/** The slots of its whole epochs. */
export function archivedSlots({ history: { epochSlots }, epochs: [first, last] }: OldFaithful): Held {
  return { floor: first * epochSlots, top: (last + 1) * epochSlots - 1 };
}

function answer(call: SeenCall, state: OldFaithful): Response {
  const { history } = state;
  const held = archivedSlots(state);
  const slot = Number(valuesOf(call)[0]);
  const epoch = Math.floor(slot / history.epochSlots);
  switch (call.method) {
    case 'getSlot':
      return result(call, String(history.slots.findLast((each) => each <= held.top) ?? 0));
    case 'getFirstAvailableBlock':
      return result(call, String(history.slots.find((each) => each >= held.floor) ?? 0));
    case 'getVersion':
      return result(call, '{"faithful":{"version":"v0.9"},"feature-set":0,"solana-core":"1.18.0"}');
    case 'getGenesisHash':
      return result(call, GENESIS);
    case 'getBlock':
    case 'getBlockTime':
      if (slot < held.floor || slot > held.top)
        return failure(call, -32004, `Epoch ${epoch} is not available`);
      if (!history.slots.includes(slot)) return failure(call, -32009, skipped(slot));
      break;
    case 'getSignaturesForAddress':
      if (!state.addressIndex) return failure(call, -32603, 'Internal error');
      return result(call, `[${page(call, history, held).map(archivedRow).join(',')}]`);
  }
  const json = heldAnswer(call, history, held, ({ index }) => `,"position":${index}`);
  return json === undefined ? failure(call, -32601, 'Method not found') : result(call, json);
}

/** The address's own rows: an unknown `before` is never met, `until` is the last row of the page. */
function page(call: SeenCall, history: History, held: Held): readonly Transaction[] {
  const { limit, before, until } = configOf(call);
  const address = valuesOf(call)[0];
  const wanted = typeof limit === 'number' && limit >= 1 && limit <= 1_000 ? limit : 1_000;
  let rows = history.transactions.filter(
    ({ addresses, slot }) =>
      addresses.some((each) => each === address) && slot >= held.floor && slot <= held.top,
  );
  if (typeof before === 'string') {
    const at = rows.findIndex(({ signature }) => signature === before);
    rows = at === -1 ? [] : rows.slice(at + 1);
  }
  const end = rows.findIndex(({ signature }) => signature === until);
  return scrambled(rows.slice(0, end === -1 ? wanted : Math.min(wanted, end + 1)), history.epochSlots);
}

/** The runs of epochs in an order that is not the chain's, as a Go map gives them. */
function scrambled(rows: readonly Transaction[], epochSlots: number): readonly Transaction[] {
  const runs = Map.groupBy(rows, ({ slot }) => Math.floor(slot / epochSlots));
  const order = [...runs.keys()].toSorted((a, b) => ((a * 7 + 3) % 5) - ((b * 7 + 3) % 5) || a - b);
  return order.flatMap((epoch) => runs.get(epoch) ?? []);
}

/** Its memos lack the length in front. */
function archivedRow(row: Transaction): string {
  return rowText(row).replace('"[4] ', '"');
}

async function compressed(response: Response, { request }: SeenCall): Promise<Response> {
  if (!/\bgzip\b/.test(request.headers.get('accept-encoding') ?? '')) return response;
  return new Response(gzipSync(await response.bytes()), {
    headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
  });
}

function skipped(slot: number): string {
  return `Slot ${slot} was skipped, or missing in long-term storage`;
}
