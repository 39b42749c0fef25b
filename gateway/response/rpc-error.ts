/** Codes of errors that the gateway itself makes inside HTTP 200 (JSON-RPC 2.0 section 5.1; Agave `custom_error.rs`). */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_REQUEST = -32600;
export const INVALID_PARAMS = -32602;
export const HISTORY_NOT_AVAILABLE = -32011;
export const NODE_UNHEALTHY = -32005;
export const NO_BACKEND = -503;

/** `{"jsonrpc":"2.0","error":{"code":C,"message":"M"},"id":ID}`, the id verbatim. No other member: strict clients refuse more. */
export function rpcError(code: number, message: string, id: Uint8Array): Uint8Array<ArrayBuffer> {
  return answer(`"error":{"code":${code},"message":${JSON.stringify(message)}}`, id);
}

/** `{"jsonrpc":"2.0","result":RESULT,"id":ID}`; `json` is the result's text. */
export function rpcResult(json: string, id: Uint8Array): Uint8Array<ArrayBuffer> {
  return answer(`"result":${json}`, id);
}

function answer(member: string, id: Uint8Array): Uint8Array<ArrayBuffer> {
  const head = Buffer.from(`{"jsonrpc":"2.0",${member},"id":`);
  const body = new Uint8Array(head.length + id.length + 1);
  body.set(head);
  body.set(id, head.length);
  body[body.length - 1] = CLOSE_BRACE;
  return body;
}

const CLOSE_BRACE = 0x7d;
