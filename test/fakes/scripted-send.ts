import type { Post } from '../../deploys/delivery/post.ts';
import type { Send } from '../../deploys/delivery/send.ts';
import type { Sent } from '../../deploys/outbox/outcome.ts';

/** A post that was made, and how to end it. Ending it twice is a mistake in the test. */
export type SeenPost = Readonly<{
  post: Post;
  id: string;
  text: string;
  isOpen(): boolean;
  end(sent: Sent): void;
}>;

type Answered = Extract<Sent, { kind: 'answered' }>;

const PHASES = { dnsMs: 1, connectMs: 1, tlsMs: 1, firstByteMs: 1, totalMs: 4 };

/** An answer with a status and a body. */
export function answered(status: number, text = '', bodyKind: Answered['bodyKind'] = 'whole'): Sent {
  return {
    kind: 'answered',
    status,
    fields: [['Content-Type', 'text/plain']],
    body: Buffer.from(text),
    bodyKind,
    phases: PHASES,
    remoteAddress: '198.41.0.44',
  };
}

export function failedWith(code: Extract<Sent, { kind: 'failed' }>['code']): Sent {
  return { kind: 'failed', code, detail: `${code} in the script`, phases: PHASES };
}

/**
 * A network in place of the sender's: `script` says how a post ends, or leaves it open for the test to end. Like the
 * sender it never rejects, and ends a post at once as `aborted` when its signal aborts.
 */
export function createScriptedSend(script: (post: SeenPost) => Sent | undefined = () => undefined) {
  const posts: SeenPost[] = [];
  let [open, openMost] = [0, 0];

  const send: Send = (post, signal) => {
    const { promise, resolve } = Promise.withResolvers<Sent>();
    let isOver = false;
    const end = (sent: Sent) => {
      if (isOver) throw new Error('this post has ended');
      isOver = true;
      open--;
      signal.removeEventListener('abort', abort);
      resolve(sent);
    };
    const abort = () => end(failedWith('aborted'));
    const seen = {
      post,
      id: String(post.headers['X-Service-Delivery']),
      text: Buffer.from(post.body).toString(),
      isOpen: () => !isOver,
      end,
    };
    posts.push(seen);
    openMost = Math.max(openMost, ++open);
    if (signal.aborted) abort();
    else {
      signal.addEventListener('abort', abort, { once: true });
      const sent = script(seen);
      if (sent !== undefined) end(sent);
    }
    return promise;
  };

  return { send, posts, open: () => open, openMost: () => openMost };
}
