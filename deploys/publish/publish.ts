import type { Clock } from '../../shared/clock.ts';
import { type PublishedTerms, termsText } from '../../shared/publication.ts';
import type { Changes } from './changes.ts';
import type { Claim, Put, RedisHead } from './redis-head.ts';
import type { PublicationState } from './publication-state.ts';

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
  readTerms(): Promise<PublishedTerms | undefined>;
  /** Called after every turn. */
  noteState(state: PublicationState): void;
}>;

/** How often the database is read, and Redis when nothing has changed: a revocation has a second in all. */
const LOOK_MS = 100;
const CLAIM_MS = 500;
/** Milliseconds between two portions: everything else in this process has its turn then. */
const PAUSE_MS = 1;
/** How often everything in Redis is compared with the database, a portion every `CLAIM_MS`. */
const SWEEP_MS = 3_600_000;

/**
 * Writes accounts, keys, plans and prices to Redis until `signal` aborts: what has changed with its change, and everything when
 * Redis is not as this database left it (it was emptied, it went back to an older copy, or the database did). Never rejects.
 */
export async function runPublisher(deps: PublisherDeps, signal: AbortSignal): Promise<void> {
  const { clock, changes, head, noteState } = deps;
  const turn = createTurn(deps);
  let claimedMs = Number.NEGATIVE_INFINITY;
  let seen = '';
  while (!signal.aborted) {
    let hasMore = false;
    try {
      const { value, config } = changes.revision();
      const now = `${value} ${config}`;
      if (now !== seen || clock.monotonic() - claimedMs >= CLAIM_MS) {
        claimedMs = clock.monotonic();
        const taken = await turn();
        noteState(taken.state);
        hasMore = taken.hasMore;
        // A change that could not be published is one that is still to come.
        seen = taken.state.kind === 'publishing' && !hasMore ? now : '';
      }
    } catch {
      noteState({ kind: 'away' });
    }
    await clock.sleep(hasMore ? PAUSE_MS : LOOK_MS, signal);
  }
  await head.close();
}

/** Another deploys publishes, or Redis is not as it was left. */
class LostClaim extends Error {}

/** A way over all rows: first those of the database are written, then those of Redis that the database does not have are dropped. */
type Sweep = Readonly<
  { stage: 'rows'; from: number; upTo: number } | { stage: 'strays'; of: 'keys' | 'accounts'; cursor: string }
>;

type Turn = Readonly<{ state: PublicationState; hasMore: boolean }>;

