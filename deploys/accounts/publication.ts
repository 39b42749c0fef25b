import type { Registry } from 'prom-client';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import { ENDED, type PublishedTerms, ROTATED, termsText } from '../../shared/publication.ts';
import type { Store } from '../../shared/store/open.ts';
import { codeOf } from '../../shared/store/private.ts';
import { createFigures } from '../health/figures.ts';
import type { Health } from '../health/health.ts';
import { type Changes, createChanges } from './changes.ts';
import { type Claimed, createClaim } from './claim.ts';
import {
  complaintOf,
  deliveriesOf,
  nextOwnership,
  type Ownership,
  type OwnershipEvent,
  whyReadOnly,
} from './ownership.ts';
import { LEASE_MS, openRedisHead, type Put, type RedisHead } from './redis-head.ts';

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

/** The lease of a deploys that was just killed ends, and a connection is made, within this time: until then nothing is logged. */
const QUIET_MS: Partial<Readonly<Record<Ownership['kind'], number>>> = {
  waiting: LEASE_MS + 2_000,
  unknown: 2_000,
  'cut-off': 2_000,
};
/** How long `/health` tells that this database took over. */
const TAKEN_OVER_MS = 3_600_000;

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
  let state: Ownership = { kind: 'unknown' };
  let logged = '';
  let sinceMs = clock.monotonic();
  let claimedMs = Number.NEGATIVE_INFINITY;
  let takenOver: TakenOver | undefined;
  let takenOverMs = 0;
  let isFirstReading = false;

  const noteState: PublisherNotes['noteState'] = (now, askedMs) => {
    if (now.kind !== state.kind) sinceMs = clock.monotonic();
    state = now;
    gauge.set(now.kind === 'sole' && now.isWhole ? 1 : 0);
    if (now.kind === 'sole') claimedMs = askedMs;
    const name = now.kind === 'sole' && !now.isWhole ? 'building' : now.kind;
    if (name === logged || isQuiet()) return;
    logged = name;
    logState(log, now);
  };

  const noteTakenOver: PublisherNotes['noteTakenOver'] = (now) => {
    [takenOver, takenOverMs, isFirstReading] = [now, clock.monotonic(), true];
    log.warn(
      { generation: now.generation, ended_keys: now.ended },
      'this database took over, as an operator said',
    );
  };

  function isQuiet(): boolean {
    return clock.monotonic() - sinceMs < (QUIET_MS[state.kind] ?? 0);
  }

  /** Hides what may pass in a moment: it is no trouble yet. */
  const shownState = (): Ownership => (isQuiet() ? { kind: 'sole', isWhole: false } : state);

  const isOwn = () => state.kind === 'sole' && clock.monotonic() - claimedMs < LEASE_MS;

  return {
    /** Publishes until `signal` aborts. Never rejects. */
    async run(signal: AbortSignal): Promise<void> {
      const publisher = { changes, head, clock, makeEpoch: name, readTerms, noteState, noteTakenOver };
      await Promise.all([
        runPublisher(publisher, signal),
        takeLastUses({ store, head, isOwn, clock }, signal),
      ]);
    },
    /** Redis being away is no reason to take deploys out of service: what is known goes on working. */
    health(): Health {
      const isOver = clock.monotonic() - takenOverMs > TAKEN_OVER_MS;
      return healthOf(shownState(), isOver ? undefined : takenOver);
    },
    state: shownState,
    /** Why changes are refused now, as a sentence. */
    whyReadOnly: () => whyReadOnly(state),
    /** Whether what gateways on other hosts count is of this database's accounts. */
    isOwn,
    /** Decides on the deploys that a reading shows: the first after a take-over has those that another may have sent. */
    events: (): 'made' | 'held-back' | 'dropped' => (isFirstReading ? 'dropped' : eventsOf(state)),
    /** A reading with its events was stored. */
    noteReading: () => void (isFirstReading = false),
    /**
     * Whether a turn of deliveries may begin. Redis hears of it first, so that an older copy of this database is known for one
     * even if nothing but deliveries happened since.
     */
    async permit(): Promise<boolean> {
      const may = deliveriesOf(state);
      if (may !== 'fenced') return may === 'free';
      const askedMs = clock.monotonic();
      const isHeld = await head.turn(changes.nextTurn()).catch(() => false);
      // This process may have stood still until another has the right.
      return isHeld && clock.monotonic() - askedMs < LEASE_MS;
    },
  };
}

