/** What a process says on stderr. */
export type Words = Readonly<{
  /** The end of it, at most some 4,000 characters. */
  last(): string;
  /** Hands on what was held back, and everything from now on as it comes. */
  release(): void;
  /** Resolves when the stream has ended. */
  ended: Promise<void>;
}>;

const LENGTH_MAX = 4_096;

/** Reads `stream` to its end; nothing goes to `out` before `release`. */
export function createWords(stream: ReadableStream<Uint8Array>, out: (bytes: Uint8Array) => void): Words {
  const decoder = new TextDecoder();
  let last = '';
  let released = false;

  async function read(): Promise<void> {
    for await (const bytes of stream) {
      last = (last + decoder.decode(bytes, { stream: true })).slice(-LENGTH_MAX);
      if (released) out(bytes);
    }
  }

  function release(): void {
    if (!released && last !== '') out(Buffer.from(last));
    released = true;
  }

  return { last: () => last.trim(), release, ended: read() };
}
