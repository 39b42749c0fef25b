import type { ResponseHead } from './response-head.ts';

/** How a body ended. `bytes` is its length without the framing, as far as it came. */
export type BodyEnd =
  | { readonly kind: 'complete'; readonly bytes: number }
  | { readonly kind: 'cut'; readonly reason: CutReason; readonly bytes: number };

/** Why a body broke off: the connection closed, nothing came for too long, the framing broke, or we let go of it. */
export type CutReason = 'closed' | 'stalled' | 'bad-framing' | 'cancelled';

/**
 * Takes a piece of a body; a promise asks the sender to wait for it. `SPENT` (`spent.ts`), also as a promise's value,
 * gives the piece's memory back; whoever answers anything else keeps the piece.
 */
export type WritePiece = (piece: Buffer) => unknown;

/** A body under way. Single-use: one of the three must be called, or its connection stays taken. */
export type ReplyBody = Readonly<{
  /** Hands every piece to `write` as it comes, never more than one read ahead of a promise it gave. Never rejects. */
  pipe(write: WritePiece): Promise<BodyEnd>;
  /** Lets go of it and of its connection. */
  cancel(): void;
  /** What has already come: pieces that `pipe` will hand on first, and whether that is all. */
  begun(): Readonly<{ pieces: readonly Buffer[]; ended: boolean }>;
}>;

export type HttpReply = Readonly<{ kind: 'reply'; head: ResponseHead; body: ReplyBody }>;

/** Why no head came. `unsent` means that the backend cannot have seen a byte of the request. */
export type NoReply =
  | { readonly kind: 'unsent'; readonly reason: string }
  /** `stale`: the connection had been used before and closed without a byte; a new one may do better. */
  | { readonly kind: 'no-answer'; readonly reason: string; readonly stale: boolean };
