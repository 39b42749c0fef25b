import type { Clock } from '../../shared/clock.ts';
import type { OwnAccounts } from './choice.ts';
import type { Mirror } from './mirror.ts';
import type { Head, RedisRows } from './redis-rows.ts';

type FollowDeps = Readonly<{
  mirror: Mirror;
  rows: RedisRows;
  own: OwnAccounts;
  clock: Clock;
  /** Called with the keys that are revoked ahead of their rows, whenever the head was read. */
  onRevoked(text: string | undefined): void;
  /** Called after every look; `answered`: the mirror is as Redis had it then, which had all. */
  onLook(answered: boolean): void;
}>;

/** How often Redis is asked when nobody has said that something changed: a revocation has a second in all. */
const LOOK_MS = 500;
/** The same where this host's own database counts: only that another one is published is to be found out. */
const HOME_LOOK_MS = 2_000;
/** Milliseconds between two portions of rows: requests have their turn then. */
const PAUSE_MS = 1;

/** Keeps a mirror like what is published. */
export type Following = Readonly<{
  /** Looks again and again until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks at once instead of a moment later. */
  hurry(): void;
}>;

export function createFollowing({ mirror, rows, own, clock, onRevoked, onLook }: FollowDeps): Following {
  let hurried = new AbortController();
  let restMs = LOOK_MS;

  /** Gives whether all that counts is here. A Redis that was emptied has accounts again when they are published anew. */
  async function look(signal: AbortSignal): Promise<boolean> {
    restMs = LOOK_MS;
    const head = await rows.head();
    if (isHome(head)) restMs = HOME_LOOK_MS;
    if (head === undefined) {
      mirror.noteNobody();
      return mirror.state().origin === null;
    }
    onRevoked(head.revoked);
    const { origin, holder } = mirror.state();
    if (origin !== head.origin || holder !== head.holder) mirror.noteHead(head.origin, head.holder);
    if (isHome(head)) return true; // it is asked itself
    await takeTerms(head);
    await takeRows(head, signal);
    return head.epoch !== undefined;
  }

  /** Whether the database beside this process is the one that is published, or nobody ever published any. */
  function isHome(head: Head | undefined): boolean {
    if (head !== undefined) return own.hasPublisher(head.holder);
    return mirror.state().holder === null && own.hasAccounts();
  }

  async function takeTerms({ termsId }: Head): Promise<void> {
    if (termsId === undefined || termsId === mirror.state().terms_id) return;
    const terms = await rows.terms();
    if (terms !== undefined) mirror.noteTerms(terms.config, terms.termsId, terms.terms);
  }

  async function takeRows({ epoch, seq }: Head, signal: AbortSignal): Promise<void> {
    if (epoch === undefined) return;
    const before = mirror.state();
    if (before.epoch !== epoch || before.position > seq) mirror.begin(epoch, seq);
    for (let lookedMs = clock.monotonic(); !signal.aborted;) {
      const { position, loading, epoch: current } = mirror.state();
      if (current !== epoch || (position >= seq && loading === 0)) break;
      const read = await rows.after(epoch, position);
      if (read === undefined) return;
      mirror.take(read);
      if (read.isLast) break;
      await clock.sleep(PAUSE_MS, signal);
      // A revocation does not wait for the rows before it.
      if (clock.monotonic() - lookedMs < LOOK_MS) continue;
      lookedMs = clock.monotonic();
      onRevoked((await rows.head())?.revoked);
    }
    while (!signal.aborted && mirror.sweep()) await clock.sleep(PAUSE_MS, signal);
  }

  async function run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      hurried = new AbortController();
      const answered = await look(signal).catch(
        // Redis or the file does not answer; what is known stands, and the next look asks again.
        () => false,
      );
      onLook(answered);
      await clock.sleep(hurried.signal.aborted ? 0 : restMs, AbortSignal.any([signal, hurried.signal]));
    }
  }

  return { run, hurry: () => hurried.abort() };
}
