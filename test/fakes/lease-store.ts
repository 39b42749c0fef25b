import { answer, decode } from '../../gateway/cluster/authority.ts';
import type { LeaseStore } from '../../gateway/cluster/messages.ts';
import type { Clock } from '../../shared/clock.ts';

/** What the store does with calls from now on. */
type Conduct = 'answers' | 'fails' | 'is silent';

const DEADLINE_MS = 100;

/** A lease store in memory for several nodes of one test. It answers after `wayMs`, fails at once, or at its deadline. */
export function createLeaseStore(clock: Clock, wayMs = 1) {
  const blobs = new Map<number, string>();
  const never = new AbortController().signal;
  const counts = { calls: 0 };
  let conduct: Conduct = 'answers';
  const store: LeaseStore = {
    async sync(sender, messages) {
      counts.calls++;
      if (conduct === 'is silent') await clock.sleep(DEADLINE_MS, never);
      if (conduct !== 'answers') return messages.map(() => undefined);
      await clock.sleep(wayMs, never);
      const moment = { nowMs: Math.floor(clock.now()), sinceLossMs: Infinity, answeredSeq: undefined };
      return messages.map((message) => {
        const { blob, reply } = answer(blobs.get(message.accountId), sender, message, moment);
        blobs.set(message.accountId, blob);
        return reply;
      });
    },
    failure: () => undefined,
    close: async () => undefined,
  };
  return {
    store,
    counts,
    conduct: (next: Conduct) => void (conduct = next),
    creditsOf: (accountId: number) => decode(blobs.get(accountId)).credits,
  };
}
