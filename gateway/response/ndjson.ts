import type { Begun, StreamBody, StreamEnd } from '../backend/begun.ts';
import type { WritePiece } from '../http/reply.ts';
import { createAccountLines } from './account-lines.ts';

export const NDJSON_TYPE = 'application/x-ndjson';

/** An answer looked into: `lines` when it has an array of accounts, else the `json` it was. */
export type Divided = Readonly<{ kind: 'lines' | 'json'; answer: Begun }>;

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
 * last line. Aborting `signal` (the caller left) lets go of a stream that nobody reads yet. Never rejects.
 */
export async function divided(answer: Begun, signal: AbortSignal): Promise<Divided> {
  return answer.kind === 'whole' ? dividedWhole(answer) : dividedStream(answer.body, signal);
}

function dividedWhole(answer: Extract<Begun, { kind: 'whole' }>): Divided {
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
    return kind === 'lines' ? letGo() : hold(piece, out === undefined);
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
    held.push(piece);
    heldBytes += piece.length;
    if (!hopeless && heldBytes < HELD_BYTES_MAX) return undefined;
    decide('json');
    return reader.promise;
  }

  /** Writes to the reader, or asks the backend to wait for one. */
  function handOn(piece: Buffer): unknown {
    if (write !== undefined) return write(piece);
    held.push(piece);
    return reader.promise;
  }

  function letGo(): undefined {
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
