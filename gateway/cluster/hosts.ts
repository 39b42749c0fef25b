import { join } from 'node:path';
import type { Clock } from '../../shared/clock.ts';
import type { StorageConfig } from '../../shared/config/config.ts';
import { keyIdOf } from '../../shared/keys/api-key.ts';
import { createIdentifier } from '../../shared/keys/identify.ts';
import { createKeySource, type KeySource, type KnownKey, type Identity } from '../../shared/keys/source.ts';
import { createKeyUses, createWaitingUses, type KeyUses } from '../../shared/keys/lookup.ts';
import type { Log } from '../../shared/log.ts';
import { type PublishedTerms, termsFrom } from '../../shared/publication.ts';
import { NO_REDIS_ADDRESS } from '../../shared/redis/options.ts';
import { openStore, type Store } from '../../shared/store/open.ts';
import { createOutbox, noteUnsent } from './usage-outbox.ts';
import { type DeploysAt, openPush, type Push } from './usage-push.ts';
import { type News, openPublished, type Published } from './published.ts';
import { createServed, type Served, SERVED_FILE, SERVED_MIGRATIONS, type ServedState } from './served.ts';

/** Where this host's gateways read accounts and keys. `unknown`: not known yet, and no key is refused. */
type AccountsSource = 'local' | 'remote' | 'unknown';

/**
 * Whether this very file was published by a start of deploys, and is as late as what Redis has, or had. It may be a backup of while
 * that start ran, in which keys that were revoked since still work; deploys announces a revision in its file before Redis has it.
 */
function isPublishedBy(holder: string, seq: number, own: Store): boolean {
  const sql =
    'SELECT 1 FROM publication WHERE announced >= ? AND EXISTS (SELECT 1 FROM publishers WHERE token = ?)';
  return own.query(sql).get(seq, holder) !== null;
}

function hasAny(own: Store, table: 'publishers' | 'accounts'): boolean {
  return own.query(`SELECT 1 FROM ${table} LIMIT 1`).get() !== null;
}

/**
 * The own database, while none or this very one is published. Without an account of its own, the accounts of a host where
 * nothing was published yet may still come.
 */
export function accountsSourceOf(
  { holder, seen, unpublished }: Pick<ServedState, 'holder' | 'seen' | 'unpublished'>,
  own: Store,
): AccountsSource {
  if (holder !== null) return isPublishedBy(holder, seen, own) ? 'local' : 'remote';
  return hasAny(own, 'publishers') || (unpublished === 1 && hasAny(own, 'accounts')) ? 'local' : 'unknown';
}

/** How often Redis is read: a revocation has a second in all. */
const LOOK_MS = 250;
/** The same where this host's own database counts: only that another one is published is to be found out. */
const HOME_LOOK_MS = 2_000;
/** Milliseconds between two portions of changes or keys: requests have their turn then. */
const PAUSE_MS = 1;

/** Milliseconds until the next look; `older`: what Redis has less than before, and what it had. */
type Look = Readonly<{ restMs: number; older?: string }>;

/** Brings the file of served keys up to date with what is published. */
export function createFollow(served: Served, published: Published, own: Store): () => Promise<Look> {
  let compared = { unverified: 0, upTo: '' };

  return async function follow() {
    const before = served.state();
    const news = await published.news(before);
    if (news === undefined) {
      served.noteUnpublished();
      if (before.holder !== null) return { restMs: LOOK_MS, older: olderThan(before) };
      return { restMs: hasAny(own, 'accounts') ? HOME_LOOK_MS : LOOK_MS };
    }
    if (served.follow(news) === 'older') return { restMs: LOOK_MS, older: olderThan(served.state(), news) };
    if (isPublishedBy(news.holder, news.seq, own)) return { restMs: HOME_LOOK_MS };
    if (news.upTo < news.version) return { restMs: PAUSE_MS };
    const { unverified } = served.state();
    return { restMs: unverified !== 0 && news.isWhole ? await compareSome(unverified) : LOOK_MS };
  };

  async function compareSome(unverified: number): Promise<number> {
    if (compared.unverified !== unverified) compared = { unverified, upTo: '' };
    const ids = served.keysAfter(compared.upTo);
    const last = ids.at(-1);
    if (last === undefined) served.noteVerified(unverified);
    // What was read too early is read again.
    else if (!served.take(await published.find(ids))) return LOOK_MS;
    else compared.upTo = last;
    return PAUSE_MS;
  }
}

