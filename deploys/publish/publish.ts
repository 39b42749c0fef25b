import type { Clock } from '../../shared/clock.ts';
import { type PublishedTerms, termsText } from '../../shared/publication/terms.ts';
import type { Changes } from './changes.ts';
import type { Claim, RedisHead } from './redis-head.ts';
import { createRevocations } from './revocations.ts';
import type { Standing } from './standing.ts';

type Claimed = Extract<Claim, { kind: 'claimed' }>;

export type PublisherDeps = Readonly<{
  changes: Changes;
  head: RedisHead;
  /** This start of deploys, as `head` names it. */
  holder: string;
  clock: Clock;
  /** A name that no other epoch has. */
  makeEpoch(): string;
  /** Plans and prices as the config has them now; `undefined` when it is unusable, and what was published stays. */
  readTerms(): PublishedTerms | undefined;
  /** Told after every turn. */
  noteStanding(standing: Standing): void;
}>;

/** How often the database is looked at, and Redis when nothing has changed: a revocation has a second in all. */
const LOOK_MS = 100;
const ASK_MS = 500;
/** Milliseconds between two portions: everything else in this process has its turn then. */
const PAUSE_MS = 1;

/** What is published from has no rest: a claim was lost on the way. */
class LostClaim extends Error {}

/**
 * Keeps Redis told of accounts, keys, plans and prices until `signal` aborts: what has changed, or everything when Redis
 * does not hold what this database published last (it was emptied, it went back to an older copy, or the database did).
 * Never rejects.
 */
export async function runPublisher(deps: PublisherDeps, signal: AbortSignal): Promise<void> {
  const { clock, changes, head, noteStanding } = deps;
  const turn = createTurn(deps);
  let askedMs = Number.NEGATIVE_INFINITY;
  let seen = '';
  while (!signal.aborted) {
    try {
      const { value, config } = changes.revision();
      const now = `${value} ${config}`;
      if (now !== seen || clock.monotonic() - askedMs >= ASK_MS) {
        askedMs = clock.monotonic();
        const standing = await turn(signal);
        noteStanding(standing);
        // A change that could not be published is one that is still to come.
        seen = standing.kind === 'publishing' ? now : seen;
      }
    } catch {
      noteStanding({ kind: 'away' });
    }
    await clock.sleep(LOOK_MS, signal);
  }
  await head.close();
}

function createTurn(deps: PublisherDeps): (signal: AbortSignal) => Promise<Standing> {
  const { changes, head, clock, holder, makeEpoch, readTerms } = deps;
  const revocations = createRevocations(deps);
  let isNoted = false;
  let termsAt: number | undefined;
  let text: string | undefined;

  async function turn(signal: AbortSignal): Promise<Standing> {
    if (!isNoted) {
      const asked = await head.claim(false);
      if (asked.kind !== 'claimed') return asked;
      // Before Redis names it: a gateway beside this file must never take it for a copy.
      changes.addPublisher(holder, clock.now());
      isNoted = true;
    }
    const claim = await head.claim(true);
    if (claim.kind !== 'claimed') return claim;
    try {
      await publishTerms(claim);
      if (isContinued(claim)) await publishChanges(claim, signal);
      else await publishAll(claim, signal);
    } catch (error) {
      if (error instanceof LostClaim) return { kind: 'held' };
      throw error;
    }
    return { kind: signal.aborted ? 'building' : 'publishing' };
  }

  /** Whether Redis has what this database published last, no less and no more. */
  function isContinued({ epoch, seq }: Claimed): boolean {
    const last = changes.publication();
    return (
      last.building === null &&
      epoch !== '' &&
      epoch === last.epoch &&
      last.published <= seq &&
      seq <= last.intent
    );
  }

  async function publishChanges({ epoch, seq }: Claimed, signal: AbortSignal): Promise<void> {
    const { published } = changes.publication();
    for (let from = seq; !signal.aborted;) {
      const portion = changes.after(from);
      if (portion.upTo === from) return tellRevoked(published);
      changes.intend(portion.upTo);
      if (!(await head.put(epoch, portion, false))) throw new LostClaim();
      changes.sent(portion);
      await tellRevoked(published);
      if (portion.isLast) return;
      from = portion.upTo;
      await clock.sleep(PAUSE_MS, signal);
    }
  }

  async function publishAll({ epoch: before, seq }: Claimed, signal: AbortSignal): Promise<void> {
    const { published } = changes.publication();
    const { epoch, from } = await epochToBuild(seq);
    revocations.again();
    for (let at = from; !signal.aborted;) {
      const portion = changes.after(at);
      changes.intend(portion.upTo);
      if (!(await head.put(epoch, portion, true))) throw new LostClaim();
      changes.sent(portion);
      at = portion.upTo;
      await tellRevoked(published);
      if (portion.isLast) {
        if (!(await head.finish(epoch, at, before))) throw new LostClaim();
        return changes.finish(at);
      }
      await renewed();
      await clock.sleep(PAUSE_MS, signal);
    }
  }

  async function tellRevoked(after: number): Promise<void> {
    if (!(await revocations.tell(after))) throw new LostClaim();
  }

  let renewedMs = clock.monotonic();
  /** A full publication of many keys takes longer than a claim lasts. */
  async function renewed(): Promise<void> {
    if (clock.monotonic() - renewedMs < ASK_MS) return;
    renewedMs = clock.monotonic();
    if ((await head.claim(true)).kind !== 'claimed') throw new LostClaim();
  }

  /** The one that was begun, from where Redis has it, or a new one. Above `seq`: revisions of an older life of this database. */
  async function epochToBuild(seq: number): Promise<Readonly<{ epoch: string; from: number }>> {
    const { building, intent } = changes.publication();
    const tip = building === null ? 0 : await head.tip(building);
    if (building !== null && tip <= intent) return { epoch: building, from: tip };
    const epoch = makeEpoch();
    changes.begin(epoch, Math.max(seq, tip));
    return { epoch, from: 0 };
  }

  async function publishTerms({ config, termsId }: Claimed): Promise<void> {
    const asked = changes.revision().config;
    if (asked !== termsAt) {
      const terms = readTerms();
      if (terms !== undefined) text = termsText(terms);
      termsAt = asked;
    }
    if (text === undefined) return;
    const id = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16);
    if (id === termsId && config === asked) return;
    // Other terms under a number that is known already would not be noticed: every gateway of this host reads its config again.
    if (id !== termsId && config >= asked) return void (termsAt = changes.raiseConfig(config));
    if (!(await head.terms(asked, id, text))) throw new LostClaim();
  }

  return turn;
}
