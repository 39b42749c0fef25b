import { createChanges } from '../../../deploys/accounts/changes.ts';
import type { Ownership } from '../../../deploys/accounts/ownership.ts';
import { runPublisher } from '../../../deploys/accounts/publication.ts';
import { type Claiming, openRedisHead, type Put } from '../../../deploys/accounts/redis-head.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import type { Store } from '../../../shared/store/open.ts';
import { testConfig } from '../../started/gateway.ts';
import { waited } from '../../started/host.ts';

/** A connection of one start of deploys to the publication in a Redis. */
export function headAt(url: string, origin: string, holder: string = crypto.randomUUID()) {
  const options = { clock: systemClock, random: () => 0.5, onWarning: () => undefined };
  const head = openRedisHead({ url, origin, holder, ...options });
  if (head === undefined) throw new Error('the address is none');
  return head;
}

type Options = Readonly<{
  onPut?(words: Put): unknown;
  onClaim?(words: Claiming): unknown;
  clock?: Clock;
}>;

/** Publishes a database until it is stopped, as deploys does. `onPut` and `onClaim` see each before it is made. */
export function publish(store: Store, url: string, { onPut, onClaim, clock = systemClock }: Options = {}) {
  const changes = createChanges(store);
  const head = headAt(url, changes.origin);
  const over = new AbortController();
  let state: Ownership | undefined;
  const takenOver: number[] = [];
  let [epochs, claims] = [0, 0];
  async function put(words: Put) {
    await onPut?.(words);
    return head.put(words);
  }
  const claim: typeof head.claim = async (words) => {
    await onClaim?.(words);
    const found = await head.claim(words);
    claims++;
    return found;
  };
  const publishing = runPublisher(
    {
      changes,
      head: { ...head, put, claim },
      clock,
      makeEpoch: () => `epoch ${++epochs} ${crypto.randomUUID()}`,
      readTerms: async () => testConfig({}),
      noteState: (now) => void (state = now),
      noteTakenOver: ({ ended }) => void takenOver.push(ended),
    },
    over.signal,
  );
  async function stop(): Promise<void> {
    over.abort();
    await publishing;
  }
  const isWhole = () => state?.kind === 'sole' && state.isWhole;
  /** Waits until Redis has answered so often more. */
  async function looked(times: number): Promise<void> {
    const before = claims;
    await waited(() => claims >= before + times);
  }
  return { stop, looked, epochs: () => epochs, state: () => state?.kind, isWhole, takenOver };
}