function createTurn({
  changes,
  head,
  clock,
  holder,
  makeEpoch,
  readTerms,
}: PublisherDeps): () => Promise<Turn> {
  const publishTerms = createTerms(changes, head, readTerms);
  let isNoted = false;
  let sweep: Sweep | undefined;
  let sweptMs = clock.monotonic();
  let revokedUpTo = 0;

  return async function turn() {
    if (!isNoted) {
      const offered = await head.claim(false);
      if (offered.kind !== 'claimed') return { state: offered, hasMore: false };
      // Before Redis names it: a gateway beside this file must never take it for a copy.
      changes.addPublisher(holder, clock.now());
      isNoted = true;
    }
    const claim = await head.claim(true);
    if (claim.kind !== 'claimed') return { state: claim, hasMore: false };
    try {
      await publishTerms(claim);
      const isContinued = await continued(claim);
      const { isWhole, hasMore } = await publishSome(isContinued && claim.isWhole);
      return { state: { kind: isWhole ? 'publishing' : 'building' }, hasMore };
    } catch (error) {
      // The next claim says which of the two it is.
      if (error instanceof LostClaim) return { state: { kind: 'held' }, hasMore: false };
      throw error;
    }
  };

  /** Whether Redis is exactly as this database left it; begins an epoch if not. */
  async function continued({ epoch, puts, seq }: Claimed): Promise<boolean> {
    const last = changes.last();
    if (epoch !== '' && epoch === last.epoch && puts === last.puts) return true;
    const next = makeEpoch();
    if (!(await head.begin(next))) throw new LostClaim();
    changes.begin(next, seq);
    [sweep, revokedUpTo] = [undefined, 0];
    return false;
  }

  /** Publishes a portion of what has changed, else of everything while an epoch is not whole or a sweep is due. */
  async function publishSome(isWhole: boolean): Promise<{ isWhole: boolean; hasMore: boolean }> {
    const { published } = changes.last();
    const { rows, upTo, isLast } = changes.after(published);
    if (upTo > published) {
      // A key must end within a second, however many rows are on their way before it.
      const { value } = changes.revision();
      const isUrgent = !isLast && value !== revokedUpTo;
      const urgent = isUrgent ? changes.revokedAfter(Math.max(upTo, revokedUpTo)) : [];
      await put({ seq: upTo, log: 'all', isWhole: false, rows: [...urgent, ...rows] });
      if (isUrgent) revokedUpTo = value;
      return { isWhole, hasMore: !isLast || !isWhole };
    }
    if (sweep === undefined) {
      if (isWhole && clock.monotonic() - sweptMs < SWEEP_MS) return { isWhole, hasMore: false };
      sweep = { stage: 'rows', from: 0, upTo: published };
    }
    const log = isWhole ? 'those that differ' : 'none';
    const portion = sweep.stage === 'rows' ? rowsFrom(sweep) : await straysFrom(sweep);
    const isDone = portion.next === undefined;
    await put({ seq: published, log, isWhole: isDone, rows: portion.rows });
    sweep = portion.next;
    if (isDone) sweptMs = clock.monotonic();
    return { isWhole: isWhole || isDone, hasMore: !isWhole && !isDone };
  }

  function rowsFrom({ from, upTo }: Extract<Sweep, { stage: 'rows' }>) {
    const portion = changes.after(from);
    const isDone = portion.isLast || portion.upTo >= upTo;
    const next: Sweep = isDone
      ? { stage: 'strays', of: 'keys', cursor: '0' }
      : { stage: 'rows', from: portion.upTo, upTo };
    return { rows: portion.rows, next };
  }

  async function straysFrom({ of, cursor }: Extract<Sweep, { stage: 'strays' }>) {
    const scanned = await head.scan(of, cursor);
    const rows = changes.goneOf(scanned.names);
    const following: Sweep | undefined =
      of === 'keys' ? { stage: 'strays', of: 'accounts', cursor: '0' } : undefined;
    return {
      rows,
      next: scanned.cursor === '0' ? following : { stage: 'strays' as const, of, cursor: scanned.cursor },
    };
  }

  async function put(words: Omit<Put, 'epoch' | 'puts'>): Promise<void> {
    const { epoch, puts, published } = changes.last();
    const now = await head.put({ epoch: epoch ?? '', puts, ...words });
    if (now === undefined) throw new LostClaim();
    if (now !== puts || words.seq > published) changes.sent(now, words.seq);
  }
}

/** Publishes plans and prices when they differ from what Redis has. */
function createTerms(changes: Changes, head: RedisHead, readTerms: PublisherDeps['readTerms']) {
  let readAt: number | undefined;
  let text: string | undefined;

  return async function publishTerms({ config, termsId }: Claimed): Promise<void> {
    const wanted = changes.revision().config;
    if (wanted !== readAt) {
      const terms = await readTerms();
      if (terms !== undefined) text = termsText(terms);
      readAt = wanted;
    }
    if (text === undefined) return;
    const id = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16);
    if (id === termsId && config === wanted) return;
    // Other terms under a number that is known already would not be noticed: every gateway of this host reads its config again.
    if (id !== termsId && config >= wanted) readAt = changes.raiseConfig(config);
    else if (!(await head.terms(wanted, id, text))) throw new LostClaim();
  };
}
