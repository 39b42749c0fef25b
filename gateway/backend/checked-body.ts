import { createStructure } from '../response/structure.ts';
import type { StreamBody } from './begun.ts';

/** The body with its structure followed: it is cut at the first byte that cannot be JSON, or when it ends too early. */
export function checked(body: StreamBody): StreamBody {
  const structure = createStructure();
  return {
    cancel: body.cancel,
    async pipe(write) {
      let broken = false;
      const end = await body.pipe((piece) => {
        if (broken) return undefined;
        if (structure.push(piece)) return write(piece);
        broken = true;
        body.cancel();
        return undefined;
      });
      if (broken || (end.kind === 'complete' && !structure.isComplete())) {
        return { kind: 'cut', reason: 'bad-json', bytes: end.bytes };
      }
      return end;
    },
  };
}
