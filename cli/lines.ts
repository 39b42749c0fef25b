/** Longest line that is put together; the rest of a longer one is dropped, in characters. */
const LINE_LENGTH_MAX = 8_192;

/** Cuts a stream of bytes into lines, holding at most one unfinished line. */
export function createLines(each: (line: string) => void): (bytes: Uint8Array) => void {
  const decoder = new TextDecoder();
  let begun = '';
  return function feed(bytes) {
    const parts = decoder.decode(bytes, { stream: true }).split('\n');
    const last = parts.pop() ?? '';
    for (const part of parts) {
      each((begun + part).slice(0, LINE_LENGTH_MAX));
      begun = '';
    }
    begun = (begun + last).slice(0, LINE_LENGTH_MAX);
  };
}
