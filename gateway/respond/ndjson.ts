import {
  afterSpace,
  afterValue,
  BACKSLASH,
  CLOSE_ARRAY,
  COMMA,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  valueAt,
} from '../json/scan.ts';
import { memberOf } from '../json/slices.ts';
import { beforeEnd } from '../json/structure.ts';
import type { HeadFields } from '../../shared/keys/carrier.ts';
import { rangesIn } from '../http/fields.ts';
import { EMPTY } from '../http/slab.ts';
import type { StreamEnd, WritePiece } from '../http/stream-body.ts';
import type { ResponseStart, StreamedAnswer } from '../upstream/response-reader.ts';
import { JSON_TYPE } from './refusal.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BLANK = 0x20;

/** The kind of a byte outside strings; 0: one of a value. */
const SPACE = 1;
const BETWEEN = 2;
const OPEN = 3;
const CLOSE = 4;
const STRING = 5;
const KIND = new Uint8Array(256);
for (const c of ' \t\r\n') KIND[c.charCodeAt(0)] = SPACE;
for (const c of '{[') KIND[c.charCodeAt(0)] = OPEN;
for (const c of '}]') KIND[c.charCodeAt(0)] = CLOSE;
KIND[COMMA] = BETWEEN;
KIND[QUOTE] = STRING;

/**
 * Cuts the accounts of a `getProgramAccounts` answer into lines, however its bytes are cut. An account is passed on as
 * the bytes it is, so every number and every escape keeps its text. Why not stream-json 3.8.0: it keeps numbers, but
 * writes escapes anew, and on 64 MB in 150,000 accounts (64 KiB pieces, Bun 1.4.5) its parser, pick and stringer made
 * 43 MB/s before any line was cut; this makes 330 to 740.
 */
export class AccountLines {
  /** The answer without its accounts: the bytes up to their `[`, or all while it is not found, and those from their `]` on. */
  frame = EMPTY;
  #phase: 'before' | 'within' | 'after' | 'broken' = 'before';
  #accounts = 0;
  /** The depth inside the account under way. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The account under way has bytes. */
  #hasBytes = false;

  /** Whether the array of accounts has begun. */
  get hasArray(): boolean {
    return this.#phase !== 'before';
  }

