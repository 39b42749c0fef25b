import { isUtf8 } from 'node:buffer';
import { type Element, scanElement } from './call.ts';
import { afterSpace, CLOSE_ARRAY, DEEP, OPEN_ARRAY } from './json-scan.ts';

/** A body as JSON-RPC: one element, or a batch in the caller's order. */
export type Envelope =
  | { readonly kind: 'single'; readonly element: Element }
  | { readonly kind: 'batch'; readonly elements: readonly Element[] };

/** A body that is not JSON (-32700), or is JSON but no request (-32600). It is answered with id null. */
export type Malformed = Readonly<{ kind: 'malformed'; code: -32700 | -32600; reason: string }>;

/**
 * The envelope of a body, found by one pass over its bytes; nothing is parsed but the four members of each call.
 * A batch above `batchMax` is refused at its first element too many, without reading the rest.
 */
export function readEnvelope(body: Uint8Array, batchMax: number): Envelope | Malformed {
  if (!isUtf8(body)) return PARSE_ERROR;
  const start = afterSpace(body, 0);
  if (body[start] === OPEN_ARRAY) return readBatch(body, start + 1, batchMax);
  const { element, end } = scanElement(body, start, 0);
  if (end < 0) return end === DEEP ? TOO_DEEP : PARSE_ERROR;
  return afterSpace(body, end) === body.length ? { kind: 'single', element } : PARSE_ERROR;
}

function readBatch(body: Uint8Array, start: number, batchMax: number): Envelope | Malformed {
  const elements: Element[] = [];
  let i = afterSpace(body, start);
  if (body[i] === CLOSE_ARRAY) return afterSpace(body, i + 1) === body.length ? EMPTY_BATCH : PARSE_ERROR;
  for (;;) {
    const { element, end } = scanElement(body, i, 1);
    if (end < 0) return end === DEEP ? TOO_DEEP : PARSE_ERROR;
    if (elements.length === batchMax) return tooLarge(batchMax);
    elements.push(element);
    i = afterSpace(body, end);
    if (body[i] === CLOSE_ARRAY) break;
    if (body[i] !== 0x2c) return PARSE_ERROR;
    i = afterSpace(body, i + 1);
  }
  return afterSpace(body, i + 1) === body.length ? { kind: 'batch', elements } : PARSE_ERROR;
}

const PARSE_ERROR: Malformed = { kind: 'malformed', code: -32700, reason: 'Parse error' };
const TOO_DEEP: Malformed = { kind: 'malformed', code: -32600, reason: 'Invalid request: nested too deeply' };
const EMPTY_BATCH: Malformed = { kind: 'malformed', code: -32600, reason: 'Invalid request: empty batch' };

function tooLarge(batchMax: number): Malformed {
  return { kind: 'malformed', code: -32600, reason: `Batch too large; max ${batchMax}` };
}
