import type { Clock } from '../../shared/clock.ts';
import { createIdentifier, type Identifier } from '../../shared/keys/identify.ts';
import { createKeySource, type KeySource } from '../../shared/keys/source.ts';
import { createKeyUses, type KeyUses } from '../../shared/keys/uses.ts';
import { revokedFrom } from '../../shared/publication/revoked.ts';
import { type PublishedTerms, termsFrom } from '../../shared/publication/terms.ts';
import type { Log } from '../../shared/log.ts';
import type { Store } from '../../shared/store/open.ts';
import type { DeploysAt } from '../usage/push.ts';
import { type Choice, choiceOf, deploysAt } from './choice.ts';
import { createFollowing } from './follow.ts';
import type { Mirror, MirrorState } from './mirror.ts';
import { createOwnAccounts } from './own-accounts.ts';
import type { RedisRows } from './redis-rows.ts';
import { createRemoteUses } from './uses.ts';

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
