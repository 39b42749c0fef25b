import { Redis } from 'ioredis';
import type { Clock } from '../../shared/clock.ts';
import type { KeyId } from '../../shared/keys/api-key.ts';
import { createIdentifier, type Identifier } from '../../shared/keys/identify.ts';
import { minuteOf } from '../../shared/keys/lookup.ts';
import { createKeySource, type KeySource } from '../../shared/keys/source.ts';
import { createKeyUses, type KeyUses } from '../../shared/keys/uses.ts';
import type { Log } from '../../shared/log.ts';
import { CHANGED } from '../../shared/publication/names.ts';
import { revokedFrom } from '../../shared/publication/revoked.ts';
import { type PublishedTerms, termsFrom } from '../../shared/publication/terms.ts';
import { connectionOptions, placesFrom } from '../../shared/redis/options.ts';
import type { Store } from '../../shared/store/open.ts';
import type { DeploysAt } from '../usage/push.ts';
import type { Head, Mirror, MirrorState, RedisRows } from './mirror.ts';

/** Where this host's gateways read accounts and keys. `unknown`: it cannot be said yet, and no key is refused on it. */
export type Choice = 'local' | 'mirror' | 'unknown';

/** Only a Redis that named this very database can tell that deploys reads it; the own one is also chosen for want of another. */
function deploysAt(choice: Choice, seen: MirrorState | undefined, own: OwnAccounts): DeploysAt {
  if (choice === 'mirror') return 'elsewhere';
  const holder = seen?.holder ?? null;
  return choice === 'local' && holder !== null && own.hasPublisher(holder) ? 'here' : 'unknown';
}

/** What this host's own accounts database says of itself. */
export type OwnAccounts = Readonly<{
  origin: string;
  /** Whether this very file, and no copy of it, was published by the start of deploys with this token. */
  hasPublisher(token: string): boolean;
  /** Whether this very file was ever published. */
  wasPublished(): boolean;
  /** Whether there is any account in it. */
  hasAccounts(): boolean;
}>;

/**
 * The own database while nobody publishes or it is the one that is published; else the mirror. Without an account of its
 * own, one of which nobody publishes yet may be a host whose accounts are still to come. A mirror that is not
 * there whole yet is stood in for by an older copy of the same database, and otherwise by nothing.
 */
export function choiceOf(seen: MirrorState, own: OwnAccounts): Choice {
  const { origin, holder, nobody, complete } = seen;
  if (origin === null || holder === null)
    return own.wasPublished() || (nobody === 1 && own.hasAccounts()) ? 'local' : 'unknown';
  if (own.hasPublisher(holder)) return 'local';
  if (complete === 1) return 'mirror';
  return origin === own.origin ? 'local' : 'unknown';
}

/** How long a subscription may take to be confirmed, in milliseconds. */
const DEADLINE_MS = 1_000;

/**
 * Calls `onHint` soon after something was published, while it can. Any node of a cluster hears of it; one that is not
 * heard costs nothing but the time until the next look. Gives how to stop.
 */
export function openHint(url: string, random: () => number, onHint: () => void): () => void {
  const places = placesFrom(url);
  if (places === undefined) return () => undefined;
  const { db: _everyChannelIsOne, ...address } = places.options;
  const redis = new Redis({
    ...connectionOptions(DEADLINE_MS, random),
    ...address,
    ...places.nodes[0],
    autoResubscribe: false,
  });
  redis.on('error', () => undefined);
  redis.on('message', onHint);
  redis.on('ready', () => {
    redis.subscribe(CHANGED).then(onHint, () => redis.disconnect(true));
  });
  return () => redis.disconnect();
}

/** What the accounts database `store` says of itself. */
export function createOwnAccounts(store: Store): OwnAccounts {
  const originOf = store.prepare<{ id: string }, []>('SELECT id FROM origin');
  const publisher = store.prepare<{ token: string }, [string]>(
    'SELECT token FROM publishers WHERE token = ?',
  );
  const any = store.prepare<{ token: string }, []>('SELECT token FROM publishers LIMIT 1');
  const account = store.prepare<{ id: number }, []>('SELECT id FROM accounts LIMIT 1');
  return {
    origin: originOf.get()?.id ?? '',
    hasPublisher: (token) => publisher.get(token) !== null,
    wasPublished: () => any.get() !== null,
    hasAccounts: () => account.get() !== null,
  };
}

/** Uses of keys whose rows are on another host, on their way there. */
type RemoteUses = KeyUses &
  Readonly<{
    /** Tells of what is noted until `signal` aborts. Never rejects. */
    run(signal: AbortSignal): Promise<void>;
  }>;

/** How often uses are told, and how many in one message. */
const TELL_MS = 1_000;
const USES_AT_ONCE = 500;
/** Uses that wait for Redis; further ones are not noted until there is room. */
const WAITING_MAX = 100_000;