function olderThan(had: ServedState, news?: News): string {
  const generation = Math.max(had.generation, news?.noted.generation ?? 0);
  const seen = Math.max(had.seen, news?.noted.seen ?? 0);
  return `generation ${news?.generation ?? 0}, revision ${news?.seq ?? 0}, and it had ${generation}, ${seen}`;
}

/** Keys that are looked up in Redis at once; further ones are more likely guesses than callers. */
const LOOKUPS_MAX = 1_000;
/** A reading that came too early is repeated; it is late every time only while Redis is behind what was read from it before. */
const READINGS_MAX = 3;

/** Finds keys that were not served here yet, each once for all that wait; rejects while it is not known whether there is one. */
function createLookup(served: Served, published: Published, follow: () => Promise<unknown>) {
  const lookups = new Map<string, Promise<KnownKey | undefined>>();

  async function find(hash: Buffer): Promise<KnownKey | undefined> {
    for (let reading = 1; reading <= READINGS_MAX; reading++) {
      const found = await published.find([keyIdOf(hash)]);
      if (served.take(found)) {
        const key = served.read(hash);
        if (key !== undefined || (found.isWhole && found.keys[0]?.key[1] === '')) return key;
        break;
      }
      await follow();
    }
    throw new Error('Redis cannot tell');
  }

  return async function lookUp(hash: Buffer): Promise<KnownKey | undefined> {
    const name = hash.toString('latin1');
    return lookups.getOrInsertComputed(name, () => {
      if (lookups.size >= LOOKUPS_MAX) throw new Error('too many keys are looked up');
      return find(hash).finally(() => lookups.delete(name));
    });
  };
}

const USES_AT_ONCE = 500;
/**
 * How long a start waits for a Redis that does not answer: nothing may be known from earlier, and the own file may be an older copy,
 * in which keys that were revoked since still work.
 */
const SETTLE_MS = 2_000;
const SETTLE_STEP_MS = 20;

/** The accounts of an installation with many hosts, as one process of one host knows them. */
type SharedAccounts = ReturnType<typeof createSharedAccounts>;

async function sendUses(uses: ReturnType<typeof createWaitingUses>, { noteUses }: Published): Promise<void> {
  const some = uses.some(USES_AT_ONCE);
  if (some.length === 0) return;
  await noteUses(some);
  uses.done(some);
}

function usesBy(now: () => Pick<KeyUses, 'note'>, write: KeyUses['write']): KeyUses {
  return { note: (key, nowMs) => now().note(key, nowMs), write };
}

type HostsParts = Readonly<{ accounts: Store; served: Served; published: Published; clock: Clock; log: Log }>;

