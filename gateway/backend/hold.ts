import type { Clock } from '../../shared/clock.ts';
import type { BodyEnd, ReplyBody, WritePiece } from '../http/reply.ts';
import type { StreamBody } from './begun.ts';

/** How long a held body is waited for: until `dueAtMs` of the clock's monotonic time, or until `signal` aborts. */
export type Patience = Readonly<{ clock: Clock; dueAtMs: number; signal: AbortSignal }>;

/** What to do about a body by its next piece: to wait for more, to hand on what came and comes, or to let go of it. */
export type Choice = 'hold' | 'pass' | 'refuse';

/** What became of a body that was held. */
export type Held =
  /** It ended while it was held. One that came too late is `stalled`, one whose caller left is `cancelled`. */
  | { readonly kind: 'ended'; readonly end: BodyEnd; readonly bytes: Uint8Array<ArrayBuffer> }
  /** It is to be passed on; `pieces` are what has come, which `body` gives first. */
  | { readonly kind: 'passed'; readonly body: StreamBody; readonly pieces: readonly Buffer[] }
  /** It was let go of. */
  | { readonly kind: 'refused' };

/**
 * Holds a body for as long as `choose`, asked about each piece, says so. It bounds what is held; time is bounded here,
 * so that neither a body that stalls nor one that drips keeps a call, its place or its permit. Never rejects.
 */
export async function hold(
  body: ReplyBody,
  choose: (piece: Buffer) => Choice,
  patience: Patience,
): Promise<Held> {
  const pieces: Buffer[] = [];
  const decided = Promise.withResolvers<Held>();
  const open = Promise.withResolvers<void>();
  let write: WritePiece | undefined;
  let choice: Choice = 'hold';
  const waited = wait(body, patience);
  const piped = body.pipe((piece) => {
    if (write !== undefined) return write(piece);
    if (choice === 'hold') choice = choose(piece);
    if (choice !== 'refuse') pieces.push(piece);
    if (choice === 'hold') return undefined;
    waited.stop();
    if (choice === 'refuse') {
      decided.resolve({ kind: 'refused' });
      return body.cancel();
    }
    decided.resolve({ kind: 'passed', body: { pipe, cancel: body.cancel }, pieces });
    return open.promise; // nothing more is read before somebody takes it
  });
  void piped.then((end) => {
    waited.stop();
    const late = end.kind === 'cut' && waited.isLate();
    const bytes = new Uint8Array(Buffer.concat(pieces));
    decided.resolve({ kind: 'ended', end: late ? { ...end, reason: 'stalled' } : end, bytes });
  });
  return decided.promise;

  async function pipe(given: WritePiece): Promise<BodyEnd> {
    for (const piece of pieces.splice(0)) {
      const wait = given(piece);
      if (wait instanceof Promise) await wait.catch(() => undefined); // a reader that fails cancels by itself
    }
    write = given;
    open.resolve();
    return piped;
  }
}

type Waited = Readonly<{ stop(): void; isLate(): boolean }>;

/** Lets go of the body when its time is over or its caller leaves, unless it is stopped. */
function wait(body: ReplyBody, { clock, dueAtMs, signal }: Patience): Waited {
  const over = new AbortController();
  let late = false;
  const leave = () => body.cancel();
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  void clock.sleep(Math.max(0, dueAtMs - clock.monotonic()), over.signal).then(() => {
    if (over.signal.aborted) return;
    late = true;
    body.cancel();
  });
  return {
    stop() {
      over.abort();
      signal.removeEventListener('abort', leave);
    },
    isLate: () => late,
  };
}
