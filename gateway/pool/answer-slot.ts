/** Bytes at an answer's beginning in which its slot stands, on every known node. */
const HEAD_BYTES = 256;

const CONTEXT = /"context":\s*\{(?:"apiVersion":"[^"]*",)?"slot":(\d{1,15})[,}]/;
const RESULT = /"result":\s*(\d{1,15})[,}]/;

/** The slot that an answer says it was read at: its context's, or the result of `getSlot`; 0 when it says none. */
export function answerSlot(method: string, answer: Uint8Array): number {
  return method === 'getSlot' ? slotIn(RESULT, answer) : contextSlot(answer);
}

/** The slot of an answer's context; 0 when it has none. */
export function contextSlot(answer: Uint8Array): number {
  return slotIn(CONTEXT, answer);
}

function slotIn(pattern: RegExp, answer: Uint8Array): number {
  const head = Buffer.from(answer.buffer, answer.byteOffset, Math.min(answer.length, HEAD_BYTES));
  return Number(pattern.exec(head.toString('latin1'))?.[1] ?? 0);
}
