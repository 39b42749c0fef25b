import type { Call } from '../request/call.ts';

/** `{"jsonrpc":"2.0","id":ID,"method":"NAME","params":PARAMS}` with the caller's own bytes of id and params. */
export function requestBody({ id, params }: Call, name: string): Uint8Array<ArrayBuffer> {
  const middle = Buffer.from(`,"method":${JSON.stringify(name)}${params === undefined ? '' : ',"params":'}`);
  const body = new Uint8Array(OPEN.length + id.length + middle.length + (params?.length ?? 0) + 1);
  let at = 0;
  for (const part of [OPEN, id, middle, params, CLOSE]) {
    if (part === undefined) continue;
    body.set(part, at);
    at += part.length;
  }
  return body;
}

const OPEN = Buffer.from('{"jsonrpc":"2.0","id":');
const CLOSE = Buffer.from('}');
