import { basename } from 'node:path';
import type { Config } from '../shared/config/config.ts';
import { descriptorsMax, descriptorTrouble, fileReason } from '../shared/store/private.ts';
import type { Log } from '../shared/log.ts';
import { type Store, watchFile } from '../shared/store/open.ts';
import type { StoreLink } from './limits/lease-sync.ts';
import type { Hosts } from './replica/hosts.ts';

/** What is wrong with this process or its stores, for `/health` and the log. */
export type Trouble = Readonly<{
  /** A clause that stays the same while it lasts. */
  what: string;
  /** The file or server that it is about, for the log, and what that said. */
  store?: string;
  cause?: string | undefined;
  /** Callers cannot be served correctly, so this process is not ready. */
  stops: boolean;
}>;

type Sources = Readonly<{
  accounts: Store;
  ledger: Store;
  hosts?: Hosts | undefined;
  config: Config;
  /** Why charges, or usage, could not be written for a while; `undefined` while they are. */
  journal: Readonly<{ failure(): string | undefined }>;
  usage: Readonly<{ failure(): string | undefined }>;
  link: StoreLink | undefined;
  log: Log;
}>;

/** Readings of a store that may fail in a row: another process may hold the file for a moment. */
const FAILED_MAX = 2;

/** Reads a row of a store; `cause` says why it cannot. */
function createReading<Row>(store: Store, sql: string) {
  const statement = store.prepare<Row, []>(sql);
  let failed = 0;
  let reason = '';
  return {
    get(): Row | undefined {
      try {
        const row = statement.get() ?? undefined;
        failed = 0;
        return row;
      } catch (error) {
        failed++;
        reason = fileReason(error);
        return undefined;
      }
    },
    cause: () => (failed > FAILED_MAX ? reason : undefined),
  };
}

const NO_SOURCE =
  'no accounts are known: the Redis of storage.redis was not reached yet, or nothing is published there and no account is kept here';

/** Watches what a process needs besides its backends. */
export function createTroubles({ accounts, ledger, hosts, config, journal, usage, link, log }: Sources) {
  const descriptorsAtMost = descriptorsMax();
  const files = [accounts, ledger].map(watchFile);
  const reading = createReading<{ some: number }>(
    accounts,
    'SELECT EXISTS (SELECT 1 FROM keys) OR EXISTS (SELECT 1 FROM accounts) AS some FROM revision',
  );
  const ledgerReading = createReading(ledger, 'SELECT 1 FROM spent LIMIT 1');
  let hasAccount = false;
  let known: readonly Trouble[] = [];

  function ofAccounts(): Trouble | undefined {
    const source = hosts?.accounts.source();
    if (source === 'unknown') return { what: NO_SOURCE, stops: true };
    if (source === 'remote') return undefined;
    const store = accounts.filename;
    const cause = reading.cause();
    if (cause !== undefined) return { what: `${basename(store)} cannot be read`, store, cause, stops: true };
    const remedy = 'make one with "sluice account create", or mend storage.data_dir';
    if (hasAccount) return undefined;
    return { what: `${basename(store)} has no account`, store, cause: remedy, stops: true };
  }

  function ofLedger(): readonly Trouble[] {
    const store = ledger.filename;
    const name = basename(store);
    const unread = `${name} cannot be read, so trials are refused with 503`;
    const charges = `charges cannot be written to ${name}, so trials are refused with 503`;
    const all = [
      { what: unread, store, cause: ledgerReading.cause(), stops: true },
      { what: charges, store, cause: journal.failure(), stops: true },
      { what: `usage cannot be written to ${name}`, store, cause: usage.failure(), stops: false },
    ];
    return all.filter(({ cause: why }) => why !== undefined);
  }

  function ofSharing(): Trouble | undefined {
    if (link?.isOut() !== true) return undefined;
    const store = config.storage.redisUrl === undefined ? ledger.filename : 'Redis';
    const why = `${basename(store)} is away or full`;
    return { what: 'the store of shared limits does not answer', store, cause: why, stops: false };
  }

  function allWith(descriptors: Trouble | undefined): readonly Trouble[] {
    hasAccount ||= reading.get()?.some === 1;
    const changes = files.map((changeOf) => changeOf());
    return [
      ofAccounts(),
      ...changes.map((change) => change && { ...change, stops: true }),
      ...ofLedger(),
      ofSharing(),
      descriptors,
    ].filter((trouble) => trouble !== undefined);
  }

  return {
    now: () => allWith(descriptorTrouble(descriptorsAtMost)),
    /** Looks again and logs what has changed; called once a second. Idle connections are closed while descriptors are short. */
    look(closeIdle?: () => void): void {
      if (hasAccount) reading.get();
      ledgerReading.get();
      const before = known;
      const descriptors = descriptorTrouble(descriptorsAtMost);
      known = allWith(descriptors);
      if (descriptors !== undefined) closeIdle?.();
      const isIn = (some: readonly Trouble[], { what }: Trouble) => some.some((other) => other.what === what);
      for (const each of known.filter((trouble) => !isIn(before, trouble)))
        log.error({ store: each.store, cause: each.cause }, each.what);
      for (const { what, store } of before.filter((trouble) => !isIn(known, trouble)))
        log.info({ store }, `no longer: ${what}`);
    },
  };
}
