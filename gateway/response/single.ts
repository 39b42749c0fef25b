import type { StreamBody, StreamEnd } from '../backend/begun.ts';
import { SPENT } from '../http/spent.ts';

/**
 * One backend's answer as a body of ours, piece by piece, waiting while its reader is behind. It ends cleanly only
 * when the answer was whole; otherwise the caller's connection is cut (DESIGN 3.6). `onEnd` is told how it ended.
 */
export function streamSingle(body: StreamBody, onEnd: (end: StreamEnd) => void): ReadableStream {
  const source: Bun.DirectUnderlyingSource = {
    type: 'direct',
    async pull(controller) {
      const end = await body.pipe((piece) => {
        const wait: unknown = controller.write(piece);
        return wait instanceof Promise ? wait.then(() => SPENT) : SPENT;
      });
      onEnd(end);
      if (end.kind === 'complete') controller.close();
      else controller.close(new Error(`the answer broke off: ${end.reason}`));
    },
    cancel: () => body.cancel(),
  };
  return new ReadableStream(source);
}
