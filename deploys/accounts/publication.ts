import type { Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { type PublishedTerms, termsText } from '../../shared/publication.ts';
import type { Store } from '../../shared/store/open.ts';
import { createFigures } from '../health/figures.ts';
import type { Health } from '../health/health.ts';
import { type Changes, createChanges } from './changes.ts';
import { type Claim, LEASE_MS, openRedisHead, type Put, type RedisHead } from './redis-head.ts';

/** How far accounts and keys are published to Redis. */
export type PublicationState =
  /** All accounts and keys are in Redis, and changes go there. */
  | { readonly kind: 'publishing' }
  /** All accounts and keys are being written; until then a key that is not found may be one that is still to come. */
  | { readonly kind: 'building' }
  /** Redis does not answer. */
  | { readonly kind: 'away' }
  /** Redis has the accounts of another database. */
  | { readonly kind: 'other-origin'; readonly origin: string }
  /** Another deploys publishes this database or a copy of it. */
  | { readonly kind: 'held' };

/** What an operator must do; `undefined`: nothing. */
export function complaintOf(state: PublicationState): string | undefined {
  if (state.kind === 'other-origin')
    return `Accounts and keys are not published: Redis has those of another database (origin ${state.origin}). Run deploys where that database is, or delete the Redis keys {sluice:accounts}* to publish this one.`;
  return state.kind === 'held'
    ? 'Accounts and keys are not published: another deploys publishes this database or a copy of it. Stop one of the two.'
    : undefined;
}

/** The publication of accounts, keys, plans and prices to the gateways of other hosts. */
export type Publication = NonNullable<ReturnType<typeof createPublication>>;

export type PublicationDeps = Readonly<{
  store: Store;
  url: string;
  clock: Clock;
  log: Log;
  registry: Registry;
  random(bytes: number): Uint8Array;
  /** Plans and prices as the config has them now; `undefined` when it is unusable, and what was published stays. */
  readTerms(): Promise<PublishedTerms | undefined>;
}>;

/** The lease of a deploys that was just killed ends within this time: until then nothing is logged. */
const HELD_QUIETLY_MS = LEASE_MS + 2_000;

/** `undefined` when `url` is no address of a Redis. */
export function createPublication({ store, url, clock, log, random, registry, readTerms }: PublicationDeps) {
  const name = () => Buffer.from(random(16)).toString('hex');
  const changes = createChanges(store);
  const head = openRedisHead({
    url,
    origin: changes.origin,
    holder: name(),
    clock,
    random: () => Buffer.from(random(4)).readUInt32BE() / 2 ** 32,
    onWarning: (warning) => log.warn({ warning }, 'redis'),
  });
  if (head === undefined) return undefined;
  const gauge = createFigures(registry).gauge(
    'deploys_accounts_published',
    'With storage.redis: 1 while this deploys publishes accounts and keys to gateways on other hosts, else 0',
  );
  let state: PublicationState = { kind: 'away' };
  let logged: PublicationState['kind'] = 'away';
  let sinceMs = clock.monotonic();
  let claimedMs = Number.NEGATIVE_INFINITY;

  function noteState(now: PublicationState): void {
    if (now.kind !== state.kind) sinceMs = clock.monotonic();
    state = now;
    gauge.set(now.kind === 'publishing' ? 1 : 0);
    if (now.kind === 'publishing' || now.kind === 'building') claimedMs = clock.monotonic();
    if (now.kind === logged || isQuiet()) return;
    logged = now.kind;
    const complaint = complaintOf(now);
    if (complaint !== undefined) log.error(complaint);
    else if (now.kind === 'away') log.warn('Redis does not answer: changes of accounts and keys wait');
    else if (now.kind === 'building') log.info('all accounts and keys are being written to Redis');
    else log.info('accounts and keys are published');
  }

  function isQuiet(): boolean {
    return state.kind === 'held' && clock.monotonic() - sinceMs < HELD_QUIETLY_MS;
  }

  function shownState(): PublicationState {
    return isQuiet() ? { kind: 'building' } : state;
  }

  const isOwn = () => clock.monotonic() - claimedMs < LEASE_MS;
  return {
    /** Publishes until `signal` aborts. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      const publisher = { changes, head, clock, makeEpoch: name, readTerms, noteState };
      await Promise.all([
        runPublisher(publisher, signal),
        takeLastUses({ store, head, isOwn, clock }, signal),
      ]);
    },
    /** Redis being away is no reason to take deploys out of service: what is known goes on working. */
    health(): Health {
      const complaint = complaintOf(shownState());
      return { isWell: complaint === undefined, sentence: complaint ?? 'ok' };
    },
    state: shownState,
    /** Whether what gateways on other hosts count is of this database's accounts. */
    isOwn,
  };
}

/** How often last uses are taken, and how many in one transaction. */
const TAKE_MS = 2_000;
const USES_AT_ONCE = 200;

/** Takes over when keys of this database were used last on other hosts, once a minute for each. Never rejects. */
async function takeLastUses(
  { store, head, isOwn, clock }: Readonly<{ store: Store; head: RedisHead; isOwn(): boolean; clock: Clock }>,
  signal: AbortSignal,
): Promise<void> {
  const update = store.prepare<null, [number, string]>(`
    UPDATE keys SET last_used_at_ms = ?1
    WHERE id = ?2 AND (last_used_at_ms IS NULL OR last_used_at_ms / 60000 < ?1 / 60000)`);
  const write = store.transaction((uses: Awaited<ReturnType<RedisHead['uses']>>) => {
    for (const [keyId, atMs] of uses) update.run(Number(atMs), keyId);
  });
  while (!signal.aborted) {
    await clock.sleep(TAKE_MS, signal);
    try {
      while (isOwn() && !signal.aborted) {
        const uses = await head.uses(USES_AT_ONCE);
        if (uses.length === 0) break;
        write.immediate(uses);
        await head.dropUses(uses);
      }
    } catch {
      // Redis or the database does not answer; they are taken the next time.
    }
  }
}

type Claimed = Extract<Claim, { kind: 'claimed' }>;

type PublisherDeps = Readonly<{
  changes: Changes;
  head: RedisHead;
  clock: Clock;
  /** A name that no other epoch has. */
  makeEpoch(): string;
  readTerms: PublicationDeps['readTerms'];
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
        hasMore = taken.hasMore ?? false;
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

type Turn = Readonly<{ state: PublicationState; hasMore?: boolean }>;

function createTurn({ changes, head, clock, makeEpoch, readTerms }: PublisherDeps): () => Promise<Turn> {
  const publishTerms = createTerms(changes, head, readTerms);
  let isNoted = false;
  let sweep: ReturnType<typeof everything> | undefined;
  let sweptMs = clock.monotonic();
  let revokedUpTo = 0;

  return async function turn() {
    if (!isNoted) {
      const offered = await head.claim(false);
      if (offered.kind !== 'claimed') return { state: offered };
      // Before Redis names it: a gateway beside this file must never take it for a copy.
      changes.addPublisher(head.holder, clock.now());
      isNoted = true;
    }
    const claim = await head.claim(true);
    if (claim.kind !== 'claimed') return { state: claim };
    try {
      await publishTerms(claim);
      const isContinued = await continued(claim);
      const { isWhole, hasMore } = await publishSome(isContinued && claim.isWhole);
      return { state: { kind: isWhole ? 'publishing' : 'building' }, hasMore };
    } catch (error) {
      sweep = undefined; // it may have given a portion that was not written
      // The next claim says which of the two it is.
      if (error instanceof LostClaim) return { state: { kind: 'held' } };
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
    if (sweep === undefined && isWhole && clock.monotonic() - sweptMs < SWEEP_MS)
      return { isWhole, hasMore: false };
    sweep ??= everything(published);
    const { value: portion, done: isDone = false } = await sweep.next();
    const log = isWhole ? 'those that differ' : 'none';
    await put({ seq: published, log, isWhole: isDone, rows: portion ?? [] });
    if (isDone) [sweep, sweptMs] = [undefined, clock.monotonic()];
    return { isWhole: isWhole || isDone, hasMore: !isWhole && !isDone };
  }

  /** In portions all rows of the database, then those of Redis that the database does not have, to be dropped. */
  async function* everything(upTo: number): AsyncGenerator<Put['rows'], undefined> {
    for (let from = 0; from < upTo;) {
      const portion = changes.after(from);
      yield portion.rows;
      from = portion.isLast ? upTo : portion.upTo;
    }
    for (const of of ['keys', 'accounts'] as const) {
      let cursor = '0';
      do {
        const [next, names] = await head.scan(of, cursor);
        yield changes.goneOf(names);
        cursor = next;
      } while (cursor !== '0');
    }
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
  let text = '';

  return async function publishTerms({ config, termsId }: Claimed): Promise<void> {
    const wanted = changes.revision().config;
    if (wanted !== readAt) {
      const terms = await readTerms();
      if (terms !== undefined) text = termsText(terms);
      readAt = wanted;
    }
    const id = new Bun.CryptoHasher('sha256').update(text).digest('hex').slice(0, 16);
    if (text === '' || (id === termsId && config === wanted)) return;
    // Other terms under a number that is known already would not be noticed: every gateway of this host reads its config again.
    if (id !== termsId && config >= wanted) readAt = changes.raiseConfig(config);
    else if (!(await head.terms(wanted, id, text))) throw new LostClaim();
  };
}
