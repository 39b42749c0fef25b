import { createMembers } from '../json/members.ts';
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY } from '../json/scan.ts';
import { afterString, CLOSE, KIND, OPEN, SPACE, STRING, UNENDED_ESCAPED } from '../json/structure.ts';
import type { WritePiece } from '../upstream/http-connection.ts';
import type { ResponseStart, StreamBody, StreamEnd } from '../upstream/response-reader.ts';

/**
 * Cuts the accounts of a `getProgramAccounts` answer into lines, however its bytes are cut. An account is passed on as
 * the bytes it is, so every number and every escape keeps its text. Why not stream-json 3.8.0: it keeps numbers, but
 * writes escapes anew, and on 64 MB in 150,000 accounts (64 KiB pieces, Bun 1.4.5) its parser, pick and stringer made
 * 43 MB/s before any line was cut; this makes 330 to 740.
 */
type AccountLines = Readonly<{
  /** Takes the next bytes; gives those of lines among them, `undefined` from the first that cannot be an answer on. */
  push(bytes: Buffer): Buffer | undefined;
  /** Whether the array of accounts has begun. */
  hasBegun(): boolean;
  /** `{"accounts":N,"slot":S}` and a line feed; `undefined` while the answer is not whole or has no array. */
  last(): Buffer | undefined;
}>;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BLANK = 0x20;

export function createAccountLines(): AccountLines {
  /** `result.context.slot` in the answer's own digits. */
  let slot: string | null = null;
  let hasAccounts = false;
  /** Stops behind the `[` of `result`, or of `result.value`. */
  const members = createMembers(
    (path, first) => {
      const isArray = first === OPEN_ARRAY && /^result(?:\.value)?$/.test(path.join('.'));
      return isArray && !hasAccounts && (hasAccounts = true);
    },
    (path, text) => {
      if (path.join('.') === 'result.context.slot' && /^\d+$/.test(text)) slot = text;
    },
  );
  let phase: 'before' | 'within' | 'after' | 'broken' = 'before';
  let accounts = 0;
  /** What is open inside the account under way. */
  let depth = 0;
  let inString = false;
  let escaped = false;
  /** The account under way has bytes. */
  let begun = false;

  function push(given: Buffer): Buffer | undefined {
    const bytes = withoutBreaks(given);
    let out = EMPTY;
    let at = 0;
    if (phase === 'before') {
      at = members.push(bytes, 0);
      if (hasAccounts && at >= 0) phase = 'within';
    }
    if (phase === 'within') {
      // A line feed stands in the place of a comma or of the bracket, so the lines are never longer.
      const lines = Buffer.allocUnsafe(bytes.length - at);
      const [next, length] = within(bytes, at, lines);
      at = next;
      out = lines.subarray(0, length);
    }
    if (phase === 'after' && at >= 0) at = members.push(bytes, at);
    if (at < 0) phase = 'broken';
    return phase === 'broken' ? undefined : out;
  }

  /** Copies the accounts' bytes to `out`; gives the index of the array's `]`, or the end, or -1; and the bytes copied. */
  function within(bytes: Buffer, from: number, out: Buffer): readonly [number, number] {
    // Locals, because a captured variable is written to memory at every step.
    let level = depth;
    let length = 0;
    let run = from;
    let i = inString ? afterString(bytes, from, escaped) : from;
    while (i >= 0 && i < bytes.length) {
      const byte = bytes[i++] ?? 0;
      const kind = KIND[byte];
      if (kind === STRING) {
        begun = true;
        i = afterString(bytes, i, false);
      } else if (kind === OPEN) {
        begun = true;
        level++;
      } else if (kind === CLOSE && level > 0) level--;
      else if (level === 0 && kind !== SPACE && kind !== CLOSE && byte !== COMMA) begun = true;
      else if (level === 0) {
        length += bytes.copy(out, length, run, i - 1);
        run = i;
        const isEnd = byte === CLOSE_ARRAY;
        if (kind === CLOSE && !isEnd) return [-1, 0];
        if (!isEnd && byte !== COMMA) continue;
        if (begun) out[length++] = LINE_FEED;
        else if (!isEnd || accounts > 0) return [-1, 0];
        if (begun) accounts++;
        begun = false;
        if (!isEnd) continue;
        phase = 'after';
        return [i - 1, length];
      }
    }
    depth = level;
    inString = i < 0;
    escaped = i === UNENDED_ESCAPED;
    length += bytes.copy(out, length, run);
    return [bytes.length, length];
  }

  return {
    push,
    hasBegun: () => hasAccounts,
    last: () =>
      phase === 'after' && members.isComplete()
        ? Buffer.from(`{"accounts":${accounts},"slot":${slot}}\n`)
        : undefined,
  };
}

const EMPTY = Buffer.alloc(0);

