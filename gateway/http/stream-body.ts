/** The reason of what did not come because its backend gave it up. */
export const LEFT_OUT = 'it is left out, or does not answer its probe';

/** The reason of what a backend is taken to have lost while it hung: it answers others again. */
export const LOST = 'it answers again, and not this';

/**
 * Why a body broke off: the connection closed, was silent too long, broke its framing, or was cancelled; `unread`: its
 * reader was behind until the backend gave up, or read nothing for too long; `evicted`: it was not read while other
 * accounts waited for its connection; `bad-json`: it is no whole answer; `LEFT_OUT` and `LOST`: its backend was given up before any of it was passed on.
 */
export type CutReason =
  | 'closed'
  | 'stalled'
  | 'bad-framing'
  | 'cancelled'
  | 'unread'
  | 'evicted'
  | 'bad-json'
  | typeof LEFT_OUT
  | typeof LOST;

/** Takes a piece of a body; whoever keeps it copies it, for its memory is used again. The sender waits for a promise. */
export type WritePiece = (piece: Buffer) => unknown;

/** A body under way from a backend. Single-use: `pipe` or `cancel` must be called, or a connection stays taken. */
export type StreamBody = Readonly<{
  /** Hands on every piece as it comes, waiting where `write` gives a promise. Never rejects. */
  pipe(write: WritePiece): Promise<StreamEnd>;
  /** Lets go of it: the backend's connection is closed. */
  cancel(reason?: 'evicted'): void;
  /** Says that its reader may take it; `evict` is called when another account needs its connection and it is not read. */
  offer?(evict: () => void): void;
  /** Reports that it is no whole answer, or not in time, although nothing on its way noticed: the backend cut it. */
  reject?(reason: 'bad-json' | 'stalled'): void;
}>;

/** How a stream ended. `bytes`: its length without the framing, as far as it came. Only `complete` may end the caller's answer cleanly. */
export type StreamEnd =
  | { readonly kind: 'complete'; readonly bytes: number }
  | { readonly kind: 'cut'; readonly reason: CutReason; readonly bytes: number };

/** Whether a stream was cut because it was not read: the call is paid for, and the backend is not to blame. */
export function isUnread(end: StreamEnd): boolean {
  return end.kind === 'cut' && (end.reason === 'unread' || end.reason === 'evicted');
}

/** Reads a body to its end; says why not when it is cut, or cancelled above `bytesMax`. Never rejects. */
export async function readAll(body: StreamBody, bytesMax: number): Promise<Uint8Array<ArrayBuffer> | string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const end = await body.pipe((piece) => {
    bytes += piece.length;
    if (bytes > bytesMax) body.cancel();
    else pieces.push(Buffer.from(piece));
  });
  if (bytes > bytesMax) return 'an answer too long';
  return end.kind === 'cut' ? `an answer cut: ${end.reason}` : new Uint8Array(Buffer.concat(pieces));
}

/** Changes to a body; whatever is absent goes on as it comes. */
type BodyChanges = Readonly<{
  /** Hands a piece to `write`, changed or not; gives what is to be waited for. */
  piece?(piece: Buffer, write: WritePiece): unknown;
  /** Called when all pieces have come; gives the end that the reader is told. */
  end?(end: StreamEnd, write: WritePiece): StreamEnd | Promise<StreamEnd>;
  /** Called when it has been cancelled. */
  cancel?(reason?: 'evicted'): void;
  /** In place of the body's own. */
  reject?: StreamBody['reject'];
}>;

/** The body with something done to its pieces or its end on their way; offers and rejections go on to it. */
export function mapBody(body: StreamBody, { piece, end, cancel, reject }: BodyChanges): StreamBody {
  return {
    async pipe(write) {
      const ended = await body.pipe(piece === undefined ? write : (bytes) => piece(bytes, write));
      return end === undefined ? ended : end(ended, write);
    },
    cancel(reason) {
      body.cancel(reason);
      cancel?.(reason);
    },
    offer: (evict) => body.offer?.(evict),
    reject: reject ?? ((reason) => (body.reject === undefined ? body.cancel() : body.reject(reason))),
  };
}

/** The body, cancelled when `signal` aborts; `onEnd` is called once, however it ends. */
export function watched(body: StreamBody, signal: AbortSignal, onEnd?: (end: StreamEnd) => void): StreamBody {
  let isOver = false;
  const finish = (end: StreamEnd) => {
    if (!isOver) onEnd?.(end);
    isOver = true;
    signal.removeEventListener('abort', leave);
    return end;
  };
  const watching = mapBody(body, {
    end: finish,
    cancel: (reason) => void finish({ kind: 'cut', reason: reason ?? 'cancelled', bytes: 0 }),
  });
  const leave = () => watching.cancel();
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  return watching;
}
