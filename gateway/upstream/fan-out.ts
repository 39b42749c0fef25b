import { type Call, requestBytes } from '../request/envelope.ts';
import type { Backend } from './backend.ts';
import { NODE_UNHEALTHY } from './failure.ts';
import type { CallReply } from './failover.ts';
import { createForward, type ForwardParts, readReply, type TimedContext } from './forward.ts';
import { type ForwardRoute, takersOf } from './selection.ts';

/**
 * Gives one signed transaction, which the chain takes once, to up to `count` backends in the same bytes. The first
 * acceptance, or that it was processed already, answers; the others go on by themselves. Never rejects.
 */
export type FanOut = (
  call: Call,
  route: ForwardRoute,
  context: TimedContext,
  count: number,
) => Promise<CallReply>;

type FanOutParts = ForwardParts &
  Readonly<{
    /** Called for each backend beyond the first that is given a transaction, and again when one of them accepted first. */
    onFanOut(outcome: 'made' | 'won'): void;
  }>;

/** Bounds the answer of a node about a transaction. */
const ANSWER_BYTES_MAX = 1_048_576;

export function createFanOut(parts: FanOutParts): FanOut {
  const { clock, pool, budget, onResponseStart, onFanOut } = parts;
  const forward = createForward(parts);
  // Copies of a call are counted once, here.
  const sendCopy = createForward({
    ...parts,
    budget: { ...budget, deposit: () => undefined },
    onResponseStart: () => undefined,
  });

  return async function fanOut(call, route, context, count) {
    const able = takersOf(route, requestBytes(call, route.member));
    const ordered = pool.inOrder(able, pool.needOf(call, route.method, context.accountId));
    const ready = ordered.filter(isReady);
    const legs = Math.min(count, ready.length);
    if (legs < 2) return forward(call, route, context);
    // The others are shared out, for what `forward` takes to another backend: none gets it twice.
    const all = [...ready, ...ordered.filter((backend) => !ready.includes(backend))];
    const shares = Array.from({ length: legs }, (_, leg) => all.filter((_backend, i) => i % legs === leg));
    budget.deposit();
    const sent = shares.map((backends) => sendTo(call, { ...route, backends }, context));
    for (let copy = 1; copy < legs; copy++) onFanOut('made');
    void Promise.all(sent).then(() => context.onSettled?.());
    const reply = await firstOf(sent);
    if (reply.kind === 'whole') onResponseStart(route.method, clock.monotonic() - context.startedMs);
    return reply;
  };

  /** Whether it is given a copy: it takes part, and nothing says that it will fail or hang. */
  function isReady(backend: Backend): boolean {
    const { health, hasRoom, isSilent } = backend;
    return hasRoom && !isSilent && health.excludedBecause === undefined && !backend.isFailing(clock);
  }

  async function sendTo(call: Call, route: ForwardRoute, context: TimedContext): Promise<CallReply> {
    const start = await sendCopy(call, route, { ...context, onSettled: undefined });
    const reply = await readReply(start, ANSWER_BYTES_MAX, clock);
    // Its node may have taken the transaction, whatever kept the rest of the answer away.
    return start.kind === 'stream' && reply.kind !== 'whole' ? { kind: 'maybe-sent' } : reply;
  }

  /** The first that says that the chain has it or will, or of all replies the one with the lowest rank, the first of equal ones. */
  async function firstOf(sent: readonly Promise<CallReply>[]): Promise<CallReply> {
    const taken = sent.map((each, leg) =>
      each.then((reply) => {
        if (rankOf(reply) > PROCESSED) throw REFUSED;
        return { reply, leg };
      }),
    );
    const first = await Promise.any(taken).catch(() => undefined);
    if (first === undefined)
      return (await Promise.all(sent)).reduce((best, next) => (rankOf(next) < rankOf(best) ? next : best));
    if (first.leg > 0 && rankOf(first.reply) === ACCEPTED) onFanOut('won');
    return first.reply;
  }
}

const ACCEPTED = 0;
const PROCESSED = 1;
const REFUSED = new Error('refused');

/** The best reply has the lowest rank. No refusal takes back what another backend may have taken. */
function rankOf(reply: CallReply): number {
  switch (reply.kind) {
    case 'whole': {
      const { code, message = '' } = reply;
      if (code === undefined) return ACCEPTED;
      if (message.includes('already been processed')) return PROCESSED;
      // The node says that it is not fit to judge.
      if (code === NODE_UNHEALTHY) return 5;
      // This node alone may not have seen the blockhash yet; what another one finds is about the transaction itself.
      return message.includes('Blockhash not found') ? 4 : 3;
    }
    case 'maybe-sent':
      return 2;
    case 'caller-left':
      return reply.unsent === true ? 8 : 6;
    default:
      return 'replied' in reply && reply.replied === true ? 6 : 7;
  }
}
