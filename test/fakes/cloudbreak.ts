import { result, type SeenCall, startBackend } from './backend.ts';
import { configOf, GENESIS } from './history.ts';

/** How its scans behave; it may be changed between calls. */
export type Cloudbreak = {
  /** Rows of `getProgramAccounts`, each as its JSON. */
  rows: readonly string[];
  /** After so many rows a scan fails, and its answer ends cleanly in the middle of its JSON. */
  failsAfter: number | undefined;
  slot: number;
};

/** solana-rpc/cloudbreak with its quirks, over a real socket. */
export function startCloudbreak(state: Cloudbreak) {
  const script = (call: SeenCall) => {
    const { commitment, minContextSlot } = configOf(call);
    if (commitment === 'processed') return failure(call, -32003, 'Processed commitment is not supported');
    if (typeof minContextSlot === 'number' && minContextSlot > state.slot)
      return failure(call, -32000, 'Minimum context slot has not been reached');
    if (call.method === 'getSlot') return result(call, String(state.slot));
    if (call.method === 'getHealth') return result(call, '"ok"');
    if (call.method === 'getGenesisHash') return result(call, GENESIS);
    return call.method === 'getProgramAccounts'
      ? scan(call, state)
      : failure(call, -32601, 'Method not found');
  };
  const backend = startBackend(script);
  backend.probed(script);
  return { ...backend, state };
}

/** An error as it writes them: with `data`, always. */
function failure({ id }: SeenCall, code: number, message: string): Response {
  const error = JSON.stringify({ code, message, data: null });
  return new Response(`{"jsonrpc":"2.0","error":${error},"id":${id}}`, {
    headers: { 'content-type': 'application/json' },
  });
}

/** Chunked, a row at a time, the id last. */
function scan({ id }: SeenCall, { rows, failsAfter = Infinity }: Cloudbreak): Response {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      await controller.write('{"jsonrpc":"2.0","result":[');
      for (const [i, row] of rows.entries()) {
        if (i >= failsAfter) return controller.close();
        await controller.write(i === 0 ? row : `,${row}`);
        await controller.flush();
      }
      await controller.write(`],"id":${id}}`);
      controller.close();
    },
  };
  return new Response(new ReadableStream(source), { headers: { 'content-type': 'application/json' } });
}