/** The bytes with a space for every line break: none may stand inside a line, and nodes write none. */
function withoutBreaks(bytes: Buffer): Buffer {
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return bytes;
  return Buffer.from(bytes.map((byte) => (byte === LINE_FEED || byte === CARRIAGE_RETURN ? BLANK : byte)));
}

export const NDJSON_TYPE = 'application/x-ndjson';

/** An answer looked into: `lines` when it has an array of accounts, else the `json` it was. */
type Divided = Readonly<{ kind: 'lines' | 'json'; answer: ResponseStart }>;

/** Bytes of an answer that are held while its array of accounts has not begun; past them it is passed on as JSON. */
export const HELD_BYTES_MAX = 65_536;

/** Whether the caller asks for lines: `Accept` names `application/x-ndjson`. */
export function wantsLines(headers: Headers): boolean {
  const ranges = headers.get('accept')?.toLowerCase().split(',') ?? [];
  return ranges.some((range) => range.split(';')[0]?.trim() === NDJSON_TYPE);
}

/**
 * One account a line, and a last line with their number and the slot, when the answer has accounts; the answer as it
 * was when it has none. It must not be compressed. A stream that breaks off, or is no whole answer, is cut before the
 * last line. Aborting `signal` (the caller left) cancels a stream that is not read yet. Never rejects.
 */
export async function divided(answer: ResponseStart, signal: AbortSignal): Promise<Divided> {
  return answer.kind === 'whole' ? dividedWhole(answer) : dividedStream(answer.body, signal);
}

function dividedWhole(answer: Extract<ResponseStart, { kind: 'whole' }>): Divided {
  const lines = createAccountLines();
  const out = lines.push(Buffer.from(answer.bytes.buffer, answer.bytes.byteOffset, answer.bytes.length));
  const last = lines.last();
  if (out === undefined || last === undefined) return { kind: 'json', answer };
  return { kind: 'lines', answer: { ...answer, bytes: new Uint8Array(Buffer.concat([out, last])) } };
}

async function dividedStream(body: StreamBody, signal: AbortSignal): Promise<Divided> {
  const lines = createAccountLines();
  const reader = Promise.withResolvers<void>();
  const decided = Promise.withResolvers<void>();
  let kind: Divided['kind'] | undefined;
  let held: Buffer[] = [];
  let heldBytes = 0;
  let write: WritePiece | undefined;
  let broken = false;
  if (signal.aborted) reader.resolve();
  else signal.addEventListener('abort', () => reader.resolve(), { once: true });

  const ended = body.pipe((piece) => {
    if (broken) return undefined;
    if (kind === 'json') return handOn(piece);
    const out = lines.push(piece);
    if (out !== undefined && lines.hasBegun()) {
      if (kind === undefined) decide('lines');
      return out.length === 0 ? undefined : handOn(out);
    }
    return kind === 'lines' ? evicted() : hold(piece, out === undefined);
  });
  void ended.then(() => decide(kind ?? 'json'));
  await decided.promise;
  return { kind: kind ?? 'json', answer: { kind: 'stream', body: { pipe, cancel }, encoding: undefined } };

  function decide(is: Divided['kind']): void {
    kind = is;
    if (is === 'lines') held = [];
    decided.resolve();
  }

  /** Keeps a piece while it is not known what the answer is; `hopeless` when it cannot become lines any more. */
  function hold(piece: Buffer, hopeless: boolean): unknown {
    held.push(Buffer.from(piece));
    heldBytes += piece.length;
    if (!hopeless && heldBytes < HELD_BYTES_MAX) return undefined;
    decide('json');
    return reader.promise;
  }

  /** Writes to the reader, or asks the backend to wait for one. */
  function handOn(piece: Buffer): unknown {
    if (write !== undefined) return write(piece);
    held.push(Buffer.from(piece));
    return reader.promise;
  }

  function evicted(): undefined {
    broken = true;
    reject();
  }

  /** The backend's fault, which nothing else on the way has seen. */
  function reject(): void {
    if (body.reject === undefined) body.cancel();
    else body.reject();
  }

  async function pipe(to: WritePiece): Promise<StreamEnd> {
    for (let piece = held.shift(); piece !== undefined; piece = held.shift()) await to(piece);
    write = to;
    reader.resolve();
    const end = await ended;
    if (kind !== 'lines') return end;
    const last = lines.last();
    if (broken) return { kind: 'cut', reason: 'bad-json', bytes: end.bytes };
    if (end.kind === 'complete' && last === undefined) {
      reject();
      return { kind: 'cut', reason: 'bad-json', bytes: end.bytes };
    }
    if (end.kind === 'complete' && last !== undefined) await to(last);
    return end;
  }

  function cancel(): void {
    body.cancel();
    reader.resolve();
  }
}
