import type { BodyEnd, CutReason, WritePiece } from '../http/reply.ts';

/** An answer that has begun. `encoding` is its content-encoding, passed on untouched. */
export type Begun =
  /** All of it, held: it is small. */
  | { readonly kind: 'whole'; readonly bytes: Uint8Array<ArrayBuffer>; readonly encoding: string | undefined }
  /** Its bytes as they come. */
  | {
      readonly kind: 'stream';
      readonly body: StreamBody;
      readonly encoding: string | undefined;
      /** The slot that its first bytes say it was read at; 0 or absent: none. */
      readonly slot?: number;
    };

/** A body under way from a backend. Single-use: `pipe` or `cancel` must be called, or a connection stays taken. */
export type StreamBody = Readonly<{
  /** Hands on every piece as it comes, waiting where `write` gives a promise. Never rejects. */
  pipe(write: WritePiece): Promise<StreamEnd>;
  /** Lets go of it: the backend's connection is closed. */
  cancel(): void;
  /** Says that what came is no whole answer, though nobody noticed on its way: it is a cut of the backend's. */
  reject?(): void;
}>;

/** How a stream ended. Only `complete` may end the caller's answer cleanly (DESIGN 3.6). */
export type StreamEnd =
  | Extract<BodyEnd, { kind: 'complete' }>
  | { readonly kind: 'cut'; readonly reason: CutReason | 'bad-json'; readonly bytes: number };
