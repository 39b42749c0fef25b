import type { StreamBody } from '../backend/begun.ts';
import type { Tally } from './tally.ts';

/** Where the member `error` must have begun in an error that is streamed: behind an id of any length that is asked with. */
const HEAD_BYTES = 512;

const ERROR_FIRST =
  /^\s*\{(?:\s*"(?:jsonrpc|id)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|[\d.eE+-]+|null)\s*,)*\s*"error"\s*:\s*\{/;

/** The body with its first byte timed and every byte that it hands on counted, also of one that breaks off; one that begins as an error is one. */
export function countedBody(
  body: StreamBody,
  tally: Pick<Tally, 'answered' | 'bytes' | 'error'>,
  place: number,
): StreamBody {
  return {
    ...body,
    pipe(write) {
      let first = true;
      return body.pipe((piece) => {
        if (first) {
          tally.answered(place);
          if (ERROR_FIRST.test(piece.toString('latin1', 0, HEAD_BYTES))) tally.error(place);
        }
        first = false;
        tally.bytes(place, piece.length);
        return write(piece);
      });
    },
  };
}