export function createSharedAccounts({ accounts, served, published, clock, log }: HostsParts) {
  const local = createKeySource(accounts);
  const [localUses, remoteUses] = [createKeyUses(accounts, clock), createWaitingUses()];
  const follow = createFollow(served, published, accounts);
  const lookUp = createLookup(served, published, follow);
  let seen: ServedState | undefined;
  let readsFrom: AccountsSource = 'unknown';
  let lastLook: Look | undefined;
  let terms: PublishedTerms | undefined;
  readState();

  const keySource: KeySource<'elsewhere'> = {
    read: (hash) => (isLocal() ? local.read(hash) : (served.read(hash) ?? 'elsewhere')),
    // Below zero, so that no revision of one database is taken for one of the other.
    revision: () => (isLocal() ? local.revision() : -1 - (seen?.touched ?? 0)),
  };
  const uses = usesBy(() => (readsFrom === 'remote' ? remoteUses : localUses), localUses.write);
  const keys = createIdentifier(keySource, uses, clock, (hash, learn) =>
    lookUp(hash).then(learn, (): Identity => ({ kind: 'check-unavailable' })),
  );

  function isLocal(): boolean {
    if (readsFrom === 'unknown') readState(); // a first account that was made a moment ago settles it
    if (readsFrom === 'unknown') throw new Error('it is not known yet whose accounts count');
    return readsFrom === 'local';
  }

  /** Reads what this process or another one of the host has noted. */
  function readState(): void {
    try {
      const now = served.state();
      if (now.terms_id !== seen?.terms_id) terms = termsFrom(now.terms);
      seen = now;
      const next = accountsSourceOf(now, accounts);
      if (next !== readsFrom)
        log.info({ from: readsFrom, to: next }, 'accounts and keys are read from another source');
      readsFrom = next;
    } catch {
      // The file does not answer for now: what was known of it stands.
    }
  }

  /** Gives the milliseconds until the next look. */
  async function look(): Promise<number> {
    const touched = seen?.touched;
    // Redis or the file does not answer: what is known stands.
    const found = await follow().catch(() => undefined);
    lastLook = found ?? lastLook;
    readState();
    if (seen?.touched !== touched) keys.refresh();
    return found?.restMs ?? LOOK_MS;
  }

  return {
    keys: {
      ...keys,
      refresh() {
        readState();
        keys.refresh();
      },
    },
    source: () => readsFrom,
    /** The older state of Redis, and what it had before, while this host takes nothing from it. */
    older: () => lastLook?.older,
    /** Only a Redis that named this very database can tell that deploys reads it; the own one is also chosen for want of another. */
    deploysAt(): DeploysAt {
      if (readsFrom === 'remote') return 'elsewhere';
      return readsFrom === 'local' && (seen?.holder ?? null) !== null ? 'here' : 'unknown';
    },
    /** A number that grows with every change of accounts and of plans, the same on all hosts; `undefined`: the own database's counts. */
    revision: () => (readsFrom === 'remote' && seen !== undefined ? seen.revision + seen.config : undefined),
    /** Plans and prices as they were published; `undefined`: the own config's count. */
    terms: () => (readsFrom === 'remote' ? terms : undefined),
    /** Resolves when it is known where to read, and what Redis has now, or after a moment without an answer. */
    async settle(signal: AbortSignal): Promise<void> {
      const sinceMs = clock.monotonic();
      const isSettled = () => readsFrom !== 'unknown' && lastLook !== undefined;
      while (!isSettled() && clock.monotonic() - sinceMs < SETTLE_MS && !signal.aborted) {
        await look();
        if (!isSettled()) await clock.sleep(SETTLE_STEP_MS, signal);
      }
    },
    /** Follows what is published until `signal` aborts. Never rejects. */
    async tend(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        const restMs = await look();
        await sendUses(remoteUses, published).catch(() => undefined); // they wait for a Redis that answers
        await clock.sleep(restMs, signal);
      }
    },
    async close(): Promise<void> {
      await published.close();
      served.store.close();
    },
  };
}

/** The ties of a process to deploys on another host: accounts come from there, and usage goes there. */
export type Hosts = Readonly<{
  accounts: SharedAccounts;
  /** The one process of the host that sends usage; the others have none. */
  push: Push | undefined;
}>;

type HostsDeps = Readonly<{
  storage: StorageConfig;
  accounts: Store;
  ledger: Store;
  /** Of the processes of a host one sends usage. */
  isFirst: boolean;
  clock: Clock;
  log: Log;
  random(): number;
  makeId(): string;
}>;

/** Opens the ways to the other hosts; there are none without `storage.redis`. `sentence` says which file is wrong. */
export function openHosts({ storage, accounts, ledger, isFirst, clock, log, random, makeId }: HostsDeps) {
  const url = storage.redisUrl?.reveal();
  if (url === undefined) return { kind: 'open', hosts: undefined } as const;
  const file = openStore(join(storage.dataDir, SERVED_FILE), SERVED_MIGRATIONS, 'whole');
  if (file.kind === 'unusable') return { kind: 'refused', sentence: file.sentence } as const;
  const published = openPublished(url, clock, random);
  if (published === undefined) return { kind: 'refused', sentence: NO_REDIS_ADDRESS } as const;
  const shared = createSharedAccounts({ accounts, served: createServed(file.store), published, clock, log });
  noteUnsent(ledger);
  const outbox = createOutbox(ledger);
  const onWarning = (warning: string) => log.warn({ warning }, 'redis');
  const { deploysAt } = shared;
  const push = isFirst ? openPush({ outbox, deploysAt, url, clock, random, makeId, onWarning }) : undefined;
  return { kind: 'open', hosts: { accounts: shared, push } } as const;
}