function createRemoteUses(rows: Pick<RedisRows, 'noteUses'>, clock: Clock): RemoteUses {
  const waiting = new Map<KeyId, number>();

  async function tell(): Promise<void> {
    while (waiting.size > 0) {
      const some = [...waiting.entries().take(USES_AT_ONCE)];
      await rows.noteUses(some);
      for (const [id, atMs] of some) if (waiting.get(id) === atMs) waiting.delete(id);
    }
  }

  return {
    note(key, nowMs) {
      const minute = minuteOf(nowMs);
      if (key.usedMinute === minute) return;
      key.usedMinute = minute;
      if (waiting.size < WAITING_MAX) waiting.set(key.identity.caller.keyId, nowMs);
    },
    write: () => undefined,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await tell();
        } catch {
          // They wait for a Redis that answers.
        }
        await clock.sleep(TELL_MS, signal);
      }
    },
  };
}

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
type Following = Readonly<{
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

/** The accounts of an installation with many hosts, as one process of one host knows them. */
export type SharedAccounts = Readonly<{
  keys: Identifier;
  choice(): Choice;
  deploysAt(): DeploysAt;
  /** A number that grows with every change of accounts and of plans, the same on all hosts; `undefined`: the own database's counts. */
  revision(): number | undefined;
  /** Plans and prices as they were published; `undefined`: the own config's count. */
  terms(): PublishedTerms | undefined;
  /** Resolves when it is known where to read, or after a moment without an answer. */
  settle(signal: AbortSignal): Promise<void>;
  /** Follows what is published until `signal` aborts. */
  tend(signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}>;

type Deps = Readonly<{
  /** The accounts database of this host. */
  accounts: Store;
  mirror: Mirror;
  rows: RedisRows;
  /** Begins to call back when something was published; gives how to stop. */
  openHint(onHint: () => void): () => void;
  clock: Clock;
  log: Log;
}>;

/** How long a start waits for a Redis that does not answer, when nothing is known from earlier. */
const SETTLE_MS = 2_000;
const SETTLE_STEP_MS = 20;
/** When Redis has not answered for so long, a key that is not in the mirror may be a new one. */
const STALE_MS = 2_000;

export function createSharedAccounts(deps: Deps): SharedAccounts {
  const { accounts, mirror, rows, clock, log } = deps;
  const own = createOwnAccounts(accounts);
  const [local, mirrored] = [createKeySource(accounts), createKeySource(mirror.store)];
  const localUses = createKeyUses(accounts, clock);
  const remoteUses = createRemoteUses(rows, clock);
  let seen: MirrorState | undefined;
  let choice: Choice = 'unknown';
  let terms: PublishedTerms | undefined;
  let touched = -1;
  let revoked: ReadonlySet<string> = new Set();
  let revokedText: string | undefined;
  let revocations = 0;
  let answeredMs = Number.NEGATIVE_INFINITY;
  decide();

  const source: KeySource = {
    read(hash) {
      const key = sourceNow().read(hash);
      if (key === undefined && choice === 'mirror' && isStale())
        throw new Error('a newer key would not be here');
      if (key !== undefined && choice === 'mirror' && revoked.has(key.identity.caller.keyId))
        return undefined;
      return key;
    },
    // Below zero, so that no revision of one database is taken for one of the other; and another one when it becomes
    // stale, so that a key that was not there a moment ago is not refused for it.
    revision: () =>
      sourceNow() === local
        ? local.revision()
        : -1 - 2 * ((seen?.touched ?? 0) + revocations) - (isStale() ? 1 : 0),
  };
  const uses: KeyUses = {
    note: (key, nowMs) => (choice === 'mirror' ? remoteUses : localUses).note(key, nowMs),
    write: localUses.write,
  };
  const keys = createIdentifier(source, uses, clock);
  const following = createFollowing({ mirror, rows, own, clock, onRevoked, onLook });

  function sourceNow(): KeySource {
    // A first account that was made a moment ago settles it.
    if (choice === 'unknown') decide();
    if (choice === 'unknown') throw new Error('it is not known yet whose accounts count');
    return choice === 'local' ? local : mirrored;
  }

  /** Reads where the mirror stands, which another process may have moved. */
  function decide(): void {
    try {
      const now = mirror.state();
      if (now.terms_id !== seen?.terms_id) terms = now.terms === null ? undefined : termsFrom(now.terms);
      seen = now;
      const next = choiceOf(now, own);
      if (next !== choice) log.info({ from: choice, to: next }, 'accounts and keys are read elsewhere');
      choice = next;
    } catch {
      // The file does not answer for now: what was known of it stands.
    }
  }

  function isStale(): boolean {
    return clock.monotonic() - answeredMs > STALE_MS;
  }

  function onRevoked(text: string | undefined): void {
    if (text === revokedText) return;
    revokedText = text;
    revoked = revokedFrom(text);
    revocations++;
    keys.refresh();
  }

  function onLook(answered: boolean): void {
    if (answered) answeredMs = clock.monotonic();
    decide();
    if (seen?.touched === touched) return;
    touched = seen?.touched ?? -1;
    keys.refresh();
  }

  async function settle(signal: AbortSignal): Promise<void> {
    if (choice !== 'unknown') return;
    const over = new AbortController();
    const looking = following.run(AbortSignal.any([signal, over.signal]));
    const untilMs = clock.monotonic() + SETTLE_MS;
    while (choice === 'unknown' && clock.monotonic() < untilMs && !signal.aborted) {
      following.hurry();
      await clock.sleep(SETTLE_STEP_MS, signal);
    }
    over.abort();
    await looking;
  }

  return {
    keys: {
      ...keys,
      refresh() {
        decide();
        keys.refresh();
      },
    },
    choice: () => choice,
    deploysAt: () => deploysAt(choice, seen, own),
    revision: () => (choice === 'mirror' && seen !== undefined ? seen.revision + seen.config : undefined),
    terms: () => (choice === 'mirror' ? terms : undefined),
    settle,
    async tend(signal) {
      const unhint = deps.openHint(following.hurry);
      await Promise.all([following.run(signal), remoteUses.run(signal)]);
      unhint();
    },
    async close() {
      await rows.close();
      mirror.store.close();
    },
  };
}
