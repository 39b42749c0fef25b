import {
  afterName,
  afterSpace,
  afterString,
  afterValue,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  OPEN_ARRAY,
  OPEN_OBJECT,
} from '../request/json-scan.ts';

/** `params` is `undefined` when the call had none; `asked` when the flag was true. */
export type WithoutHistory = Readonly<{ params: Uint8Array | undefined; asked: boolean }>;

/**
 * The parameters of `getSignatureStatuses` without `searchTransactionHistory` in their second value, and every other
 * byte the caller's own (DESIGN 3.4). Named parameters pass as they are: Agave refuses them.
 */
export function withoutHistory(params: Uint8Array | undefined): WithoutHistory {
  const open = params === undefined ? undefined : configAt(params);
  if (params === undefined || open === undefined) return { params, asked: false };
  const parts: Uint8Array[] = [];
  let asked: boolean | undefined;
  const first = afterSpace(params, open + 1);
  let [kept, end] = [0, first];
  for (let from = first; params[from] !== CLOSE_OBJECT;) {
    const value = afterSpace(params, afterName(params, from));
    const to = afterValue(params, value);
    // Of two flags the last one counts, as it does for JSON.parse.
    if (isFlag(params.subarray(from, afterString(params, from)))) asked = params[value] === TRUE;
    else parts.push(params.subarray(kept++ === 0 ? from : end, to));
    end = to;
    const next = afterSpace(params, to);
    from = params[next] === COMMA ? afterSpace(params, next + 1) : next;
  }
  if (asked === undefined) return { params, asked: false };
  const left = Buffer.concat([params.subarray(0, first), ...parts, params.subarray(end)]);
  return { params: new Uint8Array(left), asked };
}

/** Where the second value of an array of parameters opens an object. The envelope has checked the grammar. */
function configAt(params: Uint8Array): number | undefined {
  const signatures = afterSpace(params, 1);
  if (params[0] !== OPEN_ARRAY || params[signatures] === CLOSE_ARRAY) return undefined;
  const comma = afterSpace(params, afterValue(params, signatures));
  if (params[comma] !== COMMA) return undefined;
  const config = afterSpace(params, comma + 1);
  return params[config] === OPEN_OBJECT ? config : undefined;
}

function isFlag(quoted: Uint8Array): boolean {
  const text = Buffer.from(quoted.buffer, quoted.byteOffset, quoted.length).toString('latin1');
  return (text.includes('\\') ? JSON.stringify(JSON.parse(text)) : text) === '"searchTransactionHistory"';
}

const COMMA = 0x2c;
/** The first byte of `true`, and of no other value. */
const TRUE = 0x74;