  /** Takes the next bytes; gives those of lines among them, `undefined` from the first that cannot be an answer on. */
  push(piece: Buffer): Buffer | undefined {
    let bytes = piece;
    let lines = EMPTY;
    if (this.#phase === 'before') {
      this.frame = Buffer.concat([this.frame, piece]);
      const start = accountsAt(this.frame);
      if (start === -1) return EMPTY;
      bytes = this.frame.subarray(start);
      this.frame = this.frame.subarray(0, start);
      this.#phase = 'within';
    }
    if (this.#phase === 'within') {
      // A line feed stands in the place of a comma or of the bracket, so the lines are never longer.
      lines = withoutBreaks(bytes);
      const [end, length] = this.#cut(lines);
      lines = lines.subarray(0, length);
      bytes = bytes.subarray(end);
      if (end === -1) this.#phase = 'broken';
    }
    if (this.#phase === 'after') this.frame = Buffer.concat([this.frame, bytes]);
    if (this.frame.length > FRAME_BYTES_MAX) this.#phase = 'broken';
    return this.#phase === 'broken' ? undefined : lines;
  }

  /** Makes lines of bytes, in their place; gives the index of the array's `]`, or the end, or -1; and the length of the lines. */
  #cut(bytes: Buffer): readonly [number, number] {
    // Locals, because a field is written to memory at every step.
    let depth = this.#depth;
    let hasBytes = this.#hasBytes;
    let length = 0;
    let run = 0;
    const move = (to: number) => {
      if (length < run && run < to) bytes.copyWithin(length, run, to);
      length += to - run;
      run = to;
    };
    let i = this.#inString ? stringEnd(bytes, 0, this.#escaped) : 0;
    while (i >= 0 && i < bytes.length) {
      const byte = bytes[i++] ?? 0;
      const kind = KIND[byte];
      if (kind === 0) hasBytes = true;
      else if (kind === STRING) {
        hasBytes = true;
        i = stringEnd(bytes, i, false);
      } else if (kind === OPEN) {
        hasBytes = true;
        depth++;
      } else if (depth > 0) {
        if (kind === CLOSE) depth--;
      } else if (kind === SPACE) {
        move(i - 1);
        run++;
      } else {
        const isEnd = byte === CLOSE_ARRAY;
        if (!hasBytes && (!isEnd || this.#accounts > 0)) return [-1, 0];
        if (hasBytes) {
          bytes[i - 1] = LINE_FEED;
          this.#accounts++;
        }
        if (kind === CLOSE) {
          move(hasBytes ? i : i - 1);
          this.#phase = 'after';
          return [isEnd ? i - 1 : -1, length];
        }
        hasBytes = false;
      }
    }
    this.#depth = depth;
    this.#hasBytes = hasBytes;
    this.#inString = i < 0;
    this.#escaped = i === UNENDED_ESCAPED;
    move(bytes.length);
    return [bytes.length, length];
  }

  /** `{"accounts":N,"slot":S}` and a line feed; `undefined` while the answer is not whole or has no array. */
  last(): Buffer | undefined {
    const { frame } = this;
    if (this.#phase !== 'after' || afterSpace(frame, afterValue(frame, 0)) !== frame.length) return undefined;
    const context = memberOf(memberOf(frame, 'result'), 'context');
    const slot = memberOf(context, 'slot')?.toString() ?? '';
    // In the answer's own digits.
    return Buffer.from(`{"accounts":${this.#accounts},"slot":${/^\d+$/.test(slot) ? slot : null}}\n`);
  }
}

/** A string went on past the bytes, and its next character is not escaped, or is. */
const UNENDED = -1;
const UNENDED_ESCAPED = -2;

/** After so many bytes the rest of a string is searched for its end, which costs as much as they do. */
const NEAR_BYTES = 24;

/** The index after the end of a string that has begun; negative: it goes on past the bytes. `escaped`: the byte at `from` is. */
function stringEnd(bytes: Buffer, from: number, escaped: boolean): number {
  let i = escaped ? from + 1 : from;
  while (i < bytes.length) {
    for (const near = Math.min(bytes.length, i + NEAR_BYTES); i < near; i++) {
      if (bytes[i] === QUOTE) return i + 1;
      if (bytes[i] === BACKSLASH) i++;
    }
    if (i < bytes.length) i = beforeEnd(bytes, i);
  }
  return i > bytes.length ? UNENDED_ESCAPED : UNENDED;
}

/** An answer without its accounts is short, unless its caller's id is not. */
const FRAME_BYTES_MAX = 1_048_576;

/** Where the elements of `result` or `result.value` begin in the first bytes of an answer; -1: no such array begins in them. */
function accountsAt(bytes: Uint8Array): number {
  const result = valueAt(bytes, afterSpace(bytes, 0), RESULT);
  const array = bytes[result] === OPEN_OBJECT ? valueAt(bytes, result, VALUE) : result;
  return bytes[array] === OPEN_ARRAY ? array + 1 : -1;
}

const RESULT = Buffer.from('"result"');
const VALUE = Buffer.from('"value"');

/** A copy of the bytes with a space for every line break: none may stand inside a line, and nodes write none. */
function withoutBreaks(bytes: Buffer): Buffer<ArrayBuffer> {
  const copy = Buffer.from(bytes);
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return copy;
  for (let i = 0; i < copy.length; i++)
    if (copy[i] === LINE_FEED || copy[i] === CARRIAGE_RETURN) copy[i] = BLANK;
  return copy;
}

const NDJSON_TYPE = 'application/x-ndjson';

/** Lines when the answer has an array of accounts, else the JSON it was. */
type Divided = Readonly<{ type: string; answer: ResponseStart }>;

/** Bytes of an answer that are held while its array of accounts has not begun; past them it is passed on as JSON. */
export const HELD_BYTES_MAX = 65_536;

/** Whether the caller asks for lines: `Accept` names `application/x-ndjson`. */
export function wantsLines(headers: HeadFields): boolean {
  return rangesIn(headers.get('accept')).some(({ name, isRefused }) => name === NDJSON_TYPE && !isRefused);
}

/**
 * One account a line, and a last line with their number and the slot; an answer without accounts as it was. A
 * stream that breaks off is cut before the last line. Aborting `signal` cancels one that is not read yet. Never rejects.
 */
export async function divided(answer: ResponseStart, signal: AbortSignal): Promise<Divided> {
  if (answer.kind === 'stream') return dividedStream(answer, signal);
  const lines = new AccountLines();
  const out = lines.push(Buffer.from(answer.bytes));
  const last = lines.last();
  if (out === undefined || last === undefined) return { type: JSON_TYPE, answer };
  return { type: NDJSON_TYPE, answer: { ...answer, bytes: Buffer.concat([out, last]) } };
}

async function dividedStream({ body, ...judged }: StreamedAnswer, signal: AbortSignal): Promise<Divided> {
  const lines = new AccountLines();
  const decided = Promise.withResolvers<void>();
  const reader = Promise.withResolvers<void>();
  let kind: 'lines' | 'json' | undefined;
  /** Lines that came behind the frame, from the piece on that showed what the answer is, and waits for a reader. */
  let first = EMPTY;
  let write: WritePiece | undefined;
  let broken = false;
  // What waits for a reader must end when none comes any more.
  if (signal.aborted) reader.resolve();
  else signal.addEventListener('abort', () => reader.resolve(), { once: true });

  const ended = body.pipe((piece) => {
    const out = kind === 'json' ? piece : lines.push(piece);
    if (out === undefined) reject();
    if (kind !== undefined) {
      if (out === undefined || out.length === 0) return undefined;
      if (write !== undefined) return write(out);
      first = Buffer.concat([first, out]); // it did not wait for the reader
      return reader.promise;
    }
    // While it is not known what the answer is, it is held; then the backend waits for the reader.
    if (!lines.hasArray && lines.frame.length < HELD_BYTES_MAX) return undefined;
    kind = lines.hasArray ? 'lines' : 'json';
    if (lines.hasArray) first = Buffer.from(out ?? EMPTY);
    decided.resolve();
    return reader.promise;
  });
  await Promise.race([decided.promise, ended]);
  kind ??= 'json';
  const type = kind === 'lines' ? NDJSON_TYPE : JSON_TYPE;
  return { type, answer: { ...judged, body: { pipe, cancel }, length: undefined } };

  /** The backend's fault, which nothing else on the way has seen. */
  function reject(): void {
    if (broken) return;
    broken = true;
    if (body.reject === undefined) body.cancel();
    else body.reject('bad-json');
  }

  async function pipe(to: WritePiece): Promise<StreamEnd> {
    const start = kind === 'lines' ? first : Buffer.concat([lines.frame, first]);
    write = to;
    if (start.length > 0) await to(start);
    reader.resolve();
    const end = await ended;
    if (kind !== 'lines' || (end.kind === 'cut' && !broken)) return end;
    const last = lines.last();
    if (last !== undefined) {
      await to(last);
      return end;
    }
    reject();
    return { kind: 'cut', reason: 'bad-json', bytes: end.bytes };
  }

  function cancel(): void {
    body.cancel();
    reader.resolve();
  }
}