function healthOf(state: Ownership, takenOver: TakenOver | undefined): Health {
  const complaint = complaintOf(state);
  if (complaint !== undefined) return { isWell: false, sentence: complaint };
  const remark = remarkOf(state);
  if (remark !== undefined) return { isWell: true, hasRemark: true, sentence: remark };
  if (takenOver === undefined) return { isWell: true, sentence: 'ok' };
  const { generation, ended } = takenOver;
  const sentence = `This database took over as generation ${generation}; ${ended} keys that had ended stay ended.`;
  return { isWell: true, hasRemark: true, sentence };
}

function logState(log: Log, state: Ownership): void {
  const complaint = complaintOf(state);
  if (complaint !== undefined) log.error(complaint);
  else if (state.kind !== 'sole') log.warn(remarkOf(state) ?? 'Redis does not answer');
  else
    log.info(
      state.isWhole ? 'accounts and keys are published' : 'all accounts and keys are being written to Redis',
    );
}

/** Remarks on a state that needs nothing of an operator. */
function remarkOf({ kind }: Ownership): string | undefined {
  switch (kind) {
    case 'cut-off':
      return 'Redis does not answer: changes of accounts and keys do not reach gateways on other hosts, and webhooks wait.';
    case 'unpublished':
      return 'Redis does not answer: accounts and keys do not reach gateways on other hosts, and webhooks wait.';
    case 'taking-over':
      return 'This database takes over as soon as Redis answers.';
    default:
      return undefined;
  }
}

/**
 * While it is not known whether this database counts, its deploys wait: they become events when it does. Those of a database
 * that does not count are another's, which sends them under ids of its own.
 */
