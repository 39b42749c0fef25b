/** Bytes for people: as text, or the first of them in hex when they are none. */
export type ShownBytes = Readonly<{ kind: 'text' | 'binary'; text: string }>;

const HEX_BYTES = 256;
const ROW_BYTES = 16;
/** A character that was cut in the middle has at most three bytes. */
const CUT_MAX = 3;
// oxlint-disable-next-line no-control-regex -- control characters are what is looked for
const CONTROLS = /[\u0000-\u0008\u000e-\u001f\u007f]/;

/** Reads bytes as UTF-8; what `isWhole` denies may end in the middle of a character. */
export function shownBytes(bytes: Uint8Array, isWhole: boolean): ShownBytes {
  for (let cut = 0; cut <= (isWhole ? 0 : CUT_MAX); cut++) {
    const text = textOf(bytes.subarray(0, bytes.length - cut));
    if (text !== undefined && !CONTROLS.test(text)) return { kind: 'text', text };
  }
  return { kind: 'binary', text: hexOf(bytes.subarray(0, HEX_BYTES)) };
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function hexOf(bytes: Uint8Array): string {
  const rows: string[] = [];
  for (let at = 0; at < bytes.length; at += ROW_BYTES) {
    const row = [...bytes.subarray(at, at + ROW_BYTES)].map((byte) => byte.toString(16).padStart(2, '0'));
    rows.push(`${at.toString(16).padStart(4, '0')}  ${row.join(' ')}`);
  }
  return rows.join('\n');
}
