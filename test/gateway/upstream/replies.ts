import type { Framing } from '../../../gateway/http/body-decoder.ts';
import type { StreamEnd } from '../../../gateway/http/stream-body.ts';
import type { HttpReply } from '../../../gateway/upstream/http-connection.ts';

export type Fields = Readonly<{
  status?: number;
  isJson?: boolean;
  encoding?: string;
  /** By default the length of the whole body. */
  framing?: Framing;
  /** How it ends, when not completely. */
  cut?: Extract<StreamEnd, { kind: 'cut' }>['reason'];
  /** Whether all of it has come with the head. */
  ended?: boolean;
}>;

export type Pieces = string | Uint8Array | readonly (string | Uint8Array)[];

/** A reply as a backend might send it, its first piece with its head, and whether its body was thrown away. */
export function reply(body: Pieces, fields: Fields = {}) {
  const all = typeof body === 'string' || body instanceof Uint8Array ? [body] : body;
  const coming = all.map((piece) => Buffer.from(piece));
  const bytes = coming.reduce((sum, piece) => sum + piece.length, 0);
  const { cut } = fields;
  const pieces = coming.splice(0, 1);
  const last: StreamEnd =
    cut === undefined ? { kind: 'complete', bytes } : { kind: 'cut', reason: cut, bytes };
  let end = fields.ended === true ? last : undefined;
  const state = { cancelled: false };
  const made: HttpReply = {
    kind: 'reply',
    head: {
      status: fields.status ?? 200,
      isJson: fields.isJson ?? true,
      encoding: fields.encoding,
      framing: fields.framing ?? bytes,
      reusable: true,
    },
    body: {
      pieces,
      get end() {
        return end;
      },
      offer: () => undefined,
      cancel: () => void (state.cancelled = true),
      async more() {
        if (coming.length === 0) end = last;
        pieces.push(...coming.splice(0, 1));
      },
      async pipe(write) {
        const next = () => pieces.shift() ?? coming.shift();
        for (let piece = next(); piece !== undefined; piece = next()) {
          if (state.cancelled) break;
          await write(piece);
          piece.fill('#'); // a connection uses its memory again
        }
        return state.cancelled ? { kind: 'cut', reason: 'cancelled', bytes } : last;
      },
    },
  };
  return { made, state };
}