function eventsOf({ kind }: Ownership): 'made' | 'held-back' | 'dropped' {
  if (kind === 'unknown' || kind === 'waiting' || kind === 'unreadable') return 'held-back';
  return kind === 'behind' || kind === 'taking-over' ? 'dropped' : 'made';
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

type TakenOver = Readonly<{ generation: number; ended: number }>;

type PublisherNotes = Readonly<{
  /** Called after every turn; `askedMs` is when Redis was asked. */
  noteState(state: Ownership, askedMs: number): void;
  /** So many keys were ended that had ended elsewhere. */
  noteTakenOver(now: TakenOver): void;
}>;

type PublisherDeps = PublisherNotes &
  Readonly<{
    changes: Changes;
    head: RedisHead;
    clock: Clock;
    /** A name that no other epoch has. */
    makeEpoch(): string;
    readTerms: PublicationDeps['readTerms'];
  }>;

/** How often the database is read, and Redis when nothing has changed: a revocation has a second in all. */
const LOOK_MS = 100;
const CLAIM_MS = 500;
/** Milliseconds between two portions: everything else in this process has its turn then. */
const PAUSE_MS = 1;
/** Keys that end within this time may end while a backlog is written. */
const SOON_MS = 600_000;
/** How often everything in Redis is compared with the database, a portion every `CLAIM_MS`. */
const SWEEP_MS = 3_600_000;

/**
 * Writes accounts, keys, plans and prices to Redis until `signal` aborts: what has changed with its change, and everything when
 * Redis is not as this database left it (it was emptied, it went back to an older copy, or the database did). Never rejects.
 */
export async function runPublisher(deps: PublisherDeps, signal: AbortSignal): Promise<void> {
  const { clock, changes, head, noteState } = deps;
  const step = createStep(deps);
  let askedMs = Number.NEGATIVE_INFINITY;
  let seen = '';
  let isSole = false;
  // Who publishes has a last turn after a stop: changes came since the last look, and what ends a key is in the first portion.
  for (let isLast = false; !isLast;) {
    isLast = signal.aborted;
    if (isLast && !isSole) break;
    let hasMore = false;
    try {
      const { value, config } = changes.revision();
      const now = `${value} ${config}`;
      if (now !== seen || clock.monotonic() - askedMs >= CLAIM_MS) {
        askedMs = clock.monotonic();
        const taken = await step();
        noteState(taken.state, askedMs);
        isSole = taken.state.kind === 'sole';
        hasMore = taken.hasMore ?? false;
        // A change that could not be published is one that is still to come.
        seen = taken.state.kind === 'sole' && taken.state.isWhole && !hasMore ? now : '';
      }
    } catch {
      // The database itself does not answer, which its own health tells.
    }
    await clock.sleep(hasMore ? PAUSE_MS : LOOK_MS, signal);
  }
  await head.close();
}

/** Another deploys publishes, or Redis is not as it was left. */
class LostClaim extends Error {}

type Step = Readonly<{ state: Ownership; hasMore?: boolean }>;

function createStep(deps: PublisherDeps): () => Promise<Step> {
  const { changes, head, clock, makeEpoch, readTerms, noteTakenOver } = deps;
  const publishTerms = createTerms(changes, head, readTerms);
  const claim = createClaim(changes, head, clock);
  let state: Ownership = { kind: 'unknown' };
  let ended = 0;
  let sweep: ReturnType<typeof everything> | undefined;
  let sweptMs = clock.monotonic();
  let urgentUpTo = 0;

  return async function step() {
    const { behind, published, generation: own, takeOver } = changes.last();
    if (behind !== null && state.kind === 'unknown')
      state = nextOwnership(state, { kind: 'later', own, published: behind });
    if (takeOver > 0) noteTakeOver();
    if (state.kind === 'behind') return { state };
    try {
      changes.countEntries();
      // Before the claim too: a gateway beside this file reads it as soon as Redis names its holder.
      if (state.kind === 'taking-over') ended += await endKeys(deps);
      const claimed = await claim(state.kind === 'taking-over' ? takeOver : undefined);
      if (claimed.kind !== 'claimed') return { state: moved(claimed) };
      if (state.kind === 'taking-over') await takeAllOver(claimed);
      await publishTerms(claimed);
      const isContinued = await continued(claimed);
      const { isWhole, hasMore } = await publishSome(isContinued && claimed.isWhole);
      return { state: moved({ kind: 'claimed', isWhole }), hasMore };
    } catch (error) {
      sweep = undefined; // it may have given a portion that was not written
      // Another took the right, or Redis lost something. The next claim says which of the two it is.
      if (error instanceof LostClaim) return { state: moved({ kind: 'claimed', isWhole: false }) };
      if (codeOf(error).startsWith('SQLITE_')) throw error;
      return { state: moved({ kind: 'away', wasPublished: published > 0 }) };
    }
  };

  function moved(event: OwnershipEvent): Ownership {
    const next = nextOwnership(state, event);
    if (next.kind === 'behind' && state.kind !== 'behind') changes.noteBehind(next.published);
    state = next;
    return next;
  }

  function noteTakeOver(): void {
    const { kind } = moved({ kind: 'take-over' });
    if (kind === 'sole' || kind === 'other-origin') changes.dropTakeOver();
  }

  /** Makes all that Redis has this database's: keys that ended, also since they were looked at before the claim, and all figures. */
  async function takeAllOver({ seq, seen, turns, generation }: Claimed): Promise<void> {
    ended += await endKeys(deps);
    changes.noteTakenOver(Math.max(seq, seen), turns);
    noteTakenOver({ generation, ended });
    ended = 0;
  }

  /** Whether Redis is exactly as this database left it; begins an epoch if not. */
  async function continued({ epoch, puts, seq }: Claimed): Promise<boolean> {
    const last = changes.last();
    if (epoch !== '' && epoch === last.epoch && puts === last.puts) return true;
    const next = makeEpoch();
    if (!(await head.begin(next))) throw new LostClaim();
    changes.begin(next, seq);
    [sweep, urgentUpTo] = [undefined, 0];
    return false;
  }

  /** Publishes a portion of what has changed, else of everything while an epoch is not whole or a sweep is due. */
  async function publishSome(isWhole: boolean): Promise<{ isWhole: boolean; hasMore: boolean }> {
    const { published } = changes.last();
    const { rows, upTo, isLast } = changes.after(published);
    if (upTo > published) {
      // A key or an account must end within a second, however many rows are on their way before it.
      const { value } = changes.revision();
      const isUrgent = !isLast && value !== urgentUpTo;
      const soonMs = clock.now() + SOON_MS;
      const urgent = isUrgent ? changes.urgentAfter(Math.max(upTo, urgentUpTo), soonMs) : [];
      await put({ seq: upTo, log: 'all', isWhole: false, rows: [...urgent, ...rows] });
      if (isUrgent) urgentUpTo = value;
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
    const { epoch, puts, published, announced } = changes.last();
    if (words.seq > announced) changes.announce(words.seq);
    const now = await head.put({ epoch: epoch ?? '', puts, ...words });
    if (now === undefined) throw new LostClaim();
    if (now !== puts || words.seq > published) changes.sent(now, words.seq);
  }
}

/** Ends here the keys that ended in Redis; gives how many that were. */
async function endKeys({ changes, head, clock }: PublisherDeps): Promise<number> {
  let count = 0;
  for (const set of [ENDED, ROTATED] as const) {
    for (let from = 0, size = 1; size > 0; from += size) {
      const ends = (await head.ended(set, from)).map(([id, atMs]) => [id, Number(atMs)] as const);
      count += changes.end(ends, clock.now());
      size = ends.length;
    }
  }
  return count;
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
