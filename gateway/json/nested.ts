import {
  afterName,
  afterScalar,
  afterSpace,
  afterString,
  CLOSE_OBJECT,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
} from './scan.ts';

/** What closes each array and object that is open, the outermost first. */
const closing = new Uint8Array(65_536);

/**
 * The index after the JSON value at `start`, whose whole grammar is checked; negative: it is none. For answers: unlike
 * `afterValue` it takes what is nested as deep as 64 KiB can be, because it is data of the chain, by no fault of the node.
 */
export function afterNested(bytes: Uint8Array, start: number): number {
  let depth = 0;
  for (let i = afterSpace(bytes, start); ;) {
    const opening = bytes[i];
    if (opening === OPEN_OBJECT || opening === OPEN_ARRAY) {
      if (depth === closing.length) return -1;
      closing[depth++] = opening + 2; // `}` stands two behind `{`, and `]` two behind `[`
      i = afterSpace(bytes, i + 1);
      if (bytes[i] !== opening + 2) {
        if (opening === OPEN_OBJECT && (i = afterName(bytes, i)) < 0) return i;
        i = afterSpace(bytes, i);
        continue;
      }
    } else {
      i = opening === QUOTE ? afterString(bytes, i) : afterScalar(bytes, i);
      if (i < 0 || depth === 0) return i;
      i = afterSpace(bytes, i);
    }
    while (bytes[i] === closing[depth - 1]) {
      if (--depth === 0) return i + 1;
      i = afterSpace(bytes, i + 1);
    }
    if (bytes[i] !== COMMA) return -1;
    i = afterSpace(bytes, i + 1);
    if (closing[depth - 1] === CLOSE_OBJECT && (i = afterName(bytes, i)) < 0) return i;
    i = afterSpace(bytes, i);
  }
}
